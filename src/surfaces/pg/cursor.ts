import { QueryError, queryError } from 'osl-compiler';
import {
  error,
  type FetchResult,
  type FormatCode,
  type NamedPortal,
  type Portal,
  type RowWriter,
  type SessionControl,
  type WireNotice,
  type WireStatement,
} from '../../../wire/index.js';
import { eachDataRow, type MemoryShare } from '../../engine/index.js';
import type { CatalogCursor } from '../catalog/index.js';
import { MAX_BUFFERED_BYTES, writeRows } from './buffered-rows.js';
import type { SessionRecords, SuspendedRowRights } from './session-requests.js';

/** A declared cursor. Its query runs at the first FETCH, in the format requested by that FETCH. */
interface DeclaredCursor extends Omit<Declaration, 'name'> {
  readonly statement: WireStatement;
  readonly parameterFormats: readonly FormatCode[];
  readonly parameters: readonly (Uint8Array | null)[];
  /** Total size of `parameters` in bytes. */
  readonly bytes: number;
  readonly text: string;
  readonly declaredAt: number;
  /** True until the transaction block that declared the cursor ends. */
  inBlock: boolean;
  /** Number of savepoints on whose rollback the cursor closes: those in force when it was declared. */
  depth: number;
  portal: OpenCursor | null;
}

interface OpenCursor {
  readonly source: Portal;
  readonly format: FormatCode;
  readonly rights: string;
  /** Rows kept for moving backward; null for a forward-only cursor. */
  readonly scrollRows: ScrollableRows | null;
  isAtEnd: boolean;
}

export interface Declaration {
  readonly name: string;
  /** True if values are binary regardless of the format that FETCH requests. */
  readonly binary: boolean;
  readonly hold: boolean;
  /** True if the cursor can move backward and therefore keeps the rows it has read. */
  readonly scroll: boolean;
}

export const MAX_CURSORS = 64;
/** Maximum total size of the values bound to a session's cursors, in bytes; the same as for portals. */
export const MAX_BOUND_BYTES = 32 * 1_048_576;

/** State of the session in which a cursor is declared; `depth` is the number of savepoints in force. */
interface DeclaringSession {
  readonly inBlock: boolean;
  readonly block: { readonly depth: number };
}

interface CursorSession {
  readonly state: { readonly block: { requireUsable(): void } };
  readonly records: SessionRecords;
}

/** Cursors of one session. Named portals of the protocol count as forward-only cursors. */
export class Cursors {
  readonly #rights: SuspendedRowRights;
  readonly #records: SessionRecords;
  readonly #memory: () => MemoryShare;
  readonly #byName = new Map<string, DeclaredCursor>();
  readonly #protocol: Pick<SessionControl, 'portal' | 'closePortals'>;

  /** @param rights checked before buffered rows are sent: they must be the rights under which the rows were read */
  constructor(
    protocol: Pick<SessionControl, 'portal' | 'closePortals'>,
    rights: SuspendedRowRights,
    records: SessionRecords,
    memory: () => MemoryShare,
  ) {
    this.#protocol = protocol;
    this.#rights = rights;
    this.#records = records;
    this.#memory = memory;
  }

  declare(
    { name, ...options }: Declaration & { readonly text: string },
    statement: WireStatement,
    parameterFormats: readonly FormatCode[],
    parameters: readonly (Uint8Array | null)[],
    { inBlock, block: { depth } }: DeclaringSession,
  ): void {
    if (this.#byName.has(name) || this.#protocol.portal(name) !== undefined)
      throw error('42P03', `cursor "${name}" already exists`);
    if (this.#byName.size >= MAX_CURSORS) throw error('53400', `too many cursors: at most ${MAX_CURSORS}`);
    const bytes = parameters.reduce((sum, value) => sum + (value?.byteLength ?? 0), 0);
    const otherBytes = [...this.#byName.values()].reduce((sum, cursor) => sum + cursor.bytes, 0);
    if (otherBytes + bytes > MAX_BOUND_BYTES)
      throw error('53400', `values of cursors are too large: at most ${MAX_BOUND_BYTES} bytes together`);
    const copies = parameters.map((p) => (p === null ? null : Buffer.from(p)));
    const cursor = {
      statement,
      parameterFormats,
      parameters: copies,
      bytes,
      ...options,
      inBlock,
      depth,
      portal: null,
      declaredAt: Date.now(),
    };
    this.#byName.set(name, cursor);
  }

  /** Returns the declared cursors, for `pg_cursors`. */
  list(): readonly CatalogCursor[] {
    return [...this.#byName].map(([name, { text, hold, binary, scroll, declaredAt }]) => {
      return { name, text, hold, binary, scroll, created: declaredAt };
    });
  }

  columnsOf(name: string): WireStatement['columns'] {
    return this.#portal(name)?.columns ?? this.#cursor(name).statement.columns;
  }

  named(name: string, { state, records }: CursorSession): NamedPortal | undefined {
    const cursor = this.#byName.get(name);
    if (cursor === undefined) return undefined;
    const { columns } = cursor.statement;
    const format = cursor.binary ? 1 : 0;
    return {
      columns,
      formats: (columns ?? []).map(() => format),
      fetch: async (maxRows, rows) => {
        state.block.requireUsable();
        const result = await this.fetch(name, maxRows, format, rows);
        if (rowCountOf(result) === 0) await records.recordCommand();
        return result;
      },
      close: () => this.close(name),
    };
  }

  isBinary(name: string): boolean {
    return this.#portal(name) === undefined && this.#cursor(name).binary;
  }

  scrolls(name: string): boolean {
    return this.#portal(name) === undefined && this.#cursor(name).scroll;
  }

  /** True if a forward-only cursor is on a row, which it cannot return again. */
  isOnUnkeptRow(name: string): boolean {
    const portal = this.#byName.get(name)?.portal ?? null;
    return portal !== null && portal.scrollRows === null && !portal.isAtEnd;
  }

  async scroll(
    name: string,
    motion: Motion,
    format: FormatCode,
  ): Promise<{ readonly rows: readonly Uint8Array[]; readonly notices: readonly WireNotice[] }> {
    const { scrollRows, rights } = await this.#openCursor(name, format);
    if (scrollRows === null) throw error('55000', 'cursor can only scan forward');
    this.#rights.requireSame(rights);
    const rows = await scrollRows.move(motion);
    return { rows, notices: scrollRows.takeNotices() };
  }

  /** Writes at most `count` rows; 0 means all remaining rows. @throws WireError */
  async fetch(name: string, count: number, format: FormatCode, rows: RowWriter): Promise<FetchResult> {
    const protocolPortal = this.#portal(name);
    if (protocolPortal !== undefined) {
      if (protocolPortal.formats.some((f) => f !== format)) throw wrongFormat(name);
      return protocolPortal.fetch(count, rows);
    }
    const portal = await this.#openCursor(name, format);
    if (portal.scrollRows !== null) {
      const moved = await this.scroll(
        name,
        { direction: 'forward', count: count === 0 ? 'all' : count },
        format,
      );
      await writeRows(moved.rows, rows);
      const rowCount = moved.rows.length;
      return {
        suspended: count > 0 && rowCount === count,
        tag: `SELECT ${rowCount}`,
        notices: moved.notices,
      };
    }
    if (portal.isAtEnd) return { suspended: false, tag: 'SELECT 0' };
    try {
      const result = await portal.source.fetch(count, rows);
      portal.isAtEnd = !result.suspended;
      return result;
    } catch (cause) {
      portal.isAtEnd = true;
      throw cause;
    }
  }

  async close(name: string): Promise<void> {
    const protocolPortal = this.#portal(name);
    if (protocolPortal !== undefined) return protocolPortal.close();
    const cursor = this.#cursor(name);
    this.#byName.delete(name);
    cursor.portal?.scrollRows?.close();
    await cursor.portal?.source.close();
  }

  /** Closes cursors at the end of a block: COMMIT keeps those WITH HOLD, ROLLBACK only those of earlier blocks. */
  async endBlock(committed: boolean): Promise<void> {
    for (const [name, cursor] of this.#byName) {
      const isKept = cursor.hold && (committed || !cursor.inBlock);
      if (isKept) Object.assign(cursor, { inBlock: false, depth: 0 });
      else await this.close(name);
    }
  }

  /**
   * Called after RELEASE and ROLLBACK TO; `depth` is the number of savepoints that remain. ROLLBACK TO closes the
   * cursors declared after the named savepoint; RELEASE assigns those of the released savepoints to the enclosing one.
   */
  async endSavepoints(options: 'release' | 'rollback to', depth: number): Promise<void> {
    for (const [name, cursor] of this.#byName) {
      if (options === 'release') cursor.depth = Math.min(cursor.depth, depth);
      else if (cursor.depth >= depth) await this.close(name);
    }
  }

  /** Closes all cursors, including portals of the protocol. */
  async closeAll(): Promise<void> {
    this.#protocol.closePortals();
    for (const name of [...this.#byName.keys()]) await this.close(name);
  }

  #portal(name: string): NamedPortal | undefined {
    return this.#byName.has(name) ? undefined : this.#protocol.portal(name);
  }

  async #openCursor(name: string, format: FormatCode): Promise<OpenCursor> {
    const cursor = this.#cursor(name);
    if (cursor.portal === null) {
      const source = await open(cursor, format);
      const scrollRows = cursor.scroll
        ? new ScrollableRows(
            (max, rows) => Promise.resolve(source.fetch(max, rows)),
            this.#memory(),
            this.#records,
          )
        : null;
      cursor.portal = { source, format, rights: this.#rights.current, scrollRows, isAtEnd: false };
    }
    if (cursor.portal.format !== format) throw wrongFormat(name);
    return cursor.portal;
  }

  #cursor(name: string): DeclaredCursor {
    const cursor = this.#byName.get(name);
    if (cursor === undefined) throw error('34000', `cursor "${name}" does not exist`);
    return cursor;
  }
}

export function rowCountOf({ tag }: FetchResult): number {
  return Number(tag.slice(tag.lastIndexOf(' ') + 1));
}

function wrongFormat(name: string) {
  return error('0A000', `cursor "${name}" was begun in another format`, { hint: 'fetch in one format' });
}

async function open(cursor: DeclaredCursor, format: FormatCode): Promise<Portal> {
  const { statement, parameterFormats, parameters } = cursor;
  const resultFormats = (statement.columns ?? []).map(() => format);
  return statement.open({ parameterFormats, parameters, resultFormats });
}

/** Movement requested by FETCH or MOVE. A negative count reverses the direction. */
export interface Motion {
  readonly direction: 'forward' | 'backward' | 'absolute' | 'relative';
  readonly count: number | 'all';
}

/**
 * Rows of a cursor that can move backward: read on demand and kept, up to `MAX_BUFFERED_BYTES`.
 *
 * Positions are as in Postgres: 0 is before the first row, and the number of rows + 1 is after the last.
 */
class ScrollableRows {
  readonly #read: (max: number, rows: RowWriter) => Promise<FetchResult>;
  #rows: Uint8Array[] = [];
  #bytes = 0;
  #position = 0;
  readonly #memory: MemoryShare;
  readonly #records: Pick<SessionRecords, 'refusal'>;
  readonly #notices: WireNotice[] = [];
  #isComplete = false;
  /** Error that occurred while reading; it must not be mistaken for the end of the rows. */
  #failure: { readonly cause: unknown } | null = null;

  /** `read` writes at most `max` further rows; 0 means all. */
  constructor(
    read: (max: number, rows: RowWriter) => Promise<FetchResult>,
    memory: MemoryShare,
    records: Pick<SessionRecords, 'refusal'>,
  ) {
    this.#read = read;
    this.#memory = memory;
    this.#records = records;
  }

  close(): void {
    this.#rows = [];
    this.#memory.release();
  }

  /** Returns the query's notices and clears them. */
  takeNotices(): readonly WireNotice[] {
    return this.#notices.splice(0);
  }

  /**
   * Returns the rows that the motion passes, in the order of the motion. For absolute and relative motions and a count
   * of 0, returns only the row on which the motion ends.
   */
  async move({ direction, count }: Motion): Promise<readonly Uint8Array[]> {
    switch (direction) {
      case 'forward':
        return count !== 'all' && count < 0 ? this.#backward(-count) : this.#forward(count);
      case 'backward':
        return count !== 'all' && count < 0 ? this.#forward(-count) : this.#backward(count);
      case 'absolute':
        return this.#moveTo(await this.#absolutePosition(Number(count)));
      case 'relative':
        return this.#moveTo(this.#position + Number(count));
      default: {
        const unknown: never = direction;
        throw new TypeError(`unexpected direction ${String(unknown)}`);
      }
    }
  }

  async #forward(count: number | 'all'): Promise<readonly Uint8Array[]> {
    if (count === 0) return this.#moveTo(this.#position);
    const begin = this.#position;
    const target = count === 'all' ? Number.POSITIVE_INFINITY : begin + count;
    await this.#readUpTo(target);
    this.#position = Math.min(target, this.#rows.length + 1);
    return this.#rows.slice(begin, this.#position);
  }

  #backward(count: number | 'all'): readonly Uint8Array[] | Promise<readonly Uint8Array[]> {
    if (count === 0) return this.#moveTo(this.#position);
    const previous = this.#position - 1;
    this.#position = count === 'all' ? 0 : Math.max(0, this.#position - count);
    return this.#rows.slice(Math.max(0, this.#position - 1), Math.max(0, previous)).reverse();
  }

  async #absolutePosition(count: number): Promise<number> {
    if (count >= 0) return count;
    await this.#readUpTo(Number.POSITIVE_INFINITY);
    return this.#rows.length + 1 + count;
  }

  async #moveTo(position: number): Promise<readonly Uint8Array[]> {
    await this.#readUpTo(position);
    this.#position = Math.max(0, Math.min(position, this.#rows.length + 1));
    return this.#position === 0 ? [] : this.#rows.slice(this.#position - 1, this.#position);
  }

  /** Reads until row `position` or the end is buffered. @throws WireError 54000, 53200 if the rows exceed the limits */
  async #readUpTo(position: number): Promise<void> {
    if (this.#failure !== null) throw this.#failure.cause;
    const missing = position - this.#rows.length;
    if (this.#isComplete || missing <= 0) return;
    const collector: RowWriter = {
      write: (messages) => {
        this.#bytes += messages.byteLength;
        if (this.#bytes > MAX_BUFFERED_BYTES)
          throw queryError('tooLarge', {
            what: 'the bytes of a cursor that scrolls',
            limit: MAX_BUFFERED_BYTES,
          });
        this.#memory.require(messages.byteLength);
        for (const row of eachDataRow(messages)) this.#rows.push(row);
      },
    };
    try {
      const { suspended, notices } = await this.#read(Number.isFinite(missing) ? missing : 0, collector);
      this.#isComplete = !suspended;
      this.#notices.push(...(notices ?? []));
    } catch (failure) {
      const cause = failure instanceof QueryError ? this.#records.refusal(failure) : failure;
      this.#failure = { cause };
      throw cause;
    }
  }
}
