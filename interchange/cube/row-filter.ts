import type { EntityDraft } from '../draft.js';
import { safeText } from '../names.js';
import type { ListItem, Part } from '../part.js';
import { NoMapping, refuseControlCharacters } from '../sql/expression.js';
import { conjunction, identifier, textLiteral } from '../sql/print.js';
import { mustKnow } from './known-keys.js';
import type { Cube, Dimension } from './sql.js';

/** Predicate for the rows that a policy shows; null if it shows all. @throws NoMapping */
export function rowsOf(policy: Part, cube: Cube): string | null {
  const level = policy.child('row_level');
  if (level === null) return null;
  mustKnow(level, ['filters', 'allow_all']);
  const all = level.flag('allow_all');
  if (all === true) {
    if (level.has('filters')) throw new NoMapping('it allows all rows, and filters them too');
    return null;
  }
  if (all === false) throw new NoMapping('it allows no rows');
  if (!level.has('filters')) throw new NoMapping('`row_level` says nothing that is read');
  const filters = level.parts('filters');
  if (filters.length === 0) throw new NoMapping('its list of row filters is empty');
  const find = (member: string): Dimension => dimensionNamed(member, cube);
  return conjunction(filters.map((f) => rowsText(f, find, cube.entity)));
}

function dimensionNamed(member: string, cube: Cube): Dimension {
  refuseControlCharacters(member);
  const bare = member.replace(/^\{\s*(.*?)\s*\}$/, '$1');
  const [first = '', second, more] = bare.split('.');
  const owner = second === undefined ? null : first;
  const own = owner === null || owner === 'CUBE' || owner.toLowerCase() === cube.name.toLowerCase();
  const dimension = cube.dimensions.get((second ?? first).toLowerCase());
  if (!own || more !== undefined || dimension === undefined)
    throw new NoMapping(`\`${safeText(member)}\` is no dimension of \`${cube.name}\``);
  return dimension;
}

const DEEPEST = 10;
const ATTRIBUTE =
  /^\{\s*(?:securityContext|security_context|userAttributes|user_attributes)\.([A-Za-z_][A-Za-z0-9_]{0,62})\s*\}$/;

/** Predicate for one row filter of an access policy. @throws NoMapping for operators without an exact equivalent */
function rowsText(filter: Part, find: (member: string) => Dimension, entity: EntityDraft, depth = 0): string {
  if (depth > DEEPEST) throw new NoMapping('its row filters are nested too deeply');
  for (const word of ['and', 'or'] as const) {
    if (!filter.has(word)) continue;
    if (filter.keys().length > 1) throw new NoMapping(`\`${word}\` stands beside other keys`);
    const parts = filter.parts(word).map((f) => `(${rowsText(f, find, entity, depth + 1)})`);
    if (parts.length === 0) throw new NoMapping(`\`${word}\` is empty`);
    return parts.join(` ${word} `);
  }
  for (const key of filter.keys())
    if (!['member', 'operator', 'values'].includes(key))
      throw new NoMapping(`\`${safeText(key)}\` of a row filter has no counterpart`);
  const dimension = find(filter.needText('member'));
  if (dimension.column === null) throw new NoMapping(`dimension \`${dimension.name}\` is no column here`);
  const column = identifier(dimension.column);
  const type = dimension.part.text('type') ?? 'string';
  return comparison(filter.needText('operator'), column, filter, (item) => literal(item, type));
}

function comparison(
  operator: string,
  column: string,
  filter: Part,
  literalOf: (item: ListItem) => string,
): string {
  if (operator === 'set') return `${column} is not null`;
  if (operator === 'notSet') return `${column} is null`;
  const own = filter.isText('values') ? attributeOf(filter.text('values') ?? '') : null;
  if (filter.isText('values') && own === null)
    throw new NoMapping('its values are neither a list nor an attribute');
  const items = own === null ? filter.items('values') : [];
  const attributes = own === null ? items.flatMap(attributeIn) : [own];
  if (attributes.length > 0 && operator !== 'equals' && operator !== 'in')
    throw new NoMapping('an attribute can only be equal to a column');
  reportAttributes(attributes, filter);
  const values = items.filter((item) => attributeIn(item).length === 0).map(literalOf);
  const matches = attributes.map((name) => `${column} = attribute('${name}')`);
  if (attributes.length === 0) return comparedWith(operator, column, values);
  const all = values.length === 0 ? matches : [comparedWith(operator, column, values), ...matches];
  return all.join(' or ');
}

function reportAttributes(attributes: readonly string[], filter: Part): void {
  if (attributes.length === 0) return;
  const names = attributes.map((name) => `\`${name}\``).join(', ');
  const what = attributes.length === 1 ? `attribute ${names} has` : `attributes ${names} have`;
  filter.note(
    'values',
    'decision',
    `${what} to be given to each subject of the role; without ${attributes.length === 1 ? 'it' : 'all of them'} no row is seen`,
    'high',
  );
}

/** Comparison of a column with literals of its type. @throws NoMapping */
function comparedWith(operator: string, column: string, values: readonly string[]): string {
  const [first, second] = values;
  if (first === undefined) throw new NoMapping('it compares with nothing');
  const list = values.join(', ');
  switch (operator) {
    case 'equals':
    case 'in':
      return second === undefined ? `${column} = ${first}` : `${column} in (${list})`;
    // In Cube, `notEquals` also matches NULL.
    case 'notEquals':
      return `${column} not in (${list}) or ${column} is null`;
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      if (second !== undefined) throw new NoMapping(`\`${operator}\` compares with one value`);
      return `${column} ${ORDER[operator]} ${first}`;
    default:
      throw new NoMapping(`the operator \`${safeText(operator)}\` cannot be said exactly`);
  }
}

const ORDER = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

function attributeIn(item: ListItem): readonly string[] {
  return typeof item === 'string' ? [attributeOf(item)].filter((name) => name !== null) : [];
}

function attributeOf(text: string): string | null {
  return ATTRIBUTE.exec(text.trim())?.[1] ?? null;
}

/** Formats a value as a literal of the dimension's type. Braces are rejected because Cube would evaluate them. */
function literal(item: ListItem, type: string): string {
  if (typeof item === 'object') throw new NoMapping('a value of a row filter is a mapping');
  const text = `${item}`;
  if (/[{}]/.test(text)) throw new NoMapping('a value of it is evaluated when it is asked');
  switch (type) {
    case 'string':
      return textLiteral(text);
    case 'number':
      if (!/^-?\d{1,30}(\.\d{1,30})?$/.test(text)) throw new NoMapping(`\`${safeText(text)}\` is no number`);
      return text;
    case 'boolean':
      if (text !== 'true' && text !== 'false')
        throw new NoMapping(`\`${safeText(text)}\` is neither true nor false`);
      return text;
    default:
      throw new NoMapping(`a comparison of a \`${safeText(type)}\` cannot be said exactly`);
  }
}
