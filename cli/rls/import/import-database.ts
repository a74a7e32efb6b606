import type { Survey } from '../../../src/engine/index.js';
import { type AdoptionCandidate, candidatesIn, readUpstream } from '../../../src/model/discovery/index.js';
import { parseManifest, tableName } from '../../../src/model/manifest/index.js';
import {
  chooseTables,
  countKey,
  type DraftedManifest,
  declaredKey,
  draftManifest,
  type ExcludedTable,
} from '../../proposal/index.js';
import type { SecurityCatalog } from '../catalog/catalog.js';
import { type CheckScope, checkedDatabase } from '../checked-database.js';
import { type ImportedPolicy, importedPolicy } from './draft.js';
import { readerScript } from './reader.js';
import { type NamedView, withViewEntities } from './view-entities.js';
import { passedKey } from './view-key.js';
import { nameOf, viewPlans } from './view-plan.js';

export interface ImportOptions {
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
  /** Tables that are no entities, with the reason. */
  readonly leftOut: readonly ExcludedTable[];
  /** Statements that create the database role of the gateway, which sees all rows of the entities. */
  readerSql(role: string): string;
}

/**
 * Writes the row security of a database as manifest and policy. Changes nothing there. Requires `ready()` of
 * osl-compiler.
 *
 * @throws the errors of reading the schema
 */
export async function importDatabase(
  { system }: Pick<Survey, 'system'>,
  catalog: SecurityCatalog,
  { scope, tenant, urlEnv }: ImportOptions,
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
    // A table that links two others is read for memberships, so it is an entity as well.
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

/** Time for counting keys of views, whose queries may be slow. Later views have no key. */
const VIEWS_MS = 30_000;

function isView({ kind }: AdoptionCandidate): boolean {
  return kind !== 'table';
}
