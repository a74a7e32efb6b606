import { setTimeout as sleep } from 'node:timers/promises';
import { generatedSql, sql, sqlJoin, sqlName, sqlTable, sqlText } from '../../base/sql.js';
import { type SystemEngine, type SystemQueries, UpstreamFailure } from '../../engine/index.js';
import type { Manifest, RollupFacts } from '../../model/manifest/index.js';

/** Table with a record of each rollup's build, written in the transaction that builds the rollup. */
const STATE = sql`osl_rollups.state`;

const STATE_DDL = sql`CREATE TABLE IF NOT EXISTS ${STATE} (
  rollup text PRIMARY KEY, fingerprint text NOT NULL, table_name text NOT NULL, built_at timestamptz NOT NULL, rows int8 NOT NULL)`;

/** The state of a rollup that has been built. */
export interface RollupState {
  readonly rollup: string;
  readonly fingerprint: string;
  /** Time of the build, in ms since 1970. */
  readonly builtAt: number;
  readonly rows: number;
}

const UNDEFINED_TABLE = '42P01';
const UNDEFINED_SCHEMA = '3F000';

/** Reads the states of all rollups built in one database. @throws UpstreamFailure, NoSystemCredentials */
export async function readStates(system: SystemEngine): Promise<readonly RollupState[]> {
  try {
    const rows = await system.query(
      sql`SELECT s.rollup, s.fingerprint, (extract(epoch FROM s.built_at) * 1000)::float8 AS built, s.rows
       FROM ${STATE} AS s WHERE to_regclass('osl_rollups.' || quote_ident(s.table_name)) IS NOT NULL`,
    );
    return rows.map((r) => ({
      rollup: String(r['rollup']),
      fingerprint: String(r['fingerprint']),
      // Rounded down, so that the rollup never seems newer than it is.
      builtAt: Math.floor(Number(r['built'])),
      rows: Number(r['rows']),
    }));
  } catch (error) {
    const isMissing =
      error instanceof UpstreamFailure && [UNDEFINED_TABLE, UNDEFINED_SCHEMA].includes(error.sqlstate);
    if (isMissing) return [];
    throw error;
  }
}

export interface BuiltRollup {
  readonly rollup: string;
  /** Rows committed by this time are included. */
  readonly builtAt: Date;
  readonly rows: number;
  readonly milliseconds: number;
}

/** Maximum wait for statements that still read the old table. */
const LOCK_TIMEOUT = sqlText('10s');

/**
 * Builds a rollup and replaces the previous one, in one transaction: readers see either the old or the new one, and a
 * failed build leaves no trace. Builds in one database run one at a time.
 *
 * @throws UpstreamFailure, NoSystemCredentials
 */
export async function buildRollup(system: SystemEngine, facts: RollupFacts): Promise<BuiltRollup> {
  const started = performance.now();
  // `create schema if not exists` fails for a role without the privilege even if the schema exists.
  const [known] = await system.query(sql`SELECT to_regnamespace($1::text) IS NOT NULL AS there`, [
    facts.rollup.schema,
  ]);
  if (known?.['there'] !== true) await system.script(sql`CREATE SCHEMA ${sqlName(facts.rollup.schema)}`);
  await system.script(STATE_DDL);
  const { builtAt, rows } = await system.transaction((tx) => buildIn(tx, facts, system.reader));
  const milliseconds = Math.round(performance.now() - started);
  return Object.freeze({ rollup: facts.rollup.name, builtAt, rows, milliseconds });
}

async function buildIn(
  tx: SystemQueries,
  { rollup, query, fingerprint }: RollupFacts,
  reader: string,
): Promise<{ readonly builtAt: Date; readonly rows: number }> {
  const table = sqlTable(rollup);
  const fresh = sqlTable({ schema: rollup.schema, table: `${rollup.table}_new` });
  await tx.query(sql`SELECT pg_advisory_xact_lock(hashtext('osl_rollups'))`);
  // Read before the rows, so that the recorded time is never later than their state.
  const [now] = await tx.query(sql`SELECT clock_timestamp() AS at`);
  await tx.script(sql`DROP TABLE IF EXISTS ${fresh}; CREATE TABLE ${fresh} AS ${generatedSql(query)}`);
  const [counted] = await tx.query(sql`SELECT count(*)::int8 AS n FROM ${fresh}`);
  const [schema, role] = [sqlName(rollup.schema), sqlName(reader)];
  await tx.script(
    sqlJoin(
      [
        sql`ANALYZE ${fresh}`,
        sql`GRANT USAGE ON SCHEMA ${schema} TO ${role}`,
        sql`GRANT SELECT ON ${fresh} TO ${role}`,
        sql`SET LOCAL lock_timeout = ${LOCK_TIMEOUT}`,
        sql`DROP TABLE IF EXISTS ${table}`,
        sql`ALTER TABLE ${fresh} RENAME TO ${sqlName(rollup.table)}`,
      ],
      sql`; `,
    ),
  );
  const builtAt = new Date(String(now?.['at'] instanceof Date ? now['at'].toISOString() : now?.['at']));
  const rows = Number(counted?.['n'] ?? 0);
  await tx.query(
    sql`INSERT INTO ${STATE} (rollup, fingerprint, table_name, built_at, rows) VALUES ($1, $2, $3, $4::timestamptz, $5::int8)
     ON CONFLICT (rollup) DO UPDATE SET fingerprint = $2, table_name = $3, built_at = $4::timestamptz, rows = $5::int8`,
    [rollup.name, fingerprint, rollup.table, builtAt.toISOString(), rows],
  );
  await dropOthers(tx, rollup.schema);
  return { builtAt, rows };
}

/** Drops the tables to which no record in `STATE` refers, such as those of replaced rollups. */
async function dropOthers(tx: SystemQueries, schema: string): Promise<void> {
  const others = await tx.query(
    sql`SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname <> 'state'
       AND c.relname NOT IN (SELECT table_name FROM ${STATE})`,
    [schema],
  );
  for (const { relname } of others)
    await tx.script(sql`DROP TABLE ${sqlTable({ schema, table: String(relname) })}`);
}

/** The rollups that queries may currently use. */
export interface FreshRollups {
  readonly builtAt: ReadonlyMap<string, number>;
  /** The rollups' names, which are part of the cache keys of plans that use them. */
  readonly key: string;
}

type ReadStates = (connector: string) => Promise<readonly RollupState[] | null>;

const NO_ROLLUPS: FreshRollups = Object.freeze({ builtAt: new Map(), key: '' });

const EVERY_MS = 1_000;
const START_MS = 2_000;

/**
 * Polls the state of a manifest's rollups once a second. A rollup counts as not built if its definition has changed, if
 * it is too old, or if its state cannot be read.
 */
export class RollupMonitor {
  readonly #manifest: () => Manifest;
  readonly #readStates: ReadStates;
  readonly #onFault: (connector: string, error: unknown) => void;
  readonly #states = new Map<string, readonly RollupState[]>();
  readonly #faulty = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  /** @param onFault called when the rollups of a connector can no longer be read, once until they can be read again */
  constructor(
    manifest: () => Manifest,
    readStates: ReadStates,
    onFault: (connector: string, error: unknown) => void,
  ) {
    this.#manifest = manifest;
    this.#readStates = readStates;
    this.#onFault = onFault;
  }

  /** Reads the state, and then polls it. Resolves after the first read, or after two seconds if that takes longer. */
  async start(): Promise<this> {
    await Promise.race([this.refresh(), sleep(START_MS, undefined, { ref: false })]);
    this.#again();
    return this;
  }

  usable(manifest: Manifest): FreshRollups {
    if (manifest.rollups.size === 0) return NO_ROLLUPS;
    const builtAt = new Map<string, number>();
    const now = Date.now();
    for (const [name, { connector, fingerprint, maxAgeMs }] of manifest.rollups) {
      const state = this.#states.get(connector)?.find((s) => s.rollup === name);
      if (state?.fingerprint === fingerprint && now - state.builtAt <= maxAgeMs)
        builtAt.set(name, state.builtAt);
    }
    return { builtAt, key: [...builtAt.keys()].join(' ') };
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async refresh(): Promise<void> {
    const connectors = new Set([...this.#manifest().rollups.values()].map((r) => r.connector));
    await Promise.all(
      [...connectors].map(async (name) => {
        try {
          const states = await this.#readStates(name);
          if (states === null) return;
          this.#states.set(name, states);
          this.#faulty.delete(name);
        } catch (error) {
          this.#states.delete(name);
          if (!this.#faulty.has(name)) this.#onFault(name, error);
          this.#faulty.add(name);
        }
      }),
    );
  }

  #again(): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.refresh().finally(() => this.#again()), EVERY_MS).unref();
  }
}
