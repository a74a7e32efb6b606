import { isDeepStrictEqual } from 'node:util';
import type { PolicyDocument } from '../policy/document.js';
import {
  compileManifest,
  type Manifest,
  type ManifestDocument,
  manifestShape,
  type Path,
  tableName,
  type UnplacedDiagnostic,
} from '../src/model/manifest/index.js';
import type { ColumnDraft, EntityDraft, ImportDraft, MetricBody, PolicyDraft } from './draft.js';
import { members } from './names.js';
import { type ModelImportOptions, schemaOf } from './options.js';
import { type Loss, report, type SourceFile, type SourcePlace } from './source.js';
import { attempt, namesIn, parseExpression } from './sql-expression.js';
import { assignTypes } from './types.js';

/** Result of an import: a manifest that loads, and a report of what could not be imported. */
export interface ImportResult {
  readonly document: ManifestDocument;
  readonly manifest: Manifest;
  /** Draft of a policy. It declares no subjects, so it grants nothing to anyone. */
  readonly policy: PolicyDocument;
  readonly losses: readonly Loss[];
}

const MAIN = 'main';

/** Builds the manifest from a draft. Parts that would not load are reported and left out. */
export function assemble(
  draft: ImportDraft,
  roles: PolicyDraft,
  files: readonly SourceFile[],
  options: ModelImportOptions,
): ImportResult {
  for (const entity of draft.entities) entity.settleComputed();
  assignTypes(draft, options);
  const { document, origins } = draftDocument(draft, options);
  const { document: settled, manifest } = loadablePart(document, origins);
  const policy = roles.policy(manifest.tenant ?? MAIN, manifest.catalog);
  return { document: settled, manifest, policy, losses: files.flatMap((f) => f.tracker.losses()) };
}

function hasKey(entity: EntityDraft): boolean {
  if (entity.key.length > 0 && entity.key.every((k) => entity.columns.some((c) => c.name === k))) return true;
  const reason = `\`${entity.name}\` has no primary key; name it with --key`;
  report(entity.place, 'lost', reason);
  return false;
}

/** Builds a draft's document and the origins of its members. Column types must already be assigned. */
export function draftDocument(
  draft: ImportDraft,
  options: ModelImportOptions,
): { document: ManifestDocument; origins: Origins } {
  const entities = draft.entities.filter(hasKey);
  const origins = new Map<string, SourcePlace>();
  const section = <T>(key: string, list: readonly { name: string; document: T; place: SourcePlace }[]) => {
    for (const { name, place } of list) origins.set(`${key}/${name}`, place);
    return members(list.map(({ name, document }) => [name, document] as const));
  };
  const named = entities.map((e) => ({ name: e.name, document: entityDocument(e, options), place: e.place }));
  for (const e of entities)
    for (const c of e.computedColumns) origins.set(`entities/${e.name}/computed/${c.name}`, c.place);
  const terms = draft.terms.map((t) => {
    const synonyms = t.synonyms.length === 0 ? {} : { synonyms: t.synonyms };
    return { name: t.term, document: { refers_to: t.refersTo, ...synonyms }, place: t.place };
  });
  const document: ManifestDocument = {
    version: 1,
    tenant: options.tenant ?? MAIN,
    connectors: connectorsOf(entities, options),
    entities: section('entities', named),
    ...(draft.relationships.length > 0 && { relationships: section('relationships', draft.relationships) }),
    ...(draft.metrics.length > 0 && { metrics: section('metrics', draft.metrics) }),
    ...(terms.length > 0 && { lexicon: section('lexicon', terms) }),
  };
  return { document, origins };
}

function tableKey({ table }: EntityDraft, options: ModelImportOptions): string {
  return tableName({ schema: schemaOf(table, options), table: table.table });
}

function entityDocument(
  entity: EntityDraft,
  options: ModelImportOptions,
): ManifestDocument['entities'][string] {
  const links = [...entity.links].filter((l) => !entity.key.includes(l));
  const columns = entity.columns.map((c) => {
    const renamed = c.physical === c.name ? {} : { column: c.physical };
    const said = c.description === null ? {} : { description: c.description };
    const declared = { ...renamed, ...said };
    return [c.name, Object.keys(declared).length === 0 ? null : declared] as const;
  });
  const computed = entity.computedColumns.map(({ name, expression, description }) => {
    return [name, { expression, ...(description !== null && { description }) }] as const;
  });
  return {
    ...(entity.description !== null && { description: entity.description }),
    source: { connector: entity.table.connector, table: tableKey(entity, options) },
    primary_key: entity.key,
    ...(links.length > 0 && { entity_key_columns: [...entity.key, ...links] }),
    columns: members(columns),
    ...(entity.computedColumns.length > 0 && { computed: members(computed) }),
    ...(entity.time !== null && { time_dimension: entity.time }),
  };
}

function connectorsOf(
  entities: readonly EntityDraft[],
  options: ModelImportOptions,
): ManifestDocument['connectors'] {
  const names = [...new Set([options.connector, ...entities.map((e) => e.table.connector)])];
  return members(
    names.map((name) => {
      const own = entities.filter((e) => e.table.connector === name);
      const url = name === options.connector ? 'DATABASE_URL' : variableFor(name);
      const kind = options.kind === 'pglite' ? { kind: options.kind } : { kind: options.kind, url_env: url };
      return [name, { ...kind, tables: tablesOf(own, options) }] as const;
    }),
  );
}

/** Returns the name of the environment variable for a connector's URL. It must begin with a letter. */
function variableFor(connector: string): string {
  const upper = connector.toUpperCase();
  return `${/^[A-Z]/.test(upper) ? upper : `DB${upper}`}_URL`;
}

type ConnectorTables = ManifestDocument['connectors'][string]['tables'];

function tablesOf(entities: readonly EntityDraft[], options: ModelImportOptions): ConnectorTables {
  const tables = new Map<string, Map<string, ConnectorTables[string]['columns'][string]>>();
  for (const entity of entities) {
    const key = tableKey(entity, options);
    const columns = tables.get(key) ?? new Map();
    tables.set(key, columns);
    for (const c of entity.columns) {
      const known = columns.get(c.physical);
      if (known === undefined) columns.set(c.physical, columnOf(c, entity));
      // A label from one entity applies to the column in all entities over this table.
      else if (known.sensitivity === undefined && c.sensitivity !== null)
        columns.set(c.physical, { ...known, sensitivity: c.sensitivity });
    }
  }
  return members([...tables].map(([key, columns]) => [key, { columns: members([...columns]) }] as const));
}

function columnOf(column: ColumnDraft, entity: EntityDraft): ConnectorTables[string]['columns'][string] {
  const nullable = column.nullable === false && !entity.key.includes(column.name) ? { nullable: false } : {};
  const label = column.sensitivity === null ? {} : { sensitivity: column.sensitivity };
  const labels = column.labels === null ? {} : { labels: column.labels };
  const stored = column.stored === null ? {} : { stored: column.stored, ...labels };
  return { type: column.declared ?? column.type ?? 'text', ...stored, ...label, ...nullable };
}

/** Origins of a document's members, keyed by path, such as `metrics/revenue`. */
export interface Origins {
  get(key: string): SourcePlace | undefined;
}

const SECTIONS = ['entities', 'relationships', 'bridges', 'facets', 'rollups', 'metrics', 'lexicon'] as const;
type Section = (typeof SECTIONS)[number];

/**
 * Returns the part of `document` that loads. Members rejected by the schema or the compiler are removed along with
 * everything that depends on them, and reported at their origin. Requires `ready()` of osl-compiler.
 */
export function loadablePart(
  document: ManifestDocument,
  origins: Origins,
): { readonly document: ManifestDocument; readonly manifest: Manifest } {
  let current = document;
  const gone = new Set<string>();
  for (;;) {
    const shape = manifestShape(current);
    const compiled = shape.length > 0 ? { ok: false as const, problems: shape } : compileManifest(current);
    if (compiled.ok) return { document: current, manifest: compiled.manifest };
    const next = without(current, compiled.problems, origins, gone);
    // Terminates because every round removes something.
    if (next === null || isDeepStrictEqual(next, current))
      throw new TypeError(`an import cannot be mended: ${messages(compiled.problems)}`);
    current = next;
  }
}

function messages(problems: readonly UnplacedDiagnostic[]): string {
  return problems.map((p) => `${p.path.join('/')}: ${p.message}`).join('; ');
}

function without(
  document: ManifestDocument,
  problems: readonly UnplacedDiagnostic[],
  origins: Origins,
  gone: Set<string>,
): ManifestDocument | null {
  const computed = problems.filter(isComputed);
  if (computed.length > 0) return withoutComputed(document, computed, origins);
  const optional = problems.filter(isOptional);
  if (optional.length > 0) return withoutMembers(document, optional, origins);
  if (problems.some(({ path }) => path[0] === 'raw_sql')) return withoutRawSql(document, problems, origins);
  const faults = new Map<string, UnplacedDiagnostic>();
  for (const problem of problems) {
    const key = memberOf(problem.path);
    if (key !== null && !faults.has(key)) faults.set(key, problem);
  }
  if (faults.size === 0) return null;
  for (const [key, { message, path }] of faults) {
    gone.add(key);
    const [section, name] = splitKey(key);
    const where = path.length > 2 ? ` (${path.slice(2).join('.')})` : '';
    reportAt(origins, key, `${NOUNS[section]} \`${name}\` does not fit${where}: ${message}`);
  }
  dependents(document, gone, origins);
  return prune(document, gone);
}

function isComputed({ path }: UnplacedDiagnostic): boolean {
  return path[0] === 'entities' && path[2] === 'computed' && path[3] !== undefined;
}

function withoutComputed(
  document: ManifestDocument,
  problems: readonly UnplacedDiagnostic[],
  origins: Origins,
): ManifestDocument {
  const gone = new Map(problems.map((p) => [p.path.slice(0, 4).join('/'), p] as const));
  for (const [key, { message }] of gone)
    reportAt(origins, key, `a computed column, \`${key.split('/').at(-1)}\`, does not fit: ${message}`);
  const entities = Object.entries(document.entities).map(([name, entity]) => {
    if (entity.computed === undefined) return [name, entity] as const;
    const left = Object.entries(entity.computed).filter(([c]) => !gone.has(`entities/${name}/computed/${c}`));
    const { computed: _, ...rest } = entity;
    return [name, left.length === 0 ? rest : { ...rest, computed: members(left) }] as const;
  });
  return { ...document, entities: members(entities) };
}

/** Members that can be removed from an entity without removing the entity. */
const OPTIONAL = ['time_dimension', 'legs', 'derived', 'composition', 'cache'] as const;

function isOptional({ path }: UnplacedDiagnostic): boolean {
  return path[0] === 'entities' && OPTIONAL.some((key) => key === path[2]);
}

function withoutMembers(
  document: ManifestDocument,
  problems: readonly UnplacedDiagnostic[],
  origins: Origins,
): ManifestDocument {
  const entities: Record<string, Record<string, unknown>> = members(
    Object.entries(document.entities).map(([name, entity]) => [name, { ...entity }] as const),
  );
  for (const { path, message } of problems) {
    const [, name, key] = path.map((step) => `${step}`);
    const entity = entities[name ?? ''];
    if (entity === undefined || key === undefined || entity[key] === undefined) continue;
    reportAt(origins, `entities/${name}`, `\`${key}\` of \`${name}\` does not fit: ${message}`);
    delete entity[key];
  }
  return { ...document, entities } as unknown as ManifestDocument; // the same entities with fewer members
}

/** Removes the tables in `raw_sql` that have problems, or all of it if it has itself, and reports them. */
function withoutRawSql(
  document: ManifestDocument,
  problems: readonly UnplacedDiagnostic[],
  origins: Origins,
): ManifestDocument {
  const { raw_sql: raw, ...rest } = document;
  const gone = new Set<number>();
  for (const { path, message } of problems) {
    if (path[0] !== 'raw_sql') continue;
    const what = path[2] === undefined ? '`raw_sql`' : 'a table of `raw_sql`';
    reportAt(origins, 'raw_sql', `${what} does not fit: ${message}`);
    if (path[2] === undefined) return rest;
    gone.add(Number(path[2]));
  }
  const allow = (raw?.allow ?? []).filter((_, i) => !gone.has(i));
  return { ...rest, raw_sql: { allow } };
}

const NOUNS: Readonly<Record<Section, string>> = {
  entities: 'entity',
  relationships: 'relationship',
  bridges: 'bridge',
  facets: 'facet',
  rollups: 'rollup',
  metrics: 'metric',
  lexicon: 'term',
};

function reportAt(origins: Origins, key: string, reason: string): void {
  const place = origins.get(key);
  if (place === undefined) throw new TypeError(`\`${key}\` of an import has no origin`);
  report(place, 'lost', reason);
}

function splitKey(key: string): readonly [Section, string] {
  const slash = key.indexOf('/');
  return [key.slice(0, slash) as Section, key.slice(slash + 1)]; // created by `memberOf`, or from a section's name
}

function memberOf(path: Path): string | null {
  const [section, name] = path;
  const known = SECTIONS.find((s) => s === section);
  return known === undefined || name === undefined ? null : `${known}/${name}`;
}

/** Adds to `gone` everything that depends on its members, so that a chain of metrics is removed in one round. */
function dependents(document: ManifestDocument, gone: Set<string>, origins: Origins): void {
  const made = new Map<string, string[]>();
  const note = (user: string, of: string): void => {
    made.set(of, [...(made.get(of) ?? []), user]);
  };
  for (const [name, metric] of Object.entries(document.metrics ?? {})) {
    for (const input of inputsOf(metric)) note(`metrics/${name}`, `metrics/${input}`);
    if (metric.entity !== undefined) note(`metrics/${name}`, `entities/${metric.entity}`);
  }
  for (const [name, r] of Object.entries(document.relationships ?? {})) {
    for (const end of [r.from, r.to].flat())
      note(`relationships/${name}`, `entities/${end.slice(0, end.indexOf('.'))}`);
  }
  for (const [name, b] of Object.entries(document.bridges ?? {}))
    for (const side of [b.left, b.right]) note(`bridges/${name}`, `entities/${side.entity}`);
  const open = [...gone];
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    for (const user of made.get(key) ?? []) {
      if (gone.has(user)) continue;
      gone.add(user);
      open.push(user);
      const [section, name] = splitKey(user);
      reportAt(
        origins,
        user,
        `${NOUNS[section]} \`${name}\` is made of \`${splitKey(key)[1]}\`, which was lost`,
      );
    }
  }
}

export function inputsOf(metric: MetricBody): readonly string[] {
  const inputs = [
    metric.numerator,
    metric.denominator,
    metric.metric,
    metric.base,
    metric.conversion,
  ].flatMap((i) => (i === undefined ? [] : [typeof i === 'string' ? i : i.metric]));
  if (metric.type !== 'derived' || metric.expression === undefined) return inputs;
  const { expression } = metric;
  const parsed = attempt(() => namesIn(parseExpression(expression)).map((parts) => parts.join('.')));
  return parsed.ok ? [...inputs, ...parsed.value] : inputs;
}

function prune(document: ManifestDocument, gone: ReadonlySet<string>): ManifestDocument {
  const out: Record<string, unknown> = { ...document };
  for (const section of SECTIONS) {
    const part: object | undefined = document[section];
    if (part === undefined) continue;
    const kept = Object.entries(part).filter(([name]) => !gone.has(`${section}/${name}`));
    if (kept.length > 0 || section === 'entities') out[section] = members(kept);
    else delete out[section];
  }
  return out as unknown as ManifestDocument; // the same sections with fewer members
}
