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
import type { Facet } from '../model/manifest/index.js';

/** The only reads with system credentials that requests can cause. They return null if the connector is not open. */
export interface SystemReads {
  /** Reads the tables and columns that the database declares. */
  readCatalog(connector: string): Promise<UpstreamSchema | null>;
  /** Reads the greatest value of a column as text; empty for an empty table. */
  readWatermark(connector: string, table: TableName, column: string): Promise<string | null>;
  /** Reads the states of built rollups; also null until the database has been reached. */
  readRollupStates(connector: string): Promise<readonly RollupState[] | null>;
  /** Opens the store of a facet version, first replacing it by a successor that is ready. Throws like `openStore`. */
  readStore(facet: Facet, version: string, embedder: Embedder): Promise<ServedStore | null>;
  /** Reads when a connector's stores were last updated from their sources, by facet and version. */
  readIndexTimes(connector: string): Promise<ReadonlyMap<string, ReadonlyMap<string, string>> | null>;
  /** Reads the state of the data as a `pg_snapshot`; also null if `tables` can change other than by transactions. */
  readSettled(connector: string, tables: readonly TableName[]): Promise<string | null>;
}

export function systemReads(databases: ReadonlyMap<string, OpenedEngine>): SystemReads {
  const on = async <T>(connector: string, read: (system: SystemEngine) => Promise<T>): Promise<T | null> => {
    const database = databases.get(connector);
    return database === undefined ? null : read(database.system);
  };
  return Object.freeze({
    readCatalog: (connector: string) => on(connector, readUpstream),
    readWatermark: (connector: string, table: TableName, column: string) =>
      on(connector, async (system) => {
        const [row] = await system.query(
          sql`SELECT max(${sqlName(column)})::text AS watermark FROM ${sqlTable(table)}`,
        );
        return String(row?.['watermark'] ?? '');
      }),
    readRollupStates: async (connector: string) =>
      databases.get(connector)?.governed.status.reached === true ? on(connector, readStates) : null,
    readStore: (facet: Facet, version: string, embedder: Embedder) =>
      on(facet.connector, (system) => openStore(system, facet, version, embedder, DEFAULT_MIN_LENGTH)),
    readIndexTimes: (connector: string) => on(connector, indexedTimes),
    readSettled: (connector: string, tables: readonly TableName[]) =>
      on(connector, (system) => stableSnapshot(system, tables)),
  });
}
