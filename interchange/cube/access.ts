import type { GrantDocument } from '../../policy/document.js';
import { isObject } from '../../src/base/is-object.js';
import { type ColumnDraft, type EntityDraft, PolicyDraft } from '../draft.js';
import { legalName, safeText, TakenNames } from '../names.js';
import { type ModelImportOptions, schemaOf } from '../options.js';
import type { ListItem, SourceMapping } from '../source.js';
import {
  attempt,
  conjunction,
  identifier,
  NoMapping,
  refuseControlCharacters,
  textLiteral,
} from '../sql-expression.js';
import type { MeasureContext } from './measure.js';
import { columnsOf, type GrantedColumns, mustKnow } from './members.js';
import type { Cube, Dimension } from './read.js';

/**
 * Converts the access policies of cubes to roles. A policy that no grant can express, either exactly or more narrowly,
 * grants nothing and is reported: an import never grants more than its source.
 */
export function rolesOf(
  cubes: Iterable<Cube>,
  ctx: MeasureContext,
  options: ModelImportOptions,
): PolicyDraft {
  const all = [...cubes];
  const draft = new PolicyDraft();
  const everyone = roleForAll(all);
  const policies = all.flatMap((cube) => policiesOf(cube, ctx, everyone));
  const labels = labelMasked(policies, all, options, draft);
  for (const { part, cube, roles, columns, rows } of policies) {
    const granted = [...columns.clear, ...columns.masked];
    const unmask = [...columns.clear].flatMap((name) => labels.get(columnNamed(name, cube)) ?? []);
    const grant: GrantDocument = {
      on: cube.entity.name,
      columns: granted,
      ...(rows !== null && { rows }),
      ...(unmask.length > 0 && { unmask }),
    };
    for (const role of roles) draft.add(role, grant, part.place);
    const given = roles.map((r) => `\`${r}\``).join(', ');
    part.note(
      null,
      'approximated',
      `it is a grant of role ${given}, which nobody has; joins need their keys granted too`,
      'high',
    );
  }
  for (const cube of all) reportMasks(cube, labels);
  return draft;
}

/** An access policy that a grant can express. */
interface CubePolicy {
  readonly part: SourceMapping;
  readonly cube: Cube;
  readonly roles: readonly string[];
  readonly columns: GrantedColumns;
  readonly rows: string | null;
}

function policiesOf(cube: Cube, ctx: MeasureContext, everyone: string): readonly CubePolicy[] {
  if (!cube.part.has('access_policy')) return [];
  return cube.part.parts('access_policy').flatMap((part) => {
    const read = attempt(() => policyOf(part, cube, ctx, everyone));
    if (read.ok) return [read.value];
    const groups = groupsIn(part).map((g) => `\`${safeText(g)}\``);
    const whose = groups.length === 0 ? '' : ` of ${groups.join(', ')}`;
    part.loseAll(`the access policy${whose} grants nobody anything: ${read.reason}`, 'high');
    return [];
  });
}

function policyOf(part: SourceMapping, cube: Cube, ctx: MeasureContext, everyone: string): CubePolicy {
  mustKnow(part, ['group', 'groups', 'role', 'member_level', 'row_level', 'conditions', 'member_masking']);
  if (part.has('conditions')) throw new NoMapping('it holds under conditions, and a grant has none');
  const roles = rolesIn(part, everyone);
  const rows = rowsOf(part, cube);
  return { part, cube, roles, columns: columnsOf(part, cube, ctx), rows };
}

/** Returns the role for policies of group `"*"`: `everyone`, or a variant if a group has that name. */
function roleForAll(cubes: readonly Cube[]): string {
  const taken = new TakenNames();
  for (const cube of cubes)
    for (const policy of cube.part.has('access_policy') ? cube.part.parts('access_policy') : [])
      for (const group of groupsIn(policy)) if (!taken.has(group)) taken.take(group);
  return taken.take('everyone');
}

function groupsIn(policy: SourceMapping): readonly string[] {
  const written = [policy.text('group'), policy.text('role')].filter((r) => r !== null);
  return [...written, ...(policy.has('groups') ? policy.texts('groups') : [])];
}

function rolesIn(policy: SourceMapping, everyone: string): readonly string[] {
  const all = groupsIn(policy);
  if (all.length === 0) throw new NoMapping('it names no group');
  return all.map((name) => {
    if (name === '*') return everyone;
    if (legalName(name) !== name) throw new NoMapping(`\`${safeText(name)}\` cannot be the name of a role`);
    return name;
  });
}

function columnNamed(name: string, { entity }: Cube): ColumnDraft {
  const column = entity.columns.find((c) => c.name === name);
  if (column === undefined) throw new TypeError(`entity ${entity.name} has no column ${name}`);
  return column;
}

/**
 * Gives each table column that a policy masks its own label. A label hides the column from all who do not unmask it, in
 * every cube over the table.
 */
function labelMasked(
  policies: readonly CubePolicy[],
  cubes: readonly Cube[],
  options: ModelImportOptions,
  draft: PolicyDraft,
): ReadonlyMap<ColumnDraft, string> {
  const byColumn = new Map<string, string>();
  const names = new TakenNames();
  for (const { cube, columns } of policies) {
    for (const name of columns.masked) {
      const key = upstreamKey(columnNamed(name, cube), cube, options);
      if (byColumn.has(key)) continue;
      const label = names.take(`${cube.entity.name}_${name}`.slice(0, 60));
      byColumn.set(key, label);
      draft.mask(label);
    }
  }
  const labels = new Map<ColumnDraft, string>();
  for (const cube of cubes) {
    for (const column of cube.entity.columns) {
      const label = byColumn.get(upstreamKey(column, cube, options));
      if (label === undefined) continue;
      column.sensitivity = label;
      labels.set(column, label);
    }
  }
  return labels;
}

/** Returns a key that identifies the table column behind an entity's column. */
function upstreamKey(
  { physical }: ColumnDraft,
  { entity: { table } }: Cube,
  options: ModelImportOptions,
): string {
  return JSON.stringify([table.connector, schemaOf(table, options), table.table, physical]);
}

/** Reports how the `mask` of each member was handled. */
function reportMasks(cube: Cube, labels: ReadonlyMap<ColumnDraft, string>): void {
  for (const { part, column } of cube.dimensions.values()) {
    if (column === null || !part.has('mask')) continue;
    if (labels.has(columnNamed(column, cube))) {
      const stated = isObject(part.members['mask']) ? part.child('mask') : null;
      part.ignore('mask');
      const reason = 'where the column is masked its value is NULL';
      (stated ?? part).note(stated === null ? 'mask' : 'sql', 'approximated', reason, 'high');
    } else part.lose('mask', 'no access policy that is a grant masks it');
  }
  for (const part of cube.measures.values())
    part.lose('mask', 'a metric is masked only through the columns that it is made of');
}

/** Returns the predicate for the rows that a policy shows; null if it shows all rows. @throws NoMapping */
function rowsOf(policy: SourceMapping, cube: Cube): string | null {
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
    throw new NoMapping(`\`${safeText(member)}\` is not a dimension of \`${cube.name}\``);
  return dimension;
}

const DEEPEST = 10;
const ATTRIBUTE =
  /^\{\s*(?:securityContext|security_context|userAttributes|user_attributes)\.([A-Za-z_][A-Za-z0-9_]{0,62})\s*\}$/;

/** Returns the predicate for one row filter. @throws NoMapping if the filter has no exact equivalent */
function rowsText(
  filter: SourceMapping,
  find: (member: string) => Dimension,
  entity: EntityDraft,
  depth = 0,
): string {
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
  if (dimension.column === null) throw new NoMapping(`dimension \`${dimension.name}\` is not a column here`);
  const column = identifier(dimension.column);
  const type = dimension.part.text('type') ?? 'string';
  return comparison(filter.needText('operator'), column, filter, (item) => literal(item, type));
}

function comparison(
  operator: string,
  column: string,
  filter: SourceMapping,
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

function reportAttributes(attributes: readonly string[], filter: SourceMapping): void {
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

/** Compares a column with literals. @throws NoMapping if the filter has no exact equivalent */
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
      if (!/^-?\d{1,30}(\.\d{1,30})?$/.test(text))
        throw new NoMapping(`\`${safeText(text)}\` is not a number`);
      return text;
    case 'boolean':
      if (text !== 'true' && text !== 'false')
        throw new NoMapping(`\`${safeText(text)}\` is neither true nor false`);
      return text;
    default:
      throw new NoMapping(`a comparison of a \`${safeText(type)}\` cannot be said exactly`);
  }
}
