import { sql } from '../../../src/base/sql.js';
import { surveyPostgres } from '../../../src/engine/index.js';
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
import { readCatalog } from '../catalog/read.js';
import { checkedDatabase } from '../checked-database.js';
import { type ImportedPolicy, importedPolicy } from './draft.js';
import { readerScript } from './reader.js';

export interface ImportOptions {
  /** Null for all but those of the system. */
  readonly schemas: readonly string[] | null;
  /** Database roles to import; null for all that are not superusers and may read a table. */
  readonly roles: readonly string[] | null;
  readonly tenant: string;
  readonly urlEnv: string;
}

export interface ImportedDatabase {
  readonly manifest: DraftedManifest;
  readonly policy: ImportedPolicy['document'];
  readonly attributes: ImportedPolicy['attributes'];
  readonly notes: ImportedPolicy['notes'];
  /** Tables that are no entities, with the reason. */
  readonly leftOut: readonly ExcludedTable[];
  /** Statements that create the database role of the gateway, which sees all rows of the entities. */
  readerSql(role: string): string;
}

/**
 * Reads the row security of a database and writes it as manifest and policy. Changes nothing there. Requires `ready()`
 * of osl-compiler.
 *
 * @throws the errors of `surveyPostgres` and `readCatalog`; TypeError if no table can become an entity
 */
export async function importDatabase(url: string, options: ImportOptions): Promise<ImportedDatabase> {
  const survey = await surveyPostgres(url);
  try {
    const { system } = survey;
    const catalog = await system.transaction(async (session) => {
      await session.script(sql`set transaction isolation level repeatable read, read only`);
      return readCatalog(session);
    });
    const upstream = await readUpstream(system, options.schemas);
    const nothing = parseManifest(
      '{version: 1, connectors: {db: {kind: pglite, tables: {}}}, entities: {}}',
      'nothing',
    );
    const found = candidatesIn(upstream, 'db', nothing).filter(({ kind }) => kind === 'table');
    const chosen = chooseTables(found, []);
    const keyed: AdoptionCandidate[] = [];
    for (const candidate of chosen.candidates) {
      const declared = declaredKey(candidate);
      const counted = declared === null ? await countKey(system, candidate) : null;
      const key = declared ?? (counted?.kind === 'none' ? [] : (counted?.columns ?? []));
      // A table that links two others is read for memberships, so it is an entity as well.
      keyed.push({ ...candidate, key, proposal: 'entity' });
    }
    const { tenant, urlEnv } = options;
    const manifest = draftManifest(keyed, new Map(), { tenant, urlEnv, rowSecurity: false, joins: 'any' });
    const database = checkedDatabase(catalog, {
      schemas: options.schemas === null ? null : new Set(options.schemas),
      roles: options.roles === null ? null : new Set(options.roles),
    });
    const { document, attributes, notes } = importedPolicy({ database, manifest: manifest.manifest, tenant });
    const tables = [...manifest.manifest.catalog.relations.values()];
    return {
      manifest,
      policy: document,
      attributes,
      notes,
      leftOut: [...chosen.leftOut, ...manifest.leftOut],
      readerSql: (role) => {
        const own = new Set(tables.map(tableName));
        const relations = database.relations.filter((r) => own.has(`${r.schema}.${r.name}`));
        return readerScript(role, relations, catalog);
      },
    };
  } finally {
    survey.close();
  }
}
