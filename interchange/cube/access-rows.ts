import type { EntityDraft } from '../draft.js';
import { shown } from '../names.js';
import type { ListItem, Part } from '../part.js';
import { NoFit } from '../sql/expression.js';
import { identifier, textLiteral } from '../sql/print.js';
import type { Dimension } from './sql.js';

const DEEPEST = 10;
const ATTRIBUTE =
  /^\{\s*(?:securityContext|security_context|userAttributes|user_attributes)\.([A-Za-z_][A-Za-z0-9_]{0,62})\s*\}$/;

/** Predicate of one row filter of an access policy. @throws NoFit for operators without an exact equivalent */
export function rowsText(
  filter: Part,
  find: (member: string) => Dimension,
  entity: EntityDraft,
  depth = 0,
): string {
  if (depth > DEEPEST) throw new NoFit('its row filters are nested too deeply');
  for (const word of ['and', 'or'] as const) {
    if (!filter.has(word)) continue;
    if (filter.keys().length > 1) throw new NoFit(`\`${word}\` stands beside other keys`);
    const parts = filter.parts(word).map((f) => `(${rowsText(f, find, entity, depth + 1)})`);
    if (parts.length === 0) throw new NoFit(`\`${word}\` is empty`);
    return parts.join(` ${word} `);
  }
  for (const key of filter.keys())
    if (!['member', 'operator', 'values'].includes(key))
      throw new NoFit(`\`${shown(key)}\` of a row filter has no counterpart`);
  const dimension = find(filter.needText('member'));
  if (dimension.column === null) throw new NoFit(`dimension \`${dimension.name}\` is no column here`);
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
    throw new NoFit('its values are neither a list nor an attribute');
  const items = own === null ? filter.items('values') : [];
  const attributes =
    own !== null ? [own] : items.flatMap((i) => (typeof i === 'string' ? (attributeOf(i) ?? []) : []));
  if (attributes.length > 0) {
    const [name] = attributes;
    if (attributes.length > 1 || items.length > 1 || !['equals', 'in'].includes(operator))
      throw new NoFit('an attribute can only be equal to a column');
    filter.note(
      'values',
      'decision',
      `attribute \`${name}\` has to be given to each subject of the role; without it no row is seen`,
      'high',
    );
    return `${column} = attribute('${name}')`;
  }
  const values = items.map(literalOf);
  const [first, second] = values;
  if (first === undefined) throw new NoFit('it compares with nothing');
  const list = values.join(', ');
  switch (operator) {
    case 'equals':
    case 'in':
      return second === undefined ? `${column} = ${first}` : `${column} in (${list})`;
    // In Cube, NULL counts as not equal.
    case 'notEquals':
      return `${column} not in (${list}) or ${column} is null`;
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      if (second !== undefined) throw new NoFit(`\`${operator}\` compares with one value`);
      return `${column} ${ORDER[operator]} ${first}`;
    default:
      throw new NoFit(`the operator \`${shown(operator)}\` cannot be said exactly`);
  }
}

const ORDER = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

function attributeOf(text: string): string | null {
  return ATTRIBUTE.exec(text.trim())?.[1] ?? null;
}

/** A value as a literal of the dimension's type. Braces would be evaluated by Cube. */
function literal(item: ListItem, type: string): string {
  if (typeof item === 'object') throw new NoFit('a value of a row filter is a mapping');
  const text = `${item}`;
  if (/[{}]/.test(text)) throw new NoFit('a value of it is evaluated when it is asked');
  switch (type) {
    case 'string':
      return textLiteral(text);
    case 'number':
      if (!/^-?\d{1,30}(\.\d{1,30})?$/.test(text)) throw new NoFit(`\`${shown(text)}\` is no number`);
      return text;
    case 'boolean':
      if (text !== 'true' && text !== 'false')
        throw new NoFit(`\`${shown(text)}\` is neither true nor false`);
      return text;
    default:
      throw new NoFit(`a comparison of a \`${shown(type)}\` cannot be said exactly`);
  }
}
