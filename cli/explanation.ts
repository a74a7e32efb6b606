import { fieldsOf, membersOf, type ReplyFields, textOf as text } from './output.js';
import { formatTable } from './table.js';

export function formatExplanation(body: ReplyFields): string {
  const columns = membersOf(body['columns']);
  const parts = [
    `form     ${text(body['form'])}`,
    `objects  ${list(body['objects'])}`,
    `grants   ${list(body['grants'])}`,
    '',
    ...stepLines(fieldsOf(body['plan']), 0),
    '',
    formatTable(
      COLUMN_TABLE,
      columns.map((c) => [text(c['name']), text(c['type']), text(c['source'] ?? ''), masked(c)]),
    ),
  ];
  const upstream = fieldsOf(body['upstream']);
  if (typeof body['sql'] === 'string') parts.push('', body['sql'], ...upstreamLines(upstream));
  return parts.join('\n');
}

function upstreamLines(upstream: ReplyFields): readonly string[] {
  const parameters = membersOf(upstream['parameters']);
  const rows = parameters.map((p, i) => [`$${i + 1}`, text(p['type']), originText(p)]);
  const { plan } = upstream;
  return [
    ...(rows.length === 0 ? [] : ['', formatTable(PARAMETER_TABLE, rows)]),
    ...(typeof plan === 'string' ? ['', plan.split('\n').map(text).join('\n')] : []),
    ...(upstream['truncated'] === true ? ['… the plan goes on'] : []),
  ];
}

function originText({ from, value, number }: ReplyFields): string {
  const origin = text(from).replace('_', ' ');
  if (value !== undefined) return `${origin} ${text(value)}`;
  return number === undefined ? origin : `${origin} $${text(number)}`;
}

const PARAMETER_TABLE = ['parameter', 'type', 'from'];

const COLUMN_TABLE = ['column', 'type', 'source', 'masked'];

function masked(column: ReplyFields): string {
  return column['redacted'] === true ? 'yes' : '';
}

/** Formats a step with its inputs indented below it: `scan osl.entities.person: columns (name, email masked)`. */
function stepLines(step: ReplyFields, depth: number): readonly string[] {
  const { object, ...detail } = fieldsOf(step['detail']);
  const head = [text(step['step']), object === undefined ? '' : text(object)].filter((part) => part !== '');
  const facts = Object.entries(detail).filter(([, value]) => !isNothing(value));
  const said = facts.map(([name, value]) => factText(name.replaceAll('_', ' '), value)).join(', ');
  const line = `${'  '.repeat(depth)}${head.join(' ')}${said === '' ? '' : `: ${said}`}`;
  return [line, ...membersOf(step['inputs']).flatMap((input) => stepLines(input, depth + 1))];
}

function factText(name: string, value: unknown): string {
  if (value === true) return name;
  return Array.isArray(value) ? `${name} (${value.map(itemText).join(', ')})` : `${name} ${text(value)}`;
}

/** Formats an item, such as `email masked` for a column that is masked in all rows. */
function itemText(item: unknown): string {
  if (typeof item !== 'object' || item === null) return text(item);
  const { name, ...rest } = fieldsOf(item);
  const facts = Object.entries(rest).filter(([, value]) => !isNothing(value));
  return [text(name), ...facts.map(([fact, value]) => (value === 'all' ? fact : factText(fact, value)))].join(
    ' ',
  );
}

function isNothing(value: unknown): boolean {
  return (
    value === null ||
    value === false ||
    value === 'none' ||
    value === 0 ||
    (Array.isArray(value) && value.length === 0)
  );
}

function list(value: unknown): string {
  return Array.isArray(value) && value.length > 0 ? value.map(text).join(', ') : 'none';
}

const WORDS: ReadonlyMap<unknown, string> = new Map([
  ['clear', 'in the clear'],
  ['partly_masked', 'masked in some rows'],
  ['masked', 'masked'],
  ['aggregates', 'in figures over groups only'],
  ['nothing', 'not at all'],
]);

export function visibilityWords(sees: unknown): string {
  return WORDS.get(sees) ?? String(sees);
}
