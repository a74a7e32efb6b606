import type { Node } from '@pgsql/types';
import type { TypeName } from 'osl-compiler';
import { CODES } from '../../src/model/manifest/index.js';
import { EntityDraft, type ImportDraft, type TableDraft } from '../draft.js';
import { legalName, safeText } from '../names.js';
import { type ModelImportOptions, reportSchema, tableNamed, upstreamOf } from '../options.js';
import { report, type SourceMapping, type SourcePlace } from '../source.js';
import {
  attempt,
  identifier,
  markedName,
  markOf,
  NoMapping,
  nameOf,
  parseExpression,
  print,
  refuseControlCharacters,
  statementOf,
  tableOfQuery,
  textLiteral,
} from '../sql-expression.js';

/** Keys of a cube that have no counterpart, with the reason to report. */
const OF_CUBES: Readonly<Record<string, string>> = {
  pre_aggregations: 'a rollup of the gateway is declared in the manifest and built by `osl rollup build`',
  segments: 'a named filter has no counterpart: write it into the metrics that need it',
  hierarchies: 'hierarchies have no counterpart',
  refresh_key: 'results are cached only for entities with `cache`, by their own age and watermark',
  sql_alias: 'nothing is called by an alias',
  rewrite_queries: 'a declared rollup is used wherever it cannot change the answer',
  meta: 'metadata of an application has no counterpart',
  calendar: 'calendars have no counterpart',
  folders: 'folders have no counterpart',
};

/**
 * Converts a cube to an entity, with its dimensions as columns. If it has no table, reports that and returns null.
 *
 * @param others all cubes, including those read later
 */
export function cubeOf(
  part: SourceMapping,
  draft: ImportDraft,
  options: ModelImportOptions,
  others: ReadonlyMap<string, Cube>,
): Cube | null {
  const name = part.needText('name');
  if (part.has('extends')) {
    part.loseAll(`cube \`${safeText(name)}\` takes over another one (\`extends\`): write out what it has`);
    loseAccess(part);
    return null;
  }
  const table = attempt(() => tableOf(part, options));
  if (!table.ok) {
    part.loseAll(`cube \`${safeText(name)}\` has no table: ${table.reason}`);
    loseAccess(part);
    return null;
  }
  const own = draft.named(draft.entityNames, name, part.place);
  if (own === null) return null;
  const entity = new EntityDraft(own, table.value, part.place);
  entity.description = textOf(part, 'description');
  const title = part.text('title');
  if (title !== null) draft.words([title], own, part.at('title'));
  for (const [key, why] of Object.entries(OF_CUBES)) part.lose(key, why);
  if (isHidden(part))
    part.note(
      null,
      'approximated',
      `cube \`${safeText(name)}\` is hidden; here its grants alone say who sees it`,
      'high',
    );
  const cube: Cube = { name, part, entity, dimensions: new Map(), measures: new Map() };
  addDimensions(cube, draft, others);
  for (const measure of part.parts('measures')) {
    const key = measure.needText('name').toLowerCase();
    if (cube.measures.has(key) || cube.dimensions.has(key)) duplicate(measure);
    cube.measures.set(key, measure);
  }
  settleKey(cube, options);
  settleTime(cube);
  draft.addEntity(entity);
  return cube;
}

function duplicate(part: SourceMapping): void {
  part.problem('name', CODES.duplicateName, `\`${safeText(part.needText('name'))}\` is declared twice`);
}

/** If a part that is not imported has an access policy, reports the policy as lost too, with high severity. */
export function loseAccess(part: SourceMapping): void {
  if (part.has('access_policy'))
    part.note('access_policy', 'lost', 'an access policy goes with it; nobody is granted anything', 'high');
}

export function textOf(part: SourceMapping, key: string): string | null {
  const text = part.text(key);
  if (text === null || text.trim() === '') return null;
  return part.cut(key, text, 'the text');
}

/** True if the part sets `public: false`, or the older `shown: false` or `visible: false`. */
export function isHidden(part: SourceMapping): boolean {
  return ['public', 'shown', 'visible'].map((key) => part.flag(key)).includes(false);
}

function tableOf(part: SourceMapping, options: ModelImportOptions): TableDraft {
  const source = part.text('data_source');
  const connector = source === null || source === 'default' ? options.connector : legalName(source);
  if (connector === null)
    throw new NoMapping(`\`${safeText(source ?? '')}\` cannot be the name of a connector`);
  const name = part.text('sql_table');
  const sql = part.text('sql');
  const parts =
    name !== null ? partsOf(name) : sql !== null ? tableOfQuery(sql.trim().replace(/;$/, '')) : null;
  if (parts === null) {
    const why =
      sql === null ? 'it names none' : 'its `sql` is more than `select *` from one table: make a view of it';
    throw new NoMapping(why);
  }
  const table = tableNamed(parts, connector);
  reportSchema(table, part.at(name !== null ? 'sql_table' : 'sql'), options);
  return table;
}

/** Splits a table name into its parts by parsing it as SQL. @throws NoMapping */
function partsOf(name: string): readonly string[] {
  if (/[{}]/.test(name)) throw new NoMapping('its `sql_table` holds a template');
  statementOf(`select * from ${name}\n`);
  const parts = tableOfQuery(`select * from ${name}`);
  if (parts === null) throw new NoMapping('its `sql_table` names no table');
  return parts;
}

const TYPES: ReadonlyMap<string, TypeName> = new Map<string, TypeName>([
  ['string', 'text'],
  ['number', 'numeric'],
  ['boolean', 'bool'],
  ['time', 'timestamp'],
]);

const OF_DIMENSIONS: Readonly<Record<string, string>> = {
  format: 'how a value is shown is the matter of who shows it',
  meta: 'metadata of an application has no counterpart',
  granularities: 'grains of one’s own have no counterpart',
  suggest_filter_values: 'suggestions have no counterpart',
  values_as_segments: 'segments have no counterpart',
  order: 'how values are ordered is the matter of the question',
  aliases: 'a dimension has one name',
};

function addDimensions(cube: Cube, draft: ImportDraft, others: ReadonlyMap<string, Cube>): void {
  for (const part of cube.part.parts('dimensions')) {
    const name = part.needText('name');
    if (cube.dimensions.has(name.toLowerCase())) duplicate(part);
    const dimension = dimensionOf(part, name);
    if (dimension !== null) cube.dimensions.set(name.toLowerCase(), dimension);
  }
  for (const dimension of cube.dimensions.values()) addColumn(dimension, cube, draft, others);
}

function dimensionOf(part: SourceMapping, name: string): Dimension | null {
  for (const key of ['latitude', 'sub_query', 'multi_stage']) {
    if (!part.has(key) || part.members[key] === false) continue;
    const why =
      key === 'sub_query'
        ? 'is a measure of another cube for each row'
        : 'is computed, and not by an expression';
    return part.loseAll(`dimension \`${safeText(name)}\` (\`${key}\`) ${why}`);
  }
  const sql = attempt(() => parseCubeSql(part.has('case') ? caseText(part) : (part.text('sql') ?? name)));
  if (!sql.ok) return part.loseAll(`dimension \`${safeText(name)}\` does not map: ${sql.reason}`);
  const isKey = part.flag('primary_key') === true;
  const hidden = isHidden(part);
  // Cube hides keys by default.
  const isPublic = !hidden && (!isKey || part.flag('public') === true || part.flag('shown') === true);
  return { name, part, sql: sql.value, isPublic, column: null };
}

/** Writes a dimension's `case` as a CASE expression. @throws NoMapping if a label is not a text */
function caseText(part: SourceMapping): string {
  const stated = part.child('case');
  const arms = (stated?.parts('when') ?? []).map(
    (arm) => `when (${arm.needText('sql')}) then ${textLiteral(labelIn(arm))}`,
  );
  if (stated === null || arms.length === 0) throw new NoMapping('its `case` has no conditions');
  const otherwise = stated.child('else');
  return `case ${arms.join(' ')}${otherwise === null ? '' : ` else ${textLiteral(labelIn(otherwise))}`} end`;
}

function labelIn(arm: SourceMapping): string {
  if (!arm.isText('label')) throw new NoMapping('a label of its `case` is not text');
  return arm.needText('label');
}

function addColumn(
  dimension: Dimension,
  cube: Cube,
  draft: ImportDraft,
  others: ReadonlyMap<string, Cube>,
): void {
  const { part, name, sql } = dimension;
  if (dimension.column !== null || sql === null) return;
  const isKey = part.flag('primary_key') === true;
  if (!dimension.isPublic && !isKey) {
    part.loseAll(`dimension \`${safeText(name)}\` is hidden, so it is not exposed`, 'high');
    return;
  }
  const found = attempt(() => physicalOf(dimension, cube, []));
  if (!found.ok || found.value === null) {
    if (!found.ok || isKey) {
      const why = found.ok ? 'a key is not a computed column' : found.reason;
      part.loseAll(`dimension \`${safeText(name)}\` does not map: ${why}`);
      return;
    }
    const what = `computed column \`${safeText(name)}\``;
    cube.entity.computing.push({
      name,
      part,
      description: textOf(part, 'description'),
      text: () => columnSql(sql, { cube, place: part.place, what, others }),
    });
    return;
  }
  const physical = found.value;
  const kind = part.text('type') ?? 'string';
  const type = TYPES.get(kind) ?? null;
  if (type === null) {
    part.loseAll(`a dimension of type \`${safeText(kind)}\` has no counterpart`);
    return;
  }
  const column = attempt(() =>
    cube.entity.add(name, physical, part.place, { description: textOf(part, 'description') }),
  );
  if (!column.ok) {
    part.loseAll(column.reason);
    return;
  }
  dimension.column = column.value.name;
  column.value.fallback = type;
  if (isKey && !dimension.isPublic)
    report(
      part.place,
      'approximated',
      `key \`${safeText(name)}\` is hidden; here it is a column, seen by whom a grant names it to`,
      'high',
    );
  for (const [key, why] of Object.entries(OF_DIMENSIONS)) part.lose(key, why);
  const title = part.text('title');
  if (title !== null) draft.words([title], `${cube.entity.name}.${column.value.name}`, part.at('title'));
}

/**
 * Returns the table column that a dimension reads, possibly through other dimensions; null if it is computed or belongs
 * to another cube.
 * @throws NoMapping
 */
function physicalOf({ sql, name }: Dimension, cube: Cube, within: readonly string[]): string | null {
  if (sql === null) return null;
  if (within.includes(name)) throw new NoMapping('it is made of itself');
  const reference = soleReference(sql, cube.name);
  if (reference === null) return null;
  if (reference.cube.toLowerCase() !== cube.name.toLowerCase()) return null;
  if (reference.kind === 'column') return reference.column;
  const other = cube.dimensions.get(reference.member.toLowerCase());
  if (other === undefined) throw new NoMapping(`\`${safeText(reference.member)}\` is not a dimension`);
  return physicalOf(other, cube, [...within, name]);
}

function settleKey(cube: Cube, options: ModelImportOptions): void {
  const { entity } = cube;
  const keys = [...cube.dimensions.values()].filter((d) => d.part.flag('primary_key') === true);
  const lost = keys.find((d) => d.column === null);
  const declared = keys.flatMap((d) => d.column ?? []);
  if (lost !== undefined) declared.length = 0; // a partial key is not a key
  const upstream = upstreamOf(entity.table, options)?.primaryKey;
  const configured = options.keys.get(cube.name) ?? (declared.length > 0 ? null : (upstream ?? []));
  if (configured === null) entity.key = declared;
  else entity.setKey(configured, cube.part.place);
}

/** Uses the cube's only time dimension as its event time. If there are several, reports that the user has to choose. */
function settleTime(cube: Cube): void {
  const times = [...cube.dimensions.values()].filter(
    (d) => d.column !== null && d.part.text('type') === 'time',
  );
  const [time, second] = times;
  if (time === undefined) return;
  const which = times.map((d) => `\`${d.name}\``).join(', ');
  if (second !== undefined) {
    const reason = `several times, ${which}: \`time_dimension\` of \`${cube.entity.name}\` is left open`;
    cube.part.note(null, 'decision', reason);
    return;
  }
  cube.entity.time = time.column;
  time.part.note(null, 'decision', `${which}, the only time, was taken for that of all metrics`);
}

/** Parsed SQL of a cube. Each reference in braces is replaced by a placeholder name with its index in `references`. */
export interface CubeSql {
  readonly node: Node;
  readonly references: readonly string[];
}

/** Object to which a name in a cube's SQL refers. */
type CubeReference =
  | { readonly kind: 'column'; readonly cube: string; readonly column: string }
  | { readonly kind: 'member'; readonly cube: string; readonly member: string };

const REFERENCE = /\$?\{\s*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?)\s*\}/g;

/**
 * Parses SQL with references such as `{CUBE}.amount`, `{CUBE.status}`, `{customers.id}` or `{revenue}`. Anything else
 * in braces is rejected.
 *
 * @throws NoMapping
 */
export function parseCubeSql(text: string): CubeSql {
  refuseControlCharacters(text);
  if (/\{[{%#]/.test(text)) throw new NoMapping('it holds a template, which is not evaluated');
  const references: string[] = [];
  const sql = text.replace(REFERENCE, (_, name: string) => {
    references.push(name);
    return markedName(references.length - 1);
  });
  if (/[{}]/.test(sql))
    throw new NoMapping('what stands between its braces is not a reference to a cube or a member');
  return { node: parseExpression(sql), references };
}

/** Resolves the name `parts` in the SQL of `cube`. @throws NoMapping */
export function referenceOf(parts: readonly string[], { references }: CubeSql, cube: string): CubeReference {
  const [first = '', second, more] = parts;
  if (more !== undefined) throw new NoMapping(`\`${safeText(parts.join('.'))}\` is not a column of a cube`);
  const mark = markOf(first);
  if (mark === null) {
    if (second === undefined) return { kind: 'column', cube, column: first };
    if (first.toLowerCase() !== cube.toLowerCase())
      throw new NoMapping(`\`${safeText(first)}\` is not a cube in braces`);
    return { kind: 'column', cube, column: second };
  }
  const [owner = '', member] = (references[mark] ?? '').split('.');
  const named = owner === 'CUBE' ? cube : owner;
  if (member !== undefined) {
    if (second !== undefined) throw new NoMapping('a member has no column');
    return { kind: 'member', cube: named, member };
  }
  if (second !== undefined) return { kind: 'column', cube: named, column: second };
  if (owner === 'CUBE') throw new NoMapping('a cube by itself is not a value');
  return { kind: 'member', cube, member: owner };
}

/** Resolves SQL that consists of a single name; null for any other SQL. @throws NoMapping */
function soleReference(sql: CubeSql, cube: string): CubeReference | null {
  const name = nameOf(sql.node);
  return name === null ? null : referenceOf(name, sql, cube);
}

/** A cube converted to an entity, with its members by lower-case name. */
export interface Cube {
  readonly name: string;
  readonly part: SourceMapping;
  readonly entity: EntityDraft;
  readonly dimensions: Map<string, Dimension>;
  readonly measures: Map<string, SourceMapping>;
}

export interface Dimension {
  readonly name: string;
  readonly part: SourceMapping;
  readonly sql: CubeSql | null;
  readonly isPublic: boolean;
  /** Name of the entity's column; null if the dimension is computed, hidden or lost. */
  column: string | null;
}

/** Context of an expression over the rows of a cube's entity. */
export interface CubeScope {
  readonly cube: Cube;
  readonly place: SourcePlace;
  /** Description for messages, such as `measure \`revenue\``. */
  readonly what: string;
  /** Other cubes whose rows the expression may use, by lower-case name; absent if it may use only rows of `cube`. */
  readonly others?: ReadonlyMap<string, Cube>;
}

/** Returns SQL for a column of a linked row, qualified by its entity. The binder rejects links to several rows. */
function otherText(reference: CubeReference, { others, place, what }: CubeScope): string {
  const name = safeText(reference.cube);
  if (others === undefined)
    throw new NoMapping(`it needs cube \`${name}\`, and a metric adds up the rows of one`);
  const other = others.get(reference.cube.toLowerCase());
  if (other === undefined) throw new NoMapping(`there is no cube \`${name}\``);
  const of = identifier(other.entity.name);
  if (reference.kind === 'column')
    return `${of}.${identifier(other.entity.expose(reference.column, place, what).name)}`;
  const dimension = other.dimensions.get(reference.member.toLowerCase());
  if (dimension === undefined)
    throw new NoMapping(`\`${safeText(reference.member)}\` is not a dimension of \`${name}\``);
  if (dimension.column !== null) return `${of}.${identifier(dimension.column)}`;
  const computed = dimension.isPublic ? legalName(dimension.name) : null;
  if (computed === null)
    throw new NoMapping(`dimension \`${safeText(dimension.name)}\` of \`${name}\` is not exposed`);
  return `${of}.${identifier(computed)}`;
}

/** Returns SQL for an expression over columns of the entity and of `others`. @throws NoMapping for measures */
export function columnSql(sql: CubeSql, scope: CubeScope, within: readonly string[] = []): string {
  return print(sql.node, {
    column: (parts) => columnText(referenceOf(parts, sql, scope.cube.name), scope, within),
  });
}

function columnText(reference: CubeReference, scope: CubeScope, within: readonly string[]): string {
  const { cube, place, what } = scope;
  if (reference.cube.toLowerCase() !== cube.name.toLowerCase()) return otherText(reference, scope);
  if (reference.kind === 'column') return identifier(cube.entity.expose(reference.column, place, what).name);
  const name = reference.member.toLowerCase();
  const dimension = cube.dimensions.get(name);
  if (dimension === undefined)
    throw new NoMapping(`\`${safeText(reference.member)}\` is not a dimension of \`${cube.name}\``);
  if (dimension.column !== null) return identifier(dimension.column);
  if (dimension.sql === null) throw new NoMapping(`dimension \`${dimension.name}\` has no SQL`);
  if (within.includes(name)) throw new NoMapping(`dimension \`${dimension.name}\` is made of itself`);
  if (within.length === 20)
    throw new NoMapping(`dimension \`${dimension.name}\` is made of dimensions of dimensions`);
  const text = columnSql(dimension.sql, scope, [...within, name]);
  return nameOf(dimension.sql.node) === null ? `(${text})` : text;
}
