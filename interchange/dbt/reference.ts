import { NoFit } from '../sql/expression.js';

const NAME = `(?:'([^'{}]{1,200})'|"([^"{}]{1,200})")`;
const REF = new RegExp(`^ref\\(\\s*${NAME}\\s*(?:,\\s*${NAME}\\s*)?\\)$`);
const SOURCE = new RegExp(`^source\\(\\s*${NAME}\\s*,\\s*${NAME}\\s*\\)$`);

/** What a semantic model stands on. */
export type ModelReference =
  | { readonly kind: 'model'; readonly name: string }
  | { readonly kind: 'source'; readonly schema: string; readonly table: string };

/**
 * Reads `ref('orders')`, `ref('package', 'orders')` and `source('raw', 'orders')`, with or without braces around.
 * This is a closed grammar: nothing is evaluated, and anything else is refused.
 *
 * @throws NoFit
 */
export function modelReference(text: string): ModelReference {
  const bare = text
    .trim()
    .replace(/^\{\{([^{}]*)\}\}$/, '$1')
    .trim();
  const ref = REF.exec(bare);
  if (ref !== null) {
    const [, one, two, three, four] = ref;
    return { kind: 'model', name: three ?? four ?? one ?? two ?? '' };
  }
  const source = SOURCE.exec(bare);
  if (source === null) throw new NoFit("only `ref('…')` and `source('…', '…')` are read");
  const [, one, two, three, four] = source;
  return { kind: 'source', schema: one ?? two ?? '', table: three ?? four ?? '' };
}

/** True if `text` holds a template, which is never evaluated. */
export function isTemplate(text: string): boolean {
  return text.includes('{{') || text.includes('{%') || text.includes('{#');
}
