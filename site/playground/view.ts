/** The playground: editors beside the SQL that the gateway would run for the chosen caller. */
import type { PlaygroundResult } from './compile-question.js';
import { CompilerThread } from './compiler-thread.js';
import { button, element } from './dom.js';
import { outcomeView } from './result-view.js';
import { decodeLink, encodeLink } from './share-link.js';
import { sqlTokens, yamlTokens } from './sql-layout.js';
import type { Playground } from './state.js';
import { TextEditor } from './text-editor.js';

export interface Example extends Playground {
  readonly title: string;
}

export interface PlaygroundOptions {
  readonly examples: readonly Example[];
  /** Address of the page about error codes. */
  readonly errors: string;
}

/** Time without typing after which the texts are compiled, in ms. */
const PAUSE_MS = 150;

/** Shows the playground in `host`. Returns a function that stops it. */
export function openPlayground(host: HTMLElement, options: PlaygroundOptions): () => void {
  const page = new PlaygroundPage(host, options);
  return () => page.close();
}

class PlaygroundPage {
  readonly #options: PlaygroundOptions;
  readonly #thread = new CompilerThread(({ result, failed }) => this.#show(result, failed));
  readonly #editors: Readonly<Record<'question' | 'policy' | 'manifest', TextEditor>>;
  readonly #example = element('select', { id: 'pg-example' });
  readonly #caller = element('select', { id: 'pg-caller' });
  readonly #behalf = element('select', { id: 'pg-behalf' });
  readonly #roles = element('fieldset', { class: 'pg-roles' });
  readonly #result = element('section', { class: 'pg-result', 'aria-label': 'Result' });
  readonly #status = element('p', { class: 'pg-status', role: 'status' });
  readonly #opened = (): void => void this.#openLink();
  #boxes: readonly HTMLInputElement[] = [];
  #chain: readonly string[] = [];
  #claimed: readonly string[] | null = null;
  #subjects: PlaygroundResult['subjects'] = [];
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(host: HTMLElement, options: PlaygroundOptions) {
    this.#options = options;
    const edited = (): void => this.#edited();
    this.#editors = {
      question: new TextEditor('Question (OSL-SQL)', 'pg-question', 6, sqlTokens, edited),
      policy: new TextEditor('Policy (YAML)', 'pg-policy', 18, yamlTokens, edited),
      manifest: new TextEditor('Manifest (YAML)', 'pg-manifest', 18, yamlTokens, edited),
    };
    host.replaceChildren(this.#bar(), this.#body());
    window.addEventListener('hashchange', this.#opened);
    void this.#openLink();
  }

  close(): void {
    window.removeEventListener('hashchange', this.#opened);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#thread.stop();
  }

  #bar(): HTMLElement {
    this.#example.append(
      element('option', { value: '' }, 'Your own'),
      ...this.#options.examples.map(({ title }, i) => element('option', { value: `${i}` }, title)),
    );
    this.#example.addEventListener('change', () => {
      const chosen = this.#options.examples[Number(this.#example.value)];
      if (this.#example.value !== '' && chosen !== undefined) this.#open(chosen);
      this.#leaveLink();
    });
    return element(
      'div',
      { class: 'pg-bar' },
      labelled('Example', this.#example),
      button('Copy a link', () => void this.#share()),
      this.#status,
    );
  }

  #body(): HTMLElement {
    const chosen = (): void => {
      const { value: caller } = this.#caller;
      const { value: behalf } = this.#behalf;
      this.#chain = behalf === '' || behalf === caller ? [caller] : [behalf, caller];
      this.#claimed = null;
      this.#showCaller();
      this.#edited();
    };
    this.#caller.addEventListener('change', chosen);
    this.#behalf.addEventListener('change', chosen);
    const callers = element(
      'div',
      { class: 'pg-callers' },
      labelled('Caller', this.#caller),
      labelled('On behalf of', this.#behalf),
      this.#roles,
    );
    const { question, policy, manifest } = this.#editors;
    return element(
      'div',
      { class: 'pg-body' },
      element('div', { class: 'pg-question' }, question.element, callers),
      this.#result,
      element('div', { class: 'pg-files' }, policy.element, manifest.element),
    );
  }

  async #openLink(): Promise<void> {
    const linked = location.hash === '' ? null : await decodeLink(location.hash);
    if (linked !== null) {
      this.#example.value = '';
      this.#open(linked);
      return;
    }
    if (this.#editors.question.text !== '') return; // an anchor of the page, or a link that is broken
    const [first] = this.#options.examples;
    if (first === undefined) return;
    this.#example.value = '0';
    this.#open(first);
    if (location.hash !== '') this.#status.replaceChildren('This link is not complete; here is an example.');
  }

  #open({ question, policy, manifest, chain, roles }: Playground): void {
    this.#editors.question.text = question;
    this.#editors.policy.text = policy;
    this.#editors.manifest.text = manifest;
    this.#chain = chain;
    this.#claimed = roles;
    this.#showCaller();
    this.#compileSoon(0);
  }

  #edited(): void {
    this.#example.value = '';
    this.#leaveLink();
    this.#compileSoon(PAUSE_MS);
  }

  /** Removes a state from the address that is no longer shown. */
  #leaveLink(): void {
    this.#status.replaceChildren();
    if (location.hash !== '') history.replaceState(history.state, '', location.pathname + location.search);
  }

  #state(): Playground {
    const { question, policy, manifest } = this.#editors;
    return {
      question: question.text,
      policy: policy.text,
      manifest: manifest.text,
      chain: this.#chain,
      roles: this.#claimed,
    };
  }

  #compileSoon(pause: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#result.setAttribute('aria-busy', 'true');
    this.#timer = setTimeout(() => this.#thread.compile(this.#state()), pause);
  }

  #show(result: PlaygroundResult | null, failed: string | null): void {
    this.#result.removeAttribute('aria-busy');
    if (result === null) {
      this.#result.replaceChildren(element('p', { class: 'pg-fault' }, `No result: ${failed ?? ''}.`));
      return;
    }
    if (result.subjects.length > 0) this.#subjects = result.subjects;
    const { outcome } = result;
    for (const [name, editor] of Object.entries(this.#editors)) {
      const here = outcome.kind === 'refused' && outcome.editor === name;
      editor.mark(here ? (outcome.faults[0]?.range ?? null) : null);
    }
    this.#showCaller();
    const text = outcome.kind === 'refused' ? this.#editors[outcome.editor].text : '';
    this.#result.replaceChildren(...outcomeView(outcome, text, this.#options.errors));
  }

  #showCaller(): void {
    const caller = this.#chain.at(-1) ?? '';
    const names = this.#subjects.map(({ name }) => name);
    fill(this.#caller, caller, names);
    fill(this.#behalf, this.#chain.length > 1 ? (this.#chain[0] ?? '') : '', ['', ...names]);
    const own = this.#subjects.find(({ name }) => name === caller)?.roles ?? [];
    if (this.#boxes.map(({ value }) => value).join('\n') !== own.join('\n')) {
      this.#boxes = own.map((value) => element('input', { type: 'checkbox', value }));
      for (const box of this.#boxes) box.addEventListener('change', () => this.#claim());
      const labels = this.#boxes.map((box) => element('label', {}, box, box.value));
      this.#roles.replaceChildren(element('legend', {}, 'Roles of the token'), ...labels);
    }
    for (const box of this.#boxes) box.checked = this.#claimed === null || this.#claimed.includes(box.value);
  }

  /** Takes the roles that are ticked; all of them are the default. */
  #claim(): void {
    const ticked = this.#boxes.filter(({ checked }) => checked).map(({ value }) => value);
    this.#claimed = ticked.length === this.#boxes.length ? null : ticked;
    this.#edited();
  }

  async #share(): Promise<void> {
    const link = await encodeLink(this.#state());
    if (link === null) {
      this.#status.replaceChildren('This is too long for a link.');
      return;
    }
    history.replaceState(history.state, '', link);
    const copied = await navigator.clipboard.writeText(location.href).then(
      () => true,
      () => false,
    );
    this.#status.replaceChildren(copied ? 'Copied.' : 'The link is in the address bar.');
  }
}

function labelled(label: string, control: HTMLElement): HTMLElement {
  return element('span', { class: 'pg-labelled' }, element('label', { for: control.id }, label), control);
}

/** Fills a list of subjects; the chosen one is in it even if the policy does not name it. */
function fill(select: HTMLSelectElement, chosen: string, names: readonly string[]): void {
  const all = names.includes(chosen) ? names : [...names, chosen];
  const before = [...select.options].map(({ value }) => value);
  if (before.join('\n') !== all.join('\n'))
    select.replaceChildren(
      ...all.map((name) => element('option', { value: name }, name === '' ? 'nobody' : name)),
    );
  select.value = chosen;
}
