import { isUtf8 } from 'node:buffer';
import { error, protocolViolation } from './errors.js';
import type {
  Awaitable,
  Bind,
  FetchResult,
  FormatCode,
  NamedPortal,
  Portal,
  PreparedStatement,
  RowWriter,
  StatementSource,
  WireStatement,
} from './handler.js';
import type { BindMessage } from './messages/extended.js';

interface SizedEntry {
  readonly bytes: number;
}

/** Limits the number and total size of a session's statements or portals, including the unnamed one. */
class PreparedBudget {
  readonly #entryKind: string;
  readonly #maxCount: number;
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(entryKind: string, maxCount: number, maxBytes: number) {
    this.#entryKind = entryKind;
    this.#maxCount = maxCount;
    this.#maxBytes = maxBytes;
  }

  /** Checks that another entry with `bytes` bytes fits. Throws 53400 if not. */
  require(count: number, bytes: number): void {
    if (count >= this.#maxCount)
      throw error('53400', `too many ${this.#entryKind}: at most ${this.#maxCount}`);
    if (this.#bytes + bytes > this.#maxBytes) {
      throw error('53400', `${this.#entryKind} are too large: at most ${this.#maxBytes} bytes together`);
    }
  }

  admits(count: number, bytes: number): boolean {
    return count < this.#maxCount && this.#bytes + bytes <= this.#maxBytes;
  }

  add(entry: SizedEntry): void {
    this.#bytes += entry.bytes;
  }

  remove(entry: SizedEntry): void {
    this.#bytes -= entry.bytes;
  }
}

/** A stored statement. `statement` is null for an empty text, or if `deferred` has yet to prepare it. */
export interface NamedStatement extends SizedEntry {
  readonly statement: WireStatement | null;
  readonly deferred?: () => Awaitable<WireStatement | null>;
  /** Source text of the statement; set only for named statements. */
  readonly source?: StatementSource;
}

/** The prepared statements of one session by name; `''` is the unnamed one. */
export class NamedStatements {
  readonly #byName = new Map<string, NamedStatement>();
  readonly #budget: PreparedBudget;

  constructor(maxCount: number, maxBytes: number) {
    this.#budget = new PreparedBudget('prepared statements', maxCount, maxBytes);
  }

  /**
   * Makes room for a statement; for the unnamed statement, deletes the existing one. Throws 42P05 if the name is in
   * use, 53400 if a limit is reached.
   */
  reserve(name: string, bytes: number): void {
    if (name === '') this.delete('');
    else if (this.#byName.has(name)) throw error('42P05', `prepared statement "${name}" already exists`);
    this.#budget.require(this.#byName.size, bytes);
  }

  add(name: string, entry: NamedStatement): void {
    this.delete(name);
    this.#byName.set(name, entry);
    this.#budget.add(entry);
  }

  admits(bytes: number): boolean {
    return this.#budget.admits(this.#byName.size, bytes);
  }

  /**
   * Sets the unnamed statement, which is prepared when first needed. Does not check the limits: call `admits` first.
   */
  defer(bytes: number, deferred: () => Awaitable<WireStatement | null>): void {
    this.add('', { statement: null, bytes, deferred });
  }

  /**
   * Returns the statement, preparing it if necessary. Throws 26000 if there is none, and any error from preparing it.
   */
  prepared(name: string): Awaitable<NamedStatement> {
    const entry = this.get(name);
    const { bytes, deferred } = entry;
    if (deferred === undefined) return entry;
    const store = (statement: WireStatement | null): NamedStatement => {
      const prepared = { statement, bytes };
      if (this.#byName.get(name) === entry) this.#byName.set(name, prepared);
      return prepared;
    };
    const statement = deferred();
    return statement instanceof Promise ? statement.then(store) : store(statement);
  }

  /** Returns the entry as stored, possibly not prepared yet. Throws 26000 if there is none. */
  get(name: string): NamedStatement {
    const entry = this.#byName.get(name);
    if (entry !== undefined) return entry;
    const label = name === '' ? 'unnamed prepared statement' : `prepared statement "${name}"`;
    throw error('26000', `${label} does not exist`);
  }

  list(): readonly PreparedStatement[] {
    return [...this.#byName].flatMap(([name, { statement, source }]) =>
      statement === null || source === undefined ? [] : [{ name, statement, ...source }],
    );
  }

  /** Returns the statement; null if there is none, its text is empty, or it is not prepared yet. */
  find(name: string): WireStatement | null {
    return this.#byName.get(name)?.statement ?? null;
  }

  delete(name: string): boolean {
    const entry = this.#byName.get(name);
    if (entry === undefined) return false;
    this.#budget.remove(entry);
    return this.#byName.delete(name);
  }

  clear(): void {
    for (const name of [...this.#byName.keys()]) this.delete(name);
  }
}

export interface OpenPortal extends SizedEntry {
  readonly statement: WireStatement | null;
  readonly portal: Portal | null;
  readonly resultFormats: readonly FormatCode[];
  /** Completion tag; null until the portal has finished. */
  finished: string | null;
  /** True while running, to prevent recursion. */
  running: boolean;
}

/** The portals of one session by name; `''` is the unnamed one. */
export class Portals {
  readonly #byName = new Map<string, OpenPortal>();
  readonly #budget: PreparedBudget;
  readonly #dropped: OpenPortal[] = [];

  constructor(maxCount: number, maxBytes: number) {
    this.#budget = new PreparedBudget('portals', maxCount, maxBytes);
  }

  /**
   * Makes room for a portal; for the unnamed portal, drops the existing one. Throws 42P03 if the name is in use, 53400
   * if a limit is reached.
   */
  reserve(name: string, bytes: number): void {
    if (name === '') this.drop('');
    else if (this.#byName.has(name)) throw error('42P03', `cursor "${name}" already exists`);
    this.#budget.require(this.#byName.size, bytes);
  }

  add(name: string, entry: OpenPortal): void {
    this.drop(name);
    this.#byName.set(name, entry);
    this.#budget.add(entry);
  }

  /** Returns an open portal. Throws 34000 if there is none. */
  get(name: string): OpenPortal {
    const entry = this.#byName.get(name);
    if (entry !== undefined) return entry;
    throw error('34000', `portal "${name}" does not exist`);
  }

  /** Returns the portal for use by SQL statements; undefined if there is none. SQL cannot name the unnamed portal. */
  named(name: string): NamedPortal | undefined {
    const open = name === '' ? undefined : this.#byName.get(name);
    if (open === undefined) return undefined;
    return {
      columns: open.statement?.columns ?? null,
      formats: open.resultFormats,
      fetch: async (maxRows, rows) => {
        if (open.statement?.columns == null) throw cannotRun(name);
        return open.finished === null ? this.fetch(name, open, maxRows, rows) : NO_MORE_ROWS;
      },
      close: () => this.drop(name),
    };
  }

  /** Runs an unfinished portal; drops it on failure. Throws 55000 if it is already running. */
  async fetch(name: string, open: OpenPortal, maxRows: number, rows: RowWriter): Promise<FetchResult> {
    if (open.portal === null || open.running) throw cannotRun(name);
    open.running = true;
    try {
      const result = await open.portal.fetch(maxRows, rows);
      if (!result.suspended) open.finished = result.tag;
      return result;
    } catch (cause) {
      this.drop(name);
      throw cause;
    } finally {
      open.running = false;
    }
  }

  /** Removes a portal; `sweep` closes it later. */
  drop(name: string): void {
    const entry = this.#byName.get(name);
    if (entry === undefined) return;
    this.#byName.delete(name);
    this.#budget.remove(entry);
    this.#dropped.push(entry);
  }

  dropAll(): void {
    for (const name of [...this.#byName.keys()]) this.drop(name);
  }

  /** True if there are dropped portals that `sweep` must close. */
  get needsSweep(): boolean {
    return this.#dropped.length > 0;
  }

  /** Closes dropped portals exactly once. Failures are bugs in the handler and are only reported. */
  async sweep(onFailure: (failure: unknown) => void): Promise<void> {
    for (let entry = this.#dropped.shift(); entry !== undefined; entry = this.#dropped.shift()) {
      try {
        await entry.portal?.close();
      } catch (failure) {
        onFailure(failure);
      }
    }
  }
}

const NO_MORE_ROWS: FetchResult = Object.freeze({ suspended: false, tag: 'SELECT 0' });

/** Creates the error for running a finished command again, or a portal that is already running. */
export function cannotRun(name: string) {
  return error('55000', `portal "${name}" cannot be run`);
}

/**
 * Matches a Bind message with its statement. Without formats, all values are text; a single format applies to all
 * values. Throws 08P01 for wrong counts, 22021 for a text value that is not UTF-8 or contains NUL.
 */
export function fitBind(
  message: BindMessage,
  statement: Pick<WireStatement, 'parameterTypes' | 'columns'> | null,
): Bind {
  const { statement: name, values } = message;
  const parameters = statement?.parameterTypes.length ?? 0;
  const columns = statement?.columns?.length ?? 0;
  const parameterFormatCount = message.parameterFormats.length;
  if (parameterFormatCount > 1 && parameterFormatCount !== values.length) {
    throw protocolViolation(
      `bind message has ${parameterFormatCount} parameter formats but ${values.length} parameters`,
    );
  }
  if (values.length !== parameters) {
    throw protocolViolation(
      `bind message supplies ${values.length} parameters, but prepared statement "${name}" requires ${parameters}`,
    );
  }
  const resultFormatCount = message.resultFormats.length;
  if (resultFormatCount > 1 && resultFormatCount !== columns) {
    throw protocolViolation(
      `bind message has ${resultFormatCount} result formats but query has ${columns} columns`,
    );
  }
  const parameterFormats = expand(message.parameterFormats, parameters);
  values.forEach((value, i) => {
    if (value !== null && parameterFormats[i] === 0) requireText(value);
  });
  return { parameterFormats, parameters: values, resultFormats: expand(message.resultFormats, columns) };
}

function expand(formats: readonly FormatCode[], count: number): readonly FormatCode[] {
  if (formats.length === count) return formats;
  return new Array<FormatCode>(count).fill(formats[0] ?? 0);
}

function requireText(value: Buffer): void {
  if (isUtf8(value) && !value.includes(0)) return;
  throw error('22021', 'invalid byte sequence for encoding "UTF8"');
}
