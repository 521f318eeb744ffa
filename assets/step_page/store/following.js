/**
 * A class that is followed: whose run is on this screen, what its leader looks at, and the way out and back.
 *
 *   following.lead   {code, ended} of the lead that is followed; null: this page shows a run of its own
 *   following.look   {step, layer, head, presents, window, lesson} of the leader, or null
 *   following.question  what its leader asks: {text, kind, choices, step, revealed, answers}, or null
 *   following.left   the code of the class that was left in this tab, or ''
 */

const LEFT_KEY = 'loupe.left';

export class Following {
  lead = null;
  look = null;
  question = null;

  constructor() {
    try {
      this.left = sessionStorage.getItem(LEFT_KEY) ?? '';
    } catch {
      this.left = ''; // no storage
    }
  }

  /** Take what a frame says of the leader. @param {Set<string>} changes of the store */
  take(header, store, changes) {
    if (header.frame === 1 && !header.follow) this.lead = this.look = this.question = null;
    if (header.follow) {
      this.lead = header.follow;
      changes.add('follow');
    }
    if ('question' in header) this.question = header.question;
    if (header.look) {
      this.look = header.look;
      changes.add('look');
    }
  }

  /** A step's record with attention that came apart. */
  static withAttention(step, planes) {
    return { ...step, planes: { ...step.planes, ...planes } };
  }

  /** Remember over a reload which class was left; '' forgets it. */
  remember(code) {
    this.left = code;
    try {
      sessionStorage.setItem(LEFT_KEY, code);
    } catch {
      // no storage: a reload forgets it
    }
  }
}
