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
import { formatBytes, formatCount, formatPlural } from '../drawing/format.js';

/** What is known about the model, in words: [name, value] */
export function modelFacts(model) {
  const numbers = model.num_layers * 2 * model.num_kv_heads * model.head_dim;
  const each = model.kv_bytes_per_token / numbers;
  const perToken =
    `${model.num_layers} layers × 2 (key, value) × ${model.num_kv_heads} heads × ${model.head_dim} numbers` +
    ` × ${each} B = ${formatBytes(model.kv_bytes_per_token)}`;
  const kind = model.num_kv_heads === model.num_heads ? '' : model.num_kv_heads === 1 ? ' (MQA)' : ' (GQA)';
  return [
    ['id', model.id],
    ['architecture', model.architecture],
    ['weights', [model.origin, formatBytes(model.weight_bytes)].filter(Boolean).join(', ')],
    ['runs as', `${model.dtype} on ${model.device}`],
    ['parameters', formatCount(model.parameters)],
    ['layers', formatCount(model.num_layers)],
    ['heads', `${formatPlural(model.num_heads, 'query head')}, ${formatPlural(model.num_kv_heads, 'KV head')}${kind}, each ${model.head_dim} wide`],
    ['vocabulary', `${formatCount(model.vocab_size)} tokens`],
    ['cache', `each token adds ${perToken}`],
    ['context', model.context_limit ? `${formatCount(model.context_limit)} tokens` : 'the model’s files do not say'],
    ['EOS tokens', model.end_ids.join(', ') || 'none'],
    ['chat template', model.has_chat_template ? 'yes' : 'none'],
    ['licence', model.licence || 'not stated'],
    ...model.notes.map((note) => ['note', note]),
  ];
}

function loadForm(store, close) {
  const input = make('input', {
    type: 'text',
    name: 'model',
    spellcheck: false,
    autocomplete: 'off',
    placeholder: 'Hub id, folder on the server, or a .gguf file',
    'aria-label': 'Model to load',
  });
  const said = make('p.form-said', { role: 'status' });
  const go = make('button.primary', { type: 'submit' }, 'Load');
  const form = make(
    'form.model-form',
    {},
    make('h3', {}, 'Load another model'),
    make('div.force-line', {}, input, go),
    said,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const id = input.value.trim();
    if (!id) return;
    go.disabled = true;
    said.classList.remove('error-words');
    said.textContent = 'Loading. The first time this can take a while; this run stays until the new model is ready.';
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
      { title: 'Predictions at every prompt position', onclick: () => openPromptRows(page, store) },
      icon('table', 15),
      make('span', {}, 'prompt predictions'),
    );
    this.linkWords = make('span', {}, 'link');
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
      this.linkButton.title = this.store.session?.link_note ?? 'Copy a link that shows this run and this step again';
    }
    if (!changes.has('model')) return;
    const { model, recording, limits } = this.store;
    const [name, ...rest] = (model?.chips ?? '').split(' · ');
    this.modelButton.hidden = !model || Boolean(recording); // it speaks of the model that runs here
    this.modelButton.title = `${model?.chips}. ${limits.models ? 'About this model; load another' : 'About this model'}`;
    this.modelButton.replaceChildren(make('b', {}, name), ...rest.map((chip) => make('span.model-chip', {}, chip)));
  }

  async #copyLink() {
    await copyText(location.href, this.page);
    this.linkWords.textContent = 'copied';
    setTimeout(() => (this.linkWords.textContent = 'link'), 1500);
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
