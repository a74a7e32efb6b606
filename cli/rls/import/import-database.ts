import type { Relation as ModelRelation } from 'osl-compiler';
import { identifier } from 'osl-compiler/sql-text';
import type { Survey } from '../../../src/engine/index.js';
import {
  type AdoptionCandidate,
  candidatesIn,
  NameAllocator,
  readUpstream,
} from '../../../src/model/discovery/index.js';
import {
  type ManifestDocument,
  ManifestProblems,
  nameFrom,
  parseManifest,
  RESERVED,
  tableName,
  withSuffix,
} from '../../../src/model/manifest/index.js';
import {
  CONNECTOR,
  chooseTables,
  countKey,
  type DraftedManifest,
  declaredKey,
  draftManifest,
  type ExcludedTable,
} from '../../proposal/index.js';
import { type PgRelation, type Policy, PUBLIC, qualified, type SecurityCatalog } from '../catalog/catalog.js';
import { type CheckedDatabase, type CheckScope, checkedDatabase, governs } from '../database.js';
import { type ImportedPolicy, importedPolicy } from './draft.js';
import { Untranslatable } from './scope.js';
import { simpleView } from './simple-view.js';
import { nameOf, type TableView, viewPlans } from './view-plan.js';

export interface RlsImportOptions {
  readonly scope: CheckScope;
  readonly tenant: string;
  readonly urlEnv: string;
}

export interface ImportedDatabase {
  readonly manifest: DraftedManifest;
  readonly policy: ImportedPolicy['document'];
  readonly attributes: ImportedPolicy['attributes'];
  readonly notes: ImportedPolicy['notes'];
  readonly origins: ImportedPolicy['origins'];
  /** Tables and views that did not become entities, with the reason. */
  readonly leftOut: readonly ExcludedTable[];
  /** Statements that create the database role of the gateway, which sees all rows of the entities. */
  readerSql(role: string): string;
}

/**
 * Translates the row security of a database to a manifest and a policy. Only reads the database. Requires `ready()` of
 * osl-compiler.
 *
 * @throws the errors of reading the schema
 */
export async function importDatabase(
  { system }: Pick<Survey, 'system'>,
  catalog: SecurityCatalog,
  { scope, tenant, urlEnv }: RlsImportOptions,
): Promise<ImportedDatabase> {
  const upstream = await readUpstream(system, scope.schemas === null ? null : [...scope.schemas]);
  const nothing = parseManifest(
    '{version: 1, connectors: {db: {kind: pglite, tables: {}}}, entities: {}}',
    'nothing',
  );
  const database = checkedDatabase(catalog, scope);
  const plans = new Map([...viewPlans(database).values()].map((plan) => [nameOf(plan.view), plan]));
  const found = candidatesIn(upstream, 'db', nothing);
  const chosen = chooseTables(
    found.filter(
      (candidate) => candidate.kind === 'table' || plans.get(tableName(candidate))?.kind === 'view',
    ),
    [],
  );
  const keyed: AdoptionCandidate[] = [];
  const deadline = Date.now() + VIEWS_MS;
  const tablesFirst = [...chosen.candidates].sort((a, b) => Number(isView(a)) - Number(isView(b)));
  for (const candidate of tablesFirst) {
    const declared = declaredKey(candidate) ?? passedKey(database, candidate, keyed);
    const isCounted = declared === null && (!isView(candidate) || Date.now() < deadline);
    const counted = isCounted ? await countKey(system, candidate) : null;
    const key = declared ?? (counted === null || counted.kind === 'none' ? [] : counted.columns);
    // Attributes can be read from tables that link two others, so such a table becomes an entity as well.
    keyed.push({ ...candidate, key, proposal: 'entity' });
  }
  const tables = draftManifest(keyed, new Map(), { tenant, urlEnv, rowSecurity: false, joins: 'any' });
  const views = found.flatMap((candidate): NamedView[] => {
    const plan = plans.get(tableName(candidate));
    return plan?.kind === 'table' ? [{ plan, name: candidate.name }] : [];
  });
  const manifest = withViewEntities(tables, views);
  const { document, attributes, notes, origins } = importedPolicy({
    database,
    manifest: manifest.manifest,
    tenant,
  });
  const own = new Set([...manifest.manifest.catalog.relations.values()].map(tableName));
  const relations = database.relations.filter((r) => own.has(nameOf(r)));
  return {
    manifest,
    policy: document,
    attributes,
    notes,
    origins,
    leftOut: [...chosen.leftOut, ...manifest.leftOut],
    readerSql: (role) => readerScript(role, relations, catalog),
  };
}

/** Time in ms from the start of the search for keys. Later, no queries, which may be slow, look for keys of views. */
const VIEWS_MS = 30_000;

function isView({ kind }: AdoptionCandidate): boolean {
  return kind !== 'table';
}

/** The columns of a one-table view that show the table's key; null if it is not shown, or for other relations. */
function passedKey(
  db: CheckedDatabase,
  view: AdoptionCandidate,
  tables: readonly AdoptionCandidate[],
): readonly string[] | null {
  const relation = db.relationNamed({ schema: view.schema, name: view.table });
  if (relation === null || relation.view === null) return null;
  try {
    const { base, columns } = simpleView(db, relation);
    const table = tables.find((one) => one.schema === base.schema && one.table === base.name);
    const key = (table?.key ?? []).map((of) =>
      columns.find((column) => column.kind === 'plain' && column.of === of),
    );
    const names = key.flatMap((column) => column?.name ?? []);
    return names.length > 0 && names.length === key.length ? names : null;
  } catch (error) {
    if (error instanceof Untranslatable) return null;
    throw error;
  }
}

const HEAD = `-- The database role of the gateway: it may read the imported tables and views and nothing else, and it sees all of
-- their rows, since the gateway decides who sees which. Run this as the owner of them; choose the password first.`;

const RESTRICTIVE = `
-- These restrictive policies are for everybody, so also for the role of the gateway, which has none of the settings that
-- they read. They are limited to the roles that exist now: name further roles in them when you create some.`;

/** Statements that create the role with which the gateway reads `relations`. */
function readerScript(role: string, relations: readonly PgRelation[], catalog: SecurityCatalog): string {
  const name = identifier(role);
  const schemas = [...new Set(relations.map((relation) => relation.schema))];
  const secured = relations.filter((relation) => relation.rowSecurity !== 'off');
  const limits = secured.flatMap((relation) =>
    relation.policies.filter(isForEverybody).map((policy) => ({ relation, policy })),
  );
  const others = [...catalog.roles.values()]
    .filter((one) => !one.superuser && !one.name.startsWith('pg_') && one.name !== role)
    .map((one) => identifier(one.name));
  return [
    HEAD,
    `CREATE ROLE ${name} LOGIN PASSWORD 'choose one';`,
    ...schemas.map((schema) => `GRANT USAGE ON SCHEMA ${identifier(schema)} TO ${name};`),
    ...relations.map((relation) => `GRANT SELECT ON ${qualified(relation)} TO ${name};`),
    ...secured.map(
      (relation) => `CREATE POLICY ${POLICY} ON ${qualified(relation)} FOR SELECT TO ${name} USING (true);`,
    ),
    ...(limits.length === 0 ? [] : [RESTRICTIVE]),
    ...limits.map(
      ({ relation, policy }) =>
        `ALTER POLICY ${identifier(policy.name)} ON ${qualified(relation)} TO ${others.join(', ')};`,
    ),
    '',
  ].join('\n');
}

const POLICY = 'osl_gateway';

/** True for a restrictive policy on SELECT that applies to every role. */
function isForEverybody(policy: Policy): boolean {
  return !policy.permissive && governs(policy, 'SELECT') && policy.roles.includes(PUBLIC);
}

/** A view, and the name for its entity. */
interface NamedView {
  readonly plan: TableView;
  readonly name: string;
}

/**
 * Adds entities for views over tables of the manifest. Each column that a view masks gets a sensitivity label, which
 * holds for all entities over the table. A view whose entity does not compile is left out, with the reason.
 */
function withViewEntities(drafted: DraftedManifest, views: readonly NamedView[]): DraftedManifest {
  const all = attempt(drafted, views);
  if (typeof all !== 'string') return all;
  const leftOut: ExcludedTable[] = [];
  let sound = drafted;
  for (const named of views) {
    const one = attempt(sound, [named]);
    if (typeof one !== 'string') sound = one;
    else leftOut.push({ table: nameOf(named.plan.view), reason: one });
  }
  return { ...sound, leftOut: [...sound.leftOut, ...leftOut] };
}

/** The manifest with entities for the views; if it does not compile, the error message. */
function attempt(drafted: DraftedManifest, views: readonly NamedView[]): DraftedManifest | string {
  let document = drafted.document;
  for (const named of views) document = withView(document, drafted, named);
  try {
    return { ...drafted, document, manifest: parseManifest(JSON.stringify(document), 'manifest.yaml') };
  } catch (error) {
    if (!(error instanceof ManifestProblems)) throw error;
    return error.diagnostics[0]?.message ?? error.message;
  }
}

function withView(
  document: ManifestDocument,
  { manifest }: DraftedManifest,
  { plan, name }: NamedView,
): ManifestDocument {
  const table = nameOf(plan.query.base);
  const model = [...manifest.catalog.relations.values()].find((relation) => tableName(relation) === table);
  const connector = document.connectors[CONNECTOR];
  const source = model === undefined ? undefined : document.entities[model.name]?.source;
  // The table is not an entity, so the view does not become one either, and its grants are refused.
  if (model === undefined || connector === undefined || source === undefined) return document;
  const declared = new Map(Object.entries(connector.tables[table]?.columns ?? {}));
  const columns = labelled(declared, plan, model, connector.tables);
  const tables = { ...connector.tables, [table]: { columns: Object.fromEntries(columns) } };
  return {
    ...document,
    connectors: { ...document.connectors, [CONNECTOR]: { ...connector, tables } },
    entities: { ...document.entities, [name]: { source, ...entityOf(plan, model) } },
  };
}

type EntityEntry = ManifestDocument['entities'][string];
type Tables = ManifestDocument['connectors'][string]['tables'];
type ColumnEntries = ReadonlyMap<string, Tables[string]['columns'][string]>;

/** The columns of the table, with a label for each that the view masks. Keys get none: joins need their values. */
function labelled(
  columns: ColumnEntries,
  { query }: TableView,
  model: ModelRelation,
  all: Tables,
): ColumnEntries {
  const taken = new Set(
    Object.values(all).flatMap((one) => Object.values(one.columns).flatMap((c) => c.sensitivity ?? [])),
  );
  const masked = new Set(query.columns.flatMap((column) => (column.kind === 'masked' ? [column.of] : [])));
  return new Map(
    [...columns].map(([column, declared]) => {
      if (!masked.has(column) || declared.sensitivity !== undefined || isKey(model, column))
        return [column, declared];
      return [column, { ...declared, sensitivity: freeLabel(`${model.name}_${column}`, taken) }];
    }),
  );
}

function isKey({ columns, primaryKey, sealedKeys }: ModelRelation, column: string): boolean {
  const name = columns.find(({ physical }) => physical === column)?.name ?? column;
  return primaryKey.includes(name) || sealedKeys.includes(name);
}

/** Returns a label that no other column has, so that unmasking one column for a role unmasks no other. */
function freeLabel(wanted: string, taken: Set<string>): string {
  const base = nameFrom(wanted);
  for (let n = 1; ; n++) {
    const label = n === 1 ? base : withSuffix(base, `_${n}`);
    if (taken.has(label)) continue;
    taken.add(label);
    return label;
  }
}

/**
 * The entity for a view: the view's columns under the view's names, then the remaining columns of its table, which
 * filters may need.
 */
function entityOf({ view, query }: TableView, model: ModelRelation): Omit<EntityEntry, 'source'> {
  const names = new NameAllocator(RESERVED);
  const byColumn = new Map<string, string>();
  for (const column of query.columns) {
    if (column.kind === 'computed' || !model.columns.some(({ physical }) => physical === column.of)) continue;
    byColumn.set(column.of, names.free(column.name, 'column'));
  }
  const shown = new Set(query.columns.flatMap((column) => (column.kind === 'plain' ? [column.of] : [])));
  for (const { name, physical } of model.columns)
    if (!byColumn.has(physical)) byColumn.set(physical, names.free(name, 'column'));
  const key = model.primaryKey.map((name) => model.columns.find((c) => c.name === name)?.physical ?? name);
  return {
    description: `Rows of ${qualified(query.base)} as the view ${qualified(view)} shows them.`,
    ...(key.length > 0 &&
      key.every((column) => shown.has(column)) && {
        primary_key: key.map((column) => byColumn.get(column) ?? column),
      }),
    columns: Object.fromEntries(
      [...byColumn].map(([column, name]) => [name, column === name ? null : { column }]),
    ),
  };
}
