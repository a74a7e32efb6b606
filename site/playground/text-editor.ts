import { coloured, element } from './dom.js';
import type { Token } from './sql-layout.js';

/** Length up to which a text is coloured while it is typed. */
const MOST_COLOURED = 20_000;

/** A text field over a coloured copy of its text, in which faults are underlined. */
export class TextEditor {
  readonly element: HTMLElement;
  readonly #area: HTMLTextAreaElement;
  readonly #copy: HTMLPreElement;
  readonly #tokens: (text: string) => readonly Token[];
  #fault: readonly [number, number] | null = null;

  constructor(
    label: string,
    id: string,
    rows: number,
    tokens: (text: string) => readonly Token[],
    changed: () => void,
  ) {
    this.#tokens = tokens;
    this.#area = element('textarea', {
      id,
      rows: `${rows}`,
      spellcheck: 'false',
      wrap: 'off',
      autocapitalize: 'off',
    });
    this.#copy = element('pre', { 'aria-hidden': 'true' });
    this.element = element(
      'div',
      { class: 'pg-field' },
      element('label', { for: id }, label),
      element('div', { class: 'pg-editor' }, this.#copy, this.#area),
    );
    this.#area.addEventListener('input', () => {
      this.#fault = null;
      this.#colour();
      changed();
    });
    this.#area.addEventListener('scroll', () => this.#follow());
  }

  get text(): string {
    return this.#area.value;
  }

  set text(text: string) {
    this.#area.value = text;
    this.#fault = null;
    this.#colour();
  }

  /** Underlines a half-open range of UTF-16 offsets; null for none. An empty range underlines the place before it. */
  mark(range: readonly [start: number, end: number] | null): void {
    this.#fault = range === null || range[0] < range[1] ? range : [Math.max(0, range[0] - 1), range[0]];
    if (range === null) this.#area.removeAttribute('aria-invalid');
    else this.#area.setAttribute('aria-invalid', 'true');
    this.#colour();
  }

  #colour(): void {
    const { value } = this.#area;
    const tokens =
      value.length > MOST_COLOURED ? [{ text: value, kind: 'other' } as const] : this.#tokens(value);
    // The line after a last line break has no height without a character.
    this.#copy.replaceChildren(coloured(tokens, this.#fault), '\n ');
    this.#follow();
  }

  #follow(): void {
    this.#copy.scrollTop = this.#area.scrollTop;
    this.#copy.scrollLeft = this.#area.scrollLeft;
  }
}
