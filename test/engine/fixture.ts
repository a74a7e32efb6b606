import { unboundedMemory } from '../../src/engine/answer-memory.js';
import type { ConnectionChange } from '../../src/engine/connection-status.js';
import type { OpenedEngine } from '../../src/engine/engine.js';
import { openPglite } from '../../src/engine/pglite/engine.js';
import { openPostgres } from '../../src/engine/postgres/engine.js';
import type { Runner } from '../../src/engine/runner.js';
import type { BoundValue, ExecuteOptions, ExecuteResult, PlanMode } from '../../src/engine/statement.js';
import type { UpstreamError } from '../../src/engine/upstream-report.js';
import { type NativePostgres, startNativePostgres } from '../support/native-postgres.js';

export { NO_BINARIES, NO_NATIVE, startOwnPostgres } from '../support/native-postgres.js';

export interface Fixture {
  readonly name: 'pglite' | 'postgres';
  readonly engine: OpenedEngine;
  /** The seam under the governed door. */
  readonly runner: Runner;
  /** Message of the upstream, for the log. */
  readonly heard: UpstreamError[];
  /** State of the connections. */
  readonly reached: ConnectionChange[];
  readonly native: NativePostgres | null;
  close(): Promise<void>;
}

export async function pgliteFixture(dataDir: string | null = null): Promise<Fixture> {
  const heard: UpstreamError[] = [];
  const opened = await openPglite(
    { kind: 'pglite', dataDir },
    {
      onUpstreamError: (error) => heard.push(error),
      onReach: () => undefined,
      onStandby: () => undefined,
      spool: null,
      memory: unboundedMemory(),
      serving: null,
    },
  );
  return { name: 'pglite', ...opened, heard, reached: [], native: null, close: () => opened.engine.close() };
}

export interface NativeOptions {
  readonly poolSize: number;
  readonly sharedSessions: number;
  readonly waitMs: number;
}

/** Null where no native Postgres is to be had. */
export async function nativeFixture(options: Partial<NativeOptions> = {}): Promise<Fixture | null> {
  const native = await startNativePostgres();
  return native === null ? null : fixtureOver(native, options);
}

/** An engine over `native`, which the fixture stops when it is closed. */
export async function fixtureOver(
  native: NativePostgres,
  options: Partial<NativeOptions> = {},
): Promise<Fixture> {
  const heard: UpstreamError[] = [];
  const reached: ConnectionChange[] = [];
  const config = { poolSize: 2, sharedSessions: 0, ...options };
  const opened = await openPostgres(
    { kind: 'postgres', url: native.readerUrl, systemUrl: native.url, ...config },
    {
      onUpstreamError: (error) => heard.push(error),
      onReach: (change) => reached.push(change),
      onStandby: () => undefined,
      spool: null,
      memory: unboundedMemory(),
      serving: null,
    },
  );
  const close = async (): Promise<void> => {
    await opened.engine.close();
    await native.stop();
  };
  return { name: 'postgres', ...opened, heard, reached, native, close };
}

export interface Ask extends Partial<ExecuteOptions> {
  readonly values?: readonly BoundValue[];
  readonly parameterOids?: readonly number[];
  /** Column type OIDs that the plan would promise. */
  readonly oids: readonly number[];
  readonly write?: (bytes: Uint8Array, rows: number) => void | Promise<void>;
  readonly planMode?: PlanMode;
}

export interface Answer extends ExecuteResult {
  /** All DataRow messages, in order. */
  readonly bytes: Buffer;
}

/** Runs raw SQL through the seam as a governed statement. */
export async function ask(fixture: Fixture, sql: string, given: Ask): Promise<Answer> {
  const chunks: Buffer[] = [];
  const { values = [], parameterOids = [], oids, write, planMode = 'auto', ...options } = given;
  const result = await fixture.runner.runStatement(
    { sql, output: 'rows', planMode, parameterOids, columnOids: oids },
    values,
    {
      subject: null,
      resultFormats: [],
      maxRows: 0,
      maxBytes: 0,
      timeoutMs: 20_000,
      signal: null,
      ...options,
    },
    {
      write: (bytes, rows) => {
        if (write !== undefined) return write(bytes, rows);
        chunks.push(Buffer.from(bytes));
        return undefined;
      },
    },
  );
  return { ...result, bytes: Buffer.concat(chunks) };
}

/** The error that `promise` rejects with; null where it does not. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => null,
    (error: unknown) => error,
  );
}

/** A DataRow message of these values. */
export function dataRow(values: readonly (Uint8Array | string | null)[]): Buffer {
  const parts = values.map((value) => {
    if (value === null) return Buffer.from([255, 255, 255, 255]);
    const bytes = Buffer.from(value);
    const length = Buffer.alloc(4);
    length.writeInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  });
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(7);
  head[0] = 0x44;
  head.writeInt32BE(6 + body.length, 1);
  head.writeInt16BE(values.length, 5);
  return Buffer.concat([head, body]);
}

/** The text values of each row in `bytes`. */
export function textRows(bytes: Buffer): (string | null)[][] {
  const rows: (string | null)[][] = [];
  let at = 0;
  while (at < bytes.length) {
    const row: (string | null)[] = [];
    const columns = bytes.readInt16BE(at + 5);
    at += 7;
    for (let n = 0; n < columns; n++) {
      const length = bytes.readInt32BE(at);
      at += 4;
      row.push(length < 0 ? null : bytes.toString('utf8', at, at + length));
      at += Math.max(length, 0);
    }
    rows.push(row);
  }
  return rows;
}

export function text(value: string): BoundValue {
  return { format: 0, bytes: Buffer.from(value) };
}
