/** The stages of sampling as a row of chips: what each cut, how many tokens are left, how uncertain it still is. */

import { say } from '../../drawing/say.js';
import { make, setText } from '../../drawing/dom.js';
import { formatBits, formatCount, formatShare } from '../../drawing/format.js';
import { STAGE_ORDER, STAGE_WORDS, stageName } from '../../store/distribution.js';

/** What the glossary says of a stage. */
const STAGE_TERMS = {
  logits: { term: 'probability' }, repetition_penalty: { term: 'repetition penalty' }, temperature: { term: 'temperature' },
  greedy: { term: 'greedy' }, top_k: { term: 'top-k' }, top_p: { term: 'top-p' }, min_p: { term: 'min-p' },
};

export class Funnel {
  /** @param {(name: string|null) => void} onChoose a stage was clicked; null: back to the last one */
  constructor(root, onChoose) {
    this.chips = new Map();
    const line = make('div.lp-funnel', { role: 'group', 'aria-label': say('funnel.label') });
    for (const name of STAGE_ORDER) {
      const chip = {
        name: make('span.lp-stage-name'), kept: make('b'), detail: make('span.lp-stage-detail'), level: make('i.lp-stage-level'),
      };
      chip.node = make('button.lp-stage', { data: { stage: name, ...STAGE_TERMS[name] }, onclick: () => onChoose(chip.node.getAttribute('aria-pressed') === 'true' ? null : name) },
        chip.name, chip.kept, chip.detail, chip.level);
      this.chips.set(name, chip);
      line.append(chip.node);
    }
    root.append(line);
  }

  /** @param {object} distribution @param {string} shown name of the stage whose probabilities are drawn */
  draw({ stages, sampling }, shown, vocabulary) {
    const greedy = stages.some((stage) => stage.name === 'greedy');
    for (const [name, chip] of this.chips) {
      const stage = stages.find((candidate) => candidate.name === name);
      chip.node.hidden = name === (greedy ? 'temperature' : 'greedy');
      chip.node.disabled = !stage;
      chip.node.setAttribute('aria-pressed', String(name === shown));
      if (stage) this.#on(chip, stage, sampling, vocabulary);
      else this.#off(chip, name, greedy);
    }
  }

  #on(chip, stage, sampling, vocabulary) {
    const about = stage.exact ? '' : '≈';
    setText(chip.name, stage.name === 'greedy' ? say('funnel.greedy_temp') : stageName(stage.name, sampling));
    setText(chip.kept, (stage.kept === vocabulary ? '' : about) + formatCount(stage.kept));
    const share = formatShare(stage.removed);
    const cut = stage.removed > 0 ? `${share.startsWith('<') ? '' : '−'}${share}\n` : '';
    setText(chip.detail, `${cut}${about}${formatBits(stage.bits)}`);
    chip.level.style.transform = `scaleX(${Math.max(0.015, Math.log1p(stage.kept - 1) / Math.log(vocabulary))})`;
    const values = { label: stage.label, kept: formatCount(stage.kept), removed: formatShare(stage.removed), bits: formatBits(stage.bits) };
    chip.node.title = stage.exact ? say('funnel.stage', values) : say('funnel.stage_estimated', values);
  }

  #off(chip, name, greedy) {
    setText(chip.name, STAGE_WORDS[name]);
    setText(chip.kept, say('funnel.off'));
    setText(chip.detail, '');
    chip.level.style.transform = 'scaleX(0)';
    chip.node.title = greedy ? say('funnel.not_used') : say('funnel.off_title');
  }
}
