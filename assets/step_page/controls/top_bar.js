/**
 * The bar above the prompt: what this page is, the loaded model, how tokens are drawn, and whether the numbers were checked.
 *
 * For tests: .model-button, .model-form input, .facts dt/dd
 */

import { make, icon } from '../drawing/dom.js';
import { say } from '../drawing/say.js';
import { openSheet } from '../drawing/overlay.js';
import { openPromptRows } from '../panels/tokens/prompt_rows.js';
import { copyText } from '../drawing/table_twin.js';
import { formatBytes, formatCount } from '../drawing/format.js';

/** What is known about the model, in words: [name, value] */
export function modelFacts(model) {
  const numbers = model.num_layers * 2 * model.num_kv_heads * model.head_dim;
  const each = model.kv_bytes_per_token / numbers;
  const perToken =
    say('top_bar.cache_numbers', { num_layers: model.num_layers, num_kv_heads: model.num_kv_heads, head_dim: model.head_dim }) +
    ` × ${each} B = ${formatBytes(model.kv_bytes_per_token)}`;
  const kind = model.num_kv_heads === model.num_heads ? '' : model.num_kv_heads === 1 ? ' (MQA)' : ' (GQA)';
  return [
    ['id', model.id],
    [say('top_bar.architecture'), model.architecture],
    [say('top_bar.weights'), [model.origin, formatBytes(model.weight_bytes)].filter(Boolean).join(', ')],
    [say('top_bar.runs_as'), say('top_bar.dtype_on_device', { dtype: model.dtype, device: model.device })],
    [say('top_bar.parameters'), formatCount(model.parameters)],
    [say('top_bar.layers'), formatCount(model.num_layers)],
    [say('top_bar.heads_name'), say('top_bar.heads', { query_heads: say('counted.query_head', { n: model.num_heads }), kv_heads: say('counted.kv_head', { n: model.num_kv_heads }), kind, head_dim: model.head_dim })],
    [say('top_bar.vocabulary'), say('counted.token', { n: model.vocab_size })],
    [say('top_bar.cache'), say('top_bar.adds', { per_token: perToken })],
    [say('top_bar.context'), model.context_limit ? say('counted.token', { n: model.context_limit }) : say('top_bar.unknown')],
    [say('top_bar.eos'), model.end_ids.join(', ') || say('top_bar.none')],
    [say('top_bar.chat_template'), model.has_chat_template ? say('top_bar.yes') : say('top_bar.none')],
    [say('top_bar.licence'), model.licence || say('top_bar.not_stated')],
    ...model.notes.map((note) => [say('top_bar.note'), note]),
  ];
}

function loadForm(store, close) {
  const input = make('input', {
    type: 'text',
    name: 'model',
    spellcheck: false,
    autocomplete: 'off',
    placeholder: say('top_bar.placeholder'),
    'aria-label': say('top_bar.label'),
  });
  const said = make('p.form-said', { role: 'status' });
  const go = make('button.primary', { type: 'submit' }, say('top_bar.load'));
  const form = make(
    'form.model-form',
    {},
    make('h3', {}, say('top_bar.load_another_model')),
    make('div.force-line', {}, input, go),
    said,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const id = input.value.trim();
    if (!id) return;
    go.disabled = true;
    said.classList.remove('error-words');
    said.textContent = say('top_bar.loading');
    try {
      await store.send('model', { id });
      close();
    } catch (error) {
      said.textContent = error.message;
      said.classList.add('error-words');
    }
    go.disabled = false;
  });
  return form;
}

export class TopBar {
  /** @param {HTMLElement[]} buttons of others, at the right end */
  constructor(root, page, store, buttons) {
    this.store = store;
    this.page = page;
    this.modelButton = make('button.model-button', {
      onclick: () => this.openModel(),
    });
    this.rowsButton = make(
      'button.quiet',
      { title: say('top_bar.predictions_title'), onclick: () => openPromptRows(page, store) },
      icon('table', 15),
      make('span', {}, say('top_bar.predictions')),
    );
    this.linkWords = make('span', {}, say('top_bar.link'));
    this.linkButton = make(
      'button.quiet.link-button',
      { onclick: () => this.#copyLink() },
      icon('link', 15),
      this.linkWords,
    );
    root.append(
      make('h1.what-this-is', { title: say('first.says') }, say('first.says')),
      this.modelButton,
      make('span.spacer'),
      this.rowsButton,
      this.linkButton,
      ...buttons,
    );
  }

  draw(changes) {
    if (changes.has('steps') || changes.has('session')) {
      this.rowsButton.hidden = this.linkButton.hidden = !this.store.hasRun;
      this.linkButton.title = this.store.session?.link_note ?? say('top_bar.link_title');
    }
    if (!changes.has('model')) return;
    const { model, recording, limits } = this.store;
    const [name, ...rest] = (model?.chips ?? '').split(' · ');
    this.modelButton.hidden = !model || Boolean(recording); // it speaks of the model that runs here
    this.modelButton.title = `${model?.chips}. ${limits.models ? say('top_bar.about_and_load') : say('top_bar.about')}`;
    this.modelButton.replaceChildren(make('b', {}, name), ...rest.map((chip) => make('span.model-chip', {}, chip)));
  }

  async #copyLink() {
    await copyText(location.href, this.page);
    this.linkWords.textContent = say('top_bar.copied');
    setTimeout(() => (this.linkWords.textContent = say('top_bar.link')), 1500);
  }

  openModel() {
    const { model } = this.store;
    openSheet(this.page, { title: model.name, hint: model.chips, name: 'model' }, (body, close) =>
      body.append(
        make(
          'dl.facts',
          {},
          ...modelFacts(model).flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]),
        ),
        this.store.limits.models ? loadForm(this.store, close) : '',
      ),
    );
  }
}
