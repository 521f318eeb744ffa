/** The lessons of the Step page, with everything on it that their acts press. */

import { openHelp } from '../controls/help.js';
import { openLayers } from '../panels/time/layer_sheet.js';
import { openPromptRows } from '../panels/tokens/prompt_rows.js';
import { LessonActs } from './lesson_acts.js';
import { LessonPlayer } from './lesson_player.js';

/** @param {HTMLElement} root the page @param {object} parts of it, by name */
export function lessonsOnPage(root, store, { player, presenter, panels, settings, checks, strip, topBar, stops, block }) {
  const open = {
    forward: () => block.open(),
    stops: () => stops.open(),
    settings: () => settings.popover.open(),
    branches: () => player.branches.open(),
    checks: () => checks.open(),
    predictions: () => openPromptRows(root, store),
    layers: () => openLayers(root, store, store.selected),
    help: () => openHelp(root),
    model: () => topBar.openModel(),
    surprisal: () => strip.legend.button.click(),
  };
  const acts = new LessonActs(root, store, { open, slow: () => player.act('slow'), use: panels.next.use });
  const weights = () => (store.selected && !store.recording ? panels.attention.weights().row : null);
  const lessons = new LessonPlayer(root, store, { place: root.querySelector('.transport'), acts, presenter, weights });
  player.lessons = lessons;
  return lessons;
}
