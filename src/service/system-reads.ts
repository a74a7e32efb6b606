import { setTimeout } from 'node:timers/promises';
import { sql, sqlName, sqlTable } from '../base/sql.js';
import { type RollupState, readStates } from '../content/rollups/rollups.js';
import {
  DEFAULT_MIN_LENGTH,
  type Embedder,
  indexedTimes,
  openStore,
  type ServedStore,
  stableSnapshot,
  type TableName,
} from '../content/serving.js';
import type { OpenedEngine, SystemEngine } from '../engine/index.js';
import { readUpstream, type UpstreamSchema } from '../model/discovery/index.js';
import { type Facet, indexedFacets, type Manifest } from '../model/manifest/index.js';

/** The only reads with system credentials that requests can cause. Each returns null if the connector is not open. */
export interface SystemReads {
  /** Reads the tables and columns that the database declares. */
  readCatalog(connector: string): Promise<UpstreamSchema | null>;
  /** Reads the greatest value of a column as text; empty if the table is empty or all its values are NULL. */
  readWatermark(connector: string, table: TableName, column: string): Promise<string | null>;
  /** Reads the states of built rollups; also null until the database has been reached. */
  readRollupStates(connector: string): Promise<readonly RollupState[] | null>;
  /** Opens the store of a facet version, or the successor that replaces it if one is ready. Throws like `openStore`. */
  readStore(facet: Facet, version: string, embedder: Embedder): Promise<ServedStore | null>;
  /** Reads the times at which a connector's stores were last updated from their sources, by facet and version. */
  readIndexTimes(connector: string): Promise<ReadonlyMap<string, ReadonlyMap<string, string>> | null>;
  /** Reads the state of the data as a `pg_snapshot`; also null if `tables` can change outside of transactions. */
  readSettled(connector: string, tables: readonly TableName[]): Promise<string | null>;
}

export function systemReads(databases: ReadonlyMap<string, OpenedEngine>): SystemReads {
  const onDatabase = async <T>(
    connector: string,
    read: (system: SystemEngine) => Promise<T>,
  ): Promise<T | null> => {
    const database = databases.get(connector);
    return database === undefined ? null : read(database.system);
  };
  return Object.freeze({
    readCatalog: (connector: string) => onDatabase(connector, readUpstream),
    readWatermark: (connector: string, table: TableName, column: string) =>
      onDatabase(connector, async (system) => {
        const [row] = await system.query(
          sql`SELECT max(${sqlName(column)})::text AS watermark FROM ${sqlTable(table)}`,
        );
        return String(row?.['watermark'] ?? '');
      }),
    readRollupStates: async (connector: string) =>
      databases.get(connector)?.governed.status.reached === true ? onDatabase(connector, readStates) : null,
    readStore: (facet: Facet, version: string, embedder: Embedder) =>
      onDatabase(facet.connector, (system) =>
        openStore(system, facet, version, embedder, DEFAULT_MIN_LENGTH),
      ),
    readIndexTimes: (connector: string) => onDatabase(connector, indexedTimes),
    readSettled: (connector: string, tables: readonly TableName[]) =>
      onDatabase(connector, (system) => stableSnapshot(system, tables)),
  });
}

const VALID_MS = 5_000;
const READ_TIMEOUT_MS = 1_000;

/** Times by facet and version. */
type FacetTimes = ReadonlyMap<string, ReadonlyMap<string, string>>;

const NONE: FacetTimes = new Map();

/** Times at which the texts of facets were last read, as recorded in their stores. Each reading is used for 5 s. */
export class IndexTimes {
  readonly #reads: Pick<SystemReads, 'readIndexTimes'>;
  readonly #cache = new Map<string, { readonly until: number; readonly times: Promise<FacetTimes> }>();

  constructor(reads: Pick<SystemReads, 'readIndexTimes'>) {
    this.#reads = reads;
  }

  /** Returns the oldest time among each facet's stores. A facet is omitted if the time of a store is unknown. */
  async of(manifest: Manifest, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const facetTimes = await Promise.all(
      names.map(async (name): Promise<readonly [string, string][]> => {
        const stores = indexedFacets(manifest).filter((f) => (f.legOf ?? f.name) === name);
        const times = (await Promise.all(stores.map((store) => this.#timesOf(store)))).flat();
        const knownTimes = times.filter((time) => time !== null).sort();
        const [oldest] = knownTimes;
        return oldest === undefined || knownTimes.length < times.length ? [] : [[name, oldest]];
      }),
    );
    return new Map(facetTimes.flat());
  }

  async #timesOf({ connector, name, versions }: Facet): Promise<readonly (string | null)[]> {
    const times = (await this.#read(connector)).get(name);
    return [...versions.keys()].map((version) => times?.get(version) ?? null);
  }

  #read(connector: string): Promise<FacetTimes> {
    const cached = this.#cache.get(connector);
    if (cached !== undefined && cached.until > performance.now()) return cached.times;
    const pendingRead = this.#reads.readIndexTimes(connector).then(
      (times) => times ?? NONE,
      () => NONE,
    );
    const timeoutAbort = new AbortController();
    const timeout = setTimeout(READ_TIMEOUT_MS, NONE, { signal: timeoutAbort.signal }).catch(() => NONE);
    const times = Promise.race([pendingRead, timeout]).finally(() => timeoutAbort.abort());
    this.#cache.set(connector, { until: performance.now() + VALID_MS, times });
    return times;
  }
}
