import type { GrantDocument } from '../../policy/document.js';
import { inputsOf } from '../assemble.js';
import { type EntityDraft, PolicyDraft } from '../draft.js';
import { legalName, safeText } from '../names.js';
import type { ListItem, Part } from '../part.js';
import { attempt, NoMapping, namesIn, parseExpression, refuseControlCharacters } from '../sql/expression.js';
import { conjunction, identifier, textLiteral } from '../sql/print.js';
import { key, type MeasureContext } from './measure.js';
import { isHidden } from './read.js';
import type { Cube, Dimension } from './sql.js';

/**
 * Converts the access policies of cubes to roles. A policy that no grant can express, either exactly or more narrowly,
 * grants nothing and is reported: an import never grants more than its source.
 */
export function rolesOf(cubes: Iterable<Cube>, ctx: MeasureContext): PolicyDraft {
  const draft = new PolicyDraft();
  for (const cube of cubes) {
    if (!cube.part.has('access_policy')) continue;
    for (const policy of cube.part.parts('access_policy')) {
      const granted = attempt(() => grantOf(policy, cube, ctx));
      if (!granted.ok) {
        policy.loseAll(`the access policy grants nobody anything: ${granted.reason}`, 'high');
        continue;
      }
      for (const role of granted.value.roles) draft.add(role, granted.value.grant, policy.place);
      const given = granted.value.roles.map((r) => `\`${r}\``).join(', ');
      policy.note(
        null,
        'approximated',
        `it is a grant of role ${given}, which nobody has; joins need their keys granted too`,
        'high',
      );
    }
  }
  return draft;
}

interface RoleGrant {
  readonly roles: readonly string[];
  readonly grant: GrantDocument;
}

function grantOf(policy: Part, cube: Cube, ctx: MeasureContext): RoleGrant {
  mustKnow(policy, ['group', 'groups', 'role', 'member_level', 'row_level', 'conditions', 'member_masking']);
  if (policy.has('conditions')) throw new NoMapping('it holds under conditions, and a grant has none');
  if (policy.has('member_masking'))
    throw new NoMapping('it masks members, and a mask here goes by the label of a column');
  const roles = rolesIn(policy);
  const isIncluded = memberTest(policy);
  const columns = [...cube.dimensions.values()]
    .filter((d) => d.isPublic && isIncluded(d.name))
    .flatMap((d) => d.column ?? []);
  if (columns.length === 0) throw new NoMapping('no column of it is granted');
  metricsMustAgree(cube, new Set(columns), isIncluded, ctx);
  const rows = rowsOf(policy, cube);
  return { roles, grant: { on: cube.entity.name, columns, ...(rows !== null && { rows }) } };
}

/** Rejects unknown and empty keys, because they could stand for any restriction. */
function mustKnow(part: Part, keys: readonly string[]): void {
  for (const key of part.keys()) {
    if (!keys.includes(key))
      throw new NoMapping(`\`${safeText(key)}\` of an access policy has no counterpart`);
    if (!part.has(key)) throw new NoMapping(`its \`${key}\` is empty`);
  }
}

function rolesIn(policy: Part): readonly string[] {
  const written = [policy.text('group'), policy.text('role')].filter((r) => r !== null);
  const groups = policy.has('groups') ? policy.texts('groups') : [];
  const all = [...written, ...groups];
  if (all.length === 0) throw new NoMapping('it names no group');
  return all.map((name) => {
    if (name === '*') throw new NoMapping('it is for everybody, and a grant is for a role');
    if (legalName(name) !== name) throw new NoMapping(`\`${safeText(name)}\` cannot be the name of a role`);
    return name;
  });
}

/** Returns a test for members allowed by `member_level`; without that key, all are allowed. */
function memberTest(policy: Part): (name: string) => boolean {
  const level = policy.child('member_level');
  if (level === null) return () => true;
  mustKnow(level, ['includes', 'excludes']);
  const included = level.has('includes') ? new Set(level.texts('includes').map(lastPart)) : null;
  const excluded = new Set(level.has('excludes') ? level.texts('excludes').map(lastPart) : []);
  return (name) => {
    const own = name.toLowerCase();
    if (excluded.has('*') || excluded.has(own)) return false;
    return included === null || included.has('*') || included.has(own);
  };
}

/** Member name without the cube's name. */
function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}

/**
 * A metric is available exactly to callers who may read its columns. So a policy that grants a measure but not its
 * columns, or the columns but not the measure, cannot be expressed.
 */
function metricsMustAgree(
  cube: Cube,
  columns: ReadonlySet<string>,
  isIncluded: (name: string) => boolean,
  ctx: MeasureContext,
): void {
  for (const [name, part] of cube.measures) {
    const metric = ctx.made.get(key(cube, name)) ?? null;
    if (metric === null) continue;
    const granted = isIncluded(name) && !isHidden(part);
    const readable = isReadable(metric, cube, columns, ctx, []);
    if (granted && !readable)
      throw new NoMapping(`measure \`${name}\` is granted without the columns that it is made of`);
    if (!granted && readable)
      throw new NoMapping(`measure \`${name}\` is not granted, but all that it is made of is`);
  }
}

function isReadable(
  name: string,
  cube: Cube,
  columns: ReadonlySet<string>,
  ctx: MeasureContext,
  within: readonly string[],
): boolean {
  const document = ctx.draft.metric(name)?.document;
  if (document === undefined || within.includes(name)) return false;
  const inputs = inputsOf(document);
  if (inputs.length > 0) return inputs.every((i) => isReadable(i, cube, columns, ctx, [...within, name]));
  if (document.entity !== cube.entity.name) throw new NoMapping(`metric \`${name}\` is of another cube`);
  const texts = [document.expression, document.filter].filter((t) => t !== undefined);
  return texts.flatMap((t) => namesIn(parseExpression(t))).every((parts) => columns.has(parts.at(-1) ?? ''));
}

function rowsOf(policy: Part, cube: Cube): string | null {
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
  const attributes =
    own !== null ? [own] : items.flatMap((i) => (typeof i === 'string' ? (attributeOf(i) ?? []) : []));
  if (attributes.length > 0) {
    const [name] = attributes;
    if (attributes.length > 1 || items.length > 1 || !['equals', 'in'].includes(operator))
      throw new NoMapping('an attribute can only be equal to a column');
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
