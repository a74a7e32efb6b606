import type { UpstreamSchema } from '../../model/discovery/index.js';

/** What a source does not say, and its importer has to be told. */
export interface ImportOptions {
  /** The connector of tables for which the source names none. */
  readonly connector: string;
  /** The kind of every connector. */
  readonly kind: 'postgres' | 'pglite';
  /** The schema of tables for which the source names none. */
  readonly schema: string;
  /** Null takes the name of an Ossie model, or `main`. */
  readonly tenant: string | null;
  /** Primary keys, by the name of an entity in the source. */
  readonly keys: ReadonlyMap<string, readonly string[]>;
  /** The database, which knows types, keys and nullability better than any source; null where none was asked. */
  readonly upstream: UpstreamSchema | null;
  /** Take the policy that an Ossie file of this gateway carries. */
  readonly withPolicy: boolean;
}

export const DEFAULT_OPTIONS: ImportOptions = Object.freeze({
  connector: 'db',
  kind: 'postgres',
  schema: 'public',
  tenant: null,
  keys: new Map(),
  upstream: null,
  withPolicy: false,
});
