import { ValueFault } from './setting-kinds.js';

const STYLES: readonly (readonly [RegExp, style: string])[] = [
  [/^iso$/, 'ISO'],
  [/^sql$/, 'SQL'],
  [/^postgres/, 'Postgres'],
  [/^german$/, 'German'],
];
const ORDERS: readonly (readonly [RegExp, order: string])[] = [
  [/^ymd$/, 'YMD'],
  [/^(dmy$|euro)/, 'DMY'],
  [/^(mdy$|us$|noneuro)/, 'MDY'],
];

/**
 * `text` as Postgres shows it when it is set over `before`: `German` gives `German, DMY`, `dmy` keeps the style.
 *
 * @throws ValueFault
 */
export function dateStyle(text: string, before: string, byDefault: string): string {
  const [style = '', order = ''] = before.split(', ');
  const chosen = { style: null as string | null, order: null as string | null };
  // What is said again changes nothing.
  for (const part of new Set(text.split(','))) {
    const word = part
      .trim()
      .replace(/^"(.*)"$/, '$1')
      .toLowerCase();
    if (word === 'default') {
      const [s = '', o = ''] = byDefault.split(', ');
      chosen.style ??= s;
      chosen.order ??= o;
      continue;
    }
    const named = STYLES.find(([form]) => form.test(word))?.[1] ?? null;
    const ordered = ORDERS.find(([form]) => form.test(word))?.[1] ?? null;
    if (named === null && ordered === null)
      throw new ValueFault(null, { detail: `Unrecognized key word: "${word}".` });
    if (conflicts(chosen.style, named) || conflicts(chosen.order, ordered))
      throw new ValueFault(null, { detail: 'Conflicting "datestyle" specifications.' });
    chosen.style ??= named;
    chosen.order ??= ordered;
  }
  return `${chosen.style ?? style}, ${chosen.order ?? (chosen.style === 'German' ? 'DMY' : order)}`;
}

function conflicts(before: string | null, now: string | null): boolean {
  return before !== null && now !== null && before !== now;
}
