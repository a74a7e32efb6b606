import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServiceLog } from '../../src/base/log.js';
import type { SystemEngine } from '../../src/engine/index.js';
import { LEXICAL_MODEL } from '../../src/model/facets/retrieval-options.js';
import type { ManifestDocument, Table } from '../../src/model/manifest/index.js';
import { indexContent } from '../../src/service/indexing/index-content.js';
import { loadModel } from '../../src/service/model.js';
import { type OpenService, openService } from '../../src/service/open.js';
import type { Service } from '../../src/service/service.js';
import { type Settings, settingsFrom } from '../../src/service/settings.js';
import type { JsonRow, PolicyTests } from './document.js';
import { copyOf, tablesSql, truncateSql, UnfitRows } from './tables.js';

/** A service on embedded copies of a manifest's tables, which contain only the rows from the policy tests. */
export interface TestService {
  readonly service: Service;
  /** The audit log and limiter behind `service`. */
  readonly means: OpenService['means'];
  /** Replaces the rows of all tables; facets are not indexed again. @throws UnfitRows */
  refill(data: PolicyTests['data']): Promise<void>;
  close(): Promise<void>;
}

const SILENT: ServiceLog = Object.freeze({
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
});

/**
 * Opens a service on embedded databases in a temporary directory. The databases in the manifest are not contacted.
 *
 * @throws ManifestProblems and PolicyFault for errors in the files, UnfitRows, StartProblem
 */
export async function openTestService({
  manifestFile,
  policyFile,
  data,
}: Pick<PolicyTests, 'manifestFile' | 'policyFile' | 'data'>): Promise<TestService> {
  const own = await loadModel(manifestFile, policyFile, null); // reports errors in the files with their locations
  const dir = mkdtempSync(join(tmpdir(), 'osl-policy-test-'));
  const remove = (): void => rmSync(dir, { recursive: true, force: true });
  process.once('exit', remove);
  try {
    const embedded = join(dir, 'manifest.json');
    writeFileSync(embedded, JSON.stringify(onEmbedded(own.manifest.document)));
    const over = { manifestFile: embedded, policyFile, dataDir: join(dir, 'data') };
    const settings = settingsFrom({}, dir, over);
    const open = await openService(settings, SILENT);
    const close = async (): Promise<void> => {
      await open.close();
      process.off('exit', remove);
      remove();
    };
    try {
      await fill(open, data);
      await index(open, settings.content);
      let filled: ReadonlySet<string> = new Set(data.keys());
      const refill = async (rows: PolicyTests['data']): Promise<void> => {
        await empty(open, filled);
        filled = new Set(rows.keys());
        await copy(open, rows);
      };
      return Object.freeze({ service: open.service, means: open.means, refill, close });
    } catch (error) {
      await close();
      throw error;
    }
  } catch (error) {
    remove();
    throw error;
  }
}

/** Returns the manifest with embedded connectors and without caches. */
function onEmbedded(document: ManifestDocument): object {
  const connectors = Object.entries(document.connectors).map(
    ([name, { tables }]) => [name, { kind: 'pglite', tables }] as const,
  );
  // An embedded database sends no change notifications, and no test may get an answer cached by another test.
  const entities = Object.entries(document.entities).map(
    ([name, { cache: _cache, ...entity }]) => [name, entity] as const,
  );
  return { ...document, connectors: Object.fromEntries(connectors), entities: Object.fromEntries(entities) };
}

async function fill(open: OpenService, data: ReadonlyMap<string, readonly JsonRow[]>): Promise<void> {
  for (const { connector, engine } of connectorsOf(open)) {
    await engine.system.script(tablesSql(connector));
    for (const schema of new Set([...connector.tables.values()].map((t) => t.schema)))
      await engine.system.grantRead(schema);
  }
  await copy(open, data);
}

function connectorsOf({ service, databases }: OpenService) {
  return [...service.model().manifest.connectors.values()].flatMap((connector) => {
    const engine = databases.get(connector.name);
    return engine === undefined ? [] : [{ connector, engine }];
  });
}

async function copy(open: OpenService, data: ReadonlyMap<string, readonly JsonRow[]>): Promise<void> {
  const left = new Set(data.keys());
  for (const { connector, engine } of connectorsOf(open))
    for (const [key, table] of connector.tables) {
      const rows = data.get(`${connector.name}.${key}`) ?? [];
      left.delete(`${connector.name}.${key}`);
      await copyIn(engine.system, key, table, rows);
    }
  const [unknown] = left;
  if (unknown !== undefined) throw new UnfitRows(`the manifest has no table \`${unknown}\``);
}

/** Empties only the tables in `filled` (named as in `source`): TRUNCATE of hundreds of tables takes a second. */
async function empty(open: OpenService, filled: ReadonlySet<string>): Promise<void> {
  for (const { connector, engine } of connectorsOf(open)) {
    const tables = [...connector.tables].flatMap(([key, table]) =>
      filled.has(`${connector.name}.${key}`) ? [table] : [],
    );
    if (tables.length > 0) await engine.system.script(truncateSql(tables));
  }
}

/** Indexes the facets that need no model server; other facets have no passages here. */
async function index({ service, databases }: OpenService, settings: Settings['content']): Promise<void> {
  const { manifest } = service.model();
  const offline = [...manifest.facets.values()].filter(
    (f) => f.legOf === null && f.embeddingModel === LEXICAL_MODEL,
  );
  if (offline.length === 0) return;
  const names = offline.map((f) => f.name);
  await indexContent(manifest, databases, settings, names, () => undefined);
}

async function copyIn(
  system: SystemEngine,
  key: string,
  table: Table,
  rows: readonly JsonRow[],
): Promise<void> {
  if (rows.length === 0) return;
  const { columns, rows: texts } = copyOf(table, rows);
  const { schema, table: name } = table;
  try {
    await system.copyIn({ schema, table: name, columns }, texts);
  } catch (error) {
    throw new UnfitRows(`the rows of \`${key}\` do not fit its columns`, { cause: error });
  }
}
