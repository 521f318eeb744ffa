/** How far somebody is in each lesson, in this browser: {"the-cat-sat": {scene, most, of, done}}. The lessons page reads it too. */

const PROGRESS_KEY = 'loupe.lessons';

export function readProgress() {
  try {
    return JSON.parse(localStorage.getItem(PROGRESS_KEY)) ?? {};
  } catch {
    return {}; // storage switched off, or not ours
  }
}

/** @param {number} scene from 1 */
export function keepProgress(id, { scene, of, done }) {
  const all = readProgress();
  const before = all[id] ?? { most: 0, done: false };
  all[id] = { scene, most: Math.max(before.most, scene), of, done: before.done || done };
  try {
    localStorage.setItem(PROGRESS_KEY, JSON.stringify(all));
  } catch {
    // storage full or switched off: the next visit begins at the first scene
  }
}
