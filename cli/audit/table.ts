import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AuditFilter,
  type AuditReadEvent,
  type AuditRecord,
  directorySource,
  fingerprintsOf,
  type LogSource,
} from '../../audit/index.js';
import {
  announceTableRead,
  connectTable,
  gatewayGrants,
  maintenanceGrants,
  readerGrants,
  recordsAfter,
  SCHEMA,
  searchTable,
  type TableSession,
  type TableUrl,
  tableSource,
  tailTable,
  writersIn,
} from '../../audit/table/index.js';
import { WITNESS_SCHEMA, witnessGrants } from '../../audit/witness/index.js';
import { usage } from '../exit.js';
import { print } from '../output.js';

/** Reads a log, stored either as segments in a directory or in a table. */
export interface ReadLog {
  readonly place: string;
  readonly chains: readonly LogSource[];
  search(filter: AuditFilter, everything: boolean): AsyncGenerator<AuditRecord, void, void>;
  /**
   * Returns the entries of `objects` that an undeclared name may have under the available keys. `missing` lists the
   * chains whose keys are not available.
   */
  fingerprints(
    name: string,
  ): Promise<{ readonly objects: readonly string[]; readonly missing: readonly string[] }>;
  /** The newest records, in chronological order. */
  newest(count: number): Promise<readonly AuditRecord[]>;
  /** Returns streams of the records newer than `after`, which end when the signal aborts. */
  follow(after: readonly AuditRecord[], signal: AbortSignal): AsyncIterable<AuditRecord>[];
  /** Announces a read of the log, so that it is recorded. @throws if it cannot be announced */
  note(reading: AuditReadEvent): Promise<void>;
}

const STATEMENT_MS = 600_000;
const POLL_MS = 200;

/**
 * Opens the log in Postgres tables, runs `work` with it, and closes the connection.
 *
 * @param keyDirs directories with fingerprint keys of the writers on this machine
 * @throws Failure
 */
export async function withTable<T>(
  url: TableUrl,
  keyDirs: readonly string[],
  work: (log: ReadLog) => Promise<T>,
): Promise<T> {
  const session = await connectTable(url, STATEMENT_MS).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw usage(`the database of the audit log does not answer: ${why}`);
  });
  try {
    const writers = await writersIn(session).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      throw usage(`there is no audit log in the database (${why}): \`osl audit table\` prints what makes it`);
    });
    if (writers.length === 0) throw usage('no gateway has written to the audit log of this database yet');
    return await work(tableLog(session, writers, keyDirs));
  } finally {
    await session.end();
  }
}

function tableLog(session: TableSession, writers: readonly string[], keyDirs: readonly string[]): ReadLog {
  return {
    place: 'osl_audit',
    chains: writers.map((writer) => tableSource(session, writer)),
    search: (filter) => searchTable(session, filter),
    fingerprints: async (name) => {
      const objects = (await Promise.all(keyDirs.map((dir) => fingerprintsOf(dir, name)))).flat();
      const own = await Promise.all(keyDirs.map((dir) => directorySource(dir).verifierKey()));
      return {
        objects,
        missing: writers.filter((writer) => !own.some((key) => key?.startsWith(`osl-audit/${writer}+`))),
      };
    },
    newest: (count) => tailTable(session, count),
    follow: (after, signal) => [followed(session, writers, after, signal)],
    note: (reading) => announceTableRead(session, reading),
  };
}

async function* followed(
  session: TableSession,
  writers: readonly string[],
  after: readonly AuditRecord[],
  signal: AbortSignal,
): AsyncGenerator<AuditRecord> {
  const shown = new Map(after.map(({ writer, seq }) => [writer, seq]));
  for (const writer of writers) {
    if (shown.has(writer)) continue;
    const last = (await tailTable(session, 1, writer)).at(-1);
    shown.set(writer, last?.seq ?? -1);
  }
  while (!signal.aborted) {
    for (const [writer, seq] of shown) {
      for (const record of await recordsAfter(session, writer, seq)) {
        yield record;
        shown.set(writer, record.seq);
      }
    }
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

export interface TableSqlFlags {
  readonly gateway: string;
  readonly reader?: string;
  readonly maintenance?: string;
}

export function runTableSql({ gateway, reader, maintenance }: TableSqlFlags): void {
  const grants = [
    gatewayGrants(quoted(gateway)),
    ...(reader === undefined ? [] : [readerGrants(quoted(reader))]),
    ...(maintenance === undefined ? [] : [maintenanceGrants(quoted(maintenance))]),
  ];
  print(`${SCHEMA}${grants.join('')}`.trim());
}

export function runWitnessSql({ gateway }: Pick<TableSqlFlags, 'gateway'>): void {
  print(`${WITNESS_SCHEMA}${witnessGrants(quoted(gateway))}`.trim());
}

function quoted(role: string): string {
  return `"${role.replaceAll('"', '""')}"`;
}
