/** Elements of the page. Text is only ever set as text, so nothing that a link holds becomes HTML. */
import type { Token } from './sql-layout.js';

type Child = Node | string;

/** Creates an element with attributes and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

export function button(label: string, press: () => void): HTMLButtonElement {
  const made = element('button', { type: 'button' }, label);
  made.addEventListener('click', press);
  return made;
}

/** A sentence of the gateway, with names in backticks shown as code. */
export function sentence(text: string): readonly Child[] {
  return text.split('`').map((part, i) => (i % 2 === 1 ? element('code', {}, part) : part));
}

/** Coloured tokens; those within `marked`, a half-open range of offsets, are underlined. */
export function coloured(
  tokens: readonly Token[],
  marked: readonly [start: number, end: number] | null = null,
): DocumentFragment {
  const out = document.createDocumentFragment();
  let at = 0;
  const put = (text: string, kind: Token['kind'], isMarked: boolean): void => {
    if (text === '') return;
    const plain = kind === 'other' || kind === 'word';
    if (plain && !isMarked) out.append(text);
    else out.append(element('span', { class: isMarked ? `t-${kind} t-fault` : `t-${kind}` }, text));
  };
  for (const { text, kind } of tokens) {
    const [from, to] =
      marked === null
        ? [text.length, text.length]
        : marked.map((m) => Math.min(Math.max(m - at, 0), text.length));
    put(text.slice(0, from), kind, false);
    put(text.slice(from, to), kind, true);
    put(text.slice(to), kind, false);
    at += text.length;
  }
  return out;
}
