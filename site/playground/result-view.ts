/** Shows the outcome of a compilation. */
import type { Compiled, Fault, MaskedColumn, Refused, Restriction, Statement } from './compile-question.js';
import { button, coloured, element, sentence } from './dom.js';
import { layOut } from './sql-layout.js';

/** @param text the text that the faults refer to */
export function outcomeView(outcome: Compiled | Refused, text: string, errors: string): readonly Node[] {
  if (outcome.kind === 'refused')
    return [
      element('h2', {}, `Refused, in the ${outcome.editor}`),
      ...outcome.faults.map((fault) => faultView(fault, text, errors)),
    ];
  return [
    ...outcome.statements.flatMap(statementView),
    element('h2', {}, 'Masked columns'),
    outcome.masked.length === 0
      ? element('p', {}, 'No masked column is used.')
      : element('ul', { class: 'pg-masked' }, ...outcome.masked.map(maskedView)),
    element('h2', {}, 'Row filters and minimum groups'),
    outcome.restrictions.length === 0
      ? element('p', {}, 'Every row of these entities may be read.')
      : element('ul', { class: 'pg-restrictions' }, ...outcome.restrictions.map(restrictionView)),
  ];
}

function faultView({ code, message, hint, range }: Fault, text: string, errors: string): HTMLElement {
  const view = element(
    'div',
    { class: 'pg-fault' },
    element('p', {}, element('a', { href: errors, class: 'pg-code' }, code), ' ', ...sentence(message)),
  );
  if (range !== null)
    view.append(element('pre', { tabindex: '0', 'aria-label': 'Place' }, placeOf(text, range)));
  if (hint !== null) view.append(element('p', { class: 'pg-hint' }, 'hint: ', ...sentence(hint)));
  return view;
}

/** Longest line that is shown whole with a fault. */
const MOST_SHOWN = 200;

/** The line of a fault with its number, and marks below the fault. */
function placeOf(text: string, [start, end]: readonly [number, number]): string {
  const before = text.lastIndexOf('\n', start - 1) + 1;
  const after = text.indexOf('\n', start);
  const line = text.slice(before, after < 0 ? text.length : after);
  const number = `${text.slice(0, start).split('\n').length}`;
  if (line.length > MOST_SHOWN) return `line ${number}`;
  const marks = Math.max(1, Math.min(end, before + line.length) - start);
  const indent = line.slice(0, start - before).replace(/[^\t]/g, ' ');
  return `${number} | ${line}\n${' '.repeat(number.length)} | ${indent}${'^'.repeat(marks)}`;
}

function statementView({ title, sql, parameters }: Statement): readonly Node[] {
  const laidOut = layOut(sql);
  const copy = button('Copy', () => {
    const done = navigator.clipboard.writeText(laidOut.map(({ text }) => text).join(''));
    done.then(
      () => copy.replaceChildren('Copied'),
      () => copy.replaceChildren('Not copied: select the text'),
    );
  });
  const head = element('div', { class: 'pg-head' }, element('h2', {}, title), copy);
  const code = element('pre', { class: 'pg-sql', tabindex: '0', 'aria-label': title, 'data-sql': sql });
  code.append(coloured(laidOut));
  if (parameters.length === 0) return [head, code];
  const rows = parameters.map(({ type, from }, i) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, `$${i + 1}`),
      element('td', {}, element('code', {}, type)),
      element('td', {}, from),
    ),
  );
  return [head, code, element('table', { class: 'pg-parameters' }, element('tbody', {}, ...rows))];
}

const MASKS: Readonly<Record<string, string>> = {
  redact: 'shown as [redacted], or NULL if it is not text',
  null: 'shown as NULL',
  hash: 'shown as a keyed hash, equal for equal values',
  partial: 'shown as its first character and ***',
  year: 'shown as the first day of its year',
  deny: 'cannot be used',
};

function maskedView({ column, label, mask, grants, partly, shown }: MaskedColumn): HTMLElement {
  const item = element('li', {}, element('code', {}, column));
  if (mask !== null) item.append(`: ${MASKS[mask] ?? mask}`);
  if (label !== null) item.append('. Label ', element('code', {}, label));
  if (mask !== null) item.append(', mask ', element('code', {}, mask));
  if (grants.length > 0) item.append('; not unmasked by ', ...codes(grants));
  if (partly) item.append('. Another grant shows it unmasked in its rows');
  if (!shown) item.append('. Only conditions, joins or groups use it, with its masked value');
  item.append('.');
  return item;
}

function codes(names: readonly string[]): readonly Node[] {
  return names.flatMap((name, i) => [
    ...(i === 0 ? [] : [document.createTextNode(', ')]),
    element('code', {}, name),
  ]);
}

function restrictionView({ grant, entity, rows, minGroupSize }: Restriction): HTMLElement {
  const item = element('li', {}, element('code', {}, entity), ' by ', element('code', {}, grant), ': ');
  if (rows !== null) item.append('rows where ', element('code', {}, rows));
  if (minGroupSize !== null)
    item.append(`${rows === null ? '' : ', and '}only groups of at least ${minGroupSize}`);
  return item;
}
