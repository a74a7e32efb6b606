import {
  type Bind,
  type ColumnDescription,
  createWireServer,
  type FetchResult,
  type Handler,
  type IdleLimit,
  type Portal,
  type RefusedEvent,
  type RowWriter,
  type SeriesEnd,
  type SessionControl,
  type SessionHandler,
  type SimpleStatement,
  type TransactionStatus,
  WireError,
  type WireLogin,
  type WireOptions,
  type WireStatement,
} from '../../../wire/index.js';
import { int16, int32, join, message } from './bytes.js';

/**
 * A handler whose statements are words: `rows 3`, `echo` (one text parameter), `begin`, `commit`, `fail`, `bug`,
 * `wait` (until cancelled), `notice`, `set a b`, `copy`, `blob 1000 50` (rows of that many bytes), `huge`,
 * `deallocate x`, `none` (no columns), `takes 7` (parameters), `gives 7` (columns). `log` records what the wire asked.
 */
export class Scripted implements Handler {
  readonly log: string[] = [];
  readonly logins: WireLogin[] = [];
  readonly refusals: RefusedEvent[] = [];
  readonly bugs: unknown[] = [];
  readonly sessions: ScriptedSession[] = [];
  /** What `authenticate` waits for. */
  gate: Promise<void> = Promise.resolve();

  async authenticate(login: WireLogin, control: SessionControl): Promise<SessionHandler> {
    await this.gate;
    this.logins.push(login);
    if (login.password === 'bug') throw new Error('secret detail');
    if (login.password === 'expired') throw new WireError('ERROR', '28000', 'the token has expired');
    if (login.password !== 'right') {
      throw new WireError('FATAL', '28P01', `password authentication failed for user "${login.user}"`);
    }
    const session = new ScriptedSession(this, control);
    this.sessions.push(session);
    return session;
  }

  recordRefusal(event: RefusedEvent): void {
    this.refusals.push(event);
  }

  /** Starts a server for one test; give `t.teardown` the `stop`. */
  async serve(options: Partial<WireOptions> = {}, host = '127.0.0.1') {
    const server = createWireServer({ onInternalError: (bug) => this.bugs.push(bug), ...options }, this);
    const { port } = await server.listen(0, host);
    return { server, port, stop: () => server.stop(0) };
  }
}

export class ScriptedSession implements SessionHandler {
  readonly parameters = new Map([['server_version', '15.0']]);
  readonly control: SessionControl;
  readonly #handler: Scripted;
  transactionStatus: TransactionStatus = 'I';
  idleLimit: IdleLimit | null = null;
  expired = false;
  openPortals = 0;
  cancelled = 0;
  closed = 0;
  /** Rows written so far by `blob`. */
  written = 0;
  #wake: (() => void) | null = null;

  constructor(handler: Scripted, control: SessionControl) {
    this.#handler = handler;
    this.control = control;
  }

  endSeries(): SeriesEnd {
    return { status: this.transactionStatus, changes: [], idleLimit: this.idleLimit };
  }

  split(text: string): SimpleStatement[] {
    if (text.includes('syntax')) throw new WireError('ERROR', '42601', 'syntax error');
    const statements: SimpleStatement[] = [];
    for (const match of text.matchAll(/[^;]+/g)) {
      if (match[0].trim() !== '') statements.push({ text: match[0], start: match.index });
    }
    return statements;
  }

  prepare(text: string, types: readonly number[]): WireStatement | null {
    const words = text.trim().split(/\s+/);
    const [verb = ''] = words;
    this.#handler.log.push(`prepare ${text.trim()}`);
    if (verb === '') return null;
    if (verb === 'refuse') throw new WireError('ERROR', '42501', 'not for you', { position: 1, hint: 'ask' });
    const count = Number(words[1]);
    const parameterTypes =
      verb === 'echo' ? [types[0] || 25] : verb === 'takes' ? Array.from({ length: count }, () => 25) : [];
    return {
      parameterTypes,
      columns: columnsOf(verb, count),
      copy: verb === 'copy' ? { columns: 2, format: 0 } : null,
      open: (bind) => this.#open(words, bind),
    };
  }

  #open(words: readonly string[], bind: Bind): Portal {
    this.openPortals++;
    this.#handler.log.push(`open ${words.join(' ')} formats=${bind.resultFormats.join(',')}`);
    if (words[0] === 'badopen') {
      this.openPortals--;
      throw new WireError('ERROR', '22000', 'cannot open');
    }
    let next = 1;
    return {
      fetch: async (maxRows, rows) => {
        if (words[0] !== 'rows') return this.#run(words, bind, rows);
        const total = Number(words[1]);
        const last = maxRows === 0 ? total : Math.min(total, next + maxRows - 1);
        const first = next;
        for (; next <= last; next++) await rows.write(dataRow(String(next)));
        const suspended = maxRows > 0 && next - first === maxRows;
        return { suspended, tag: `SELECT ${next - first}` };
      },
      close: () => {
        this.openPortals--;
      },
    };
  }

  async #run([verb = '', first = '', second = '']: readonly string[], bind: Bind, rows: RowWriter) {
    const done = (tag: string, more: Partial<FetchResult> = {}) => ({ suspended: false, tag, ...more });
    switch (verb) {
      case 'echo':
        await rows.write(dataRow(...bind.parameters.map((p) => (p === null ? null : Buffer.from(p)))));
        return done('SELECT 1');
      case 'begin':
        this.transactionStatus = 'T';
        return done('BEGIN');
      case 'commit':
        this.transactionStatus = 'I';
        return done('COMMIT');
      case 'chain':
        this.control.closePortals();
        return done('COMMIT');
      case 'fail':
        await rows.write(dataRow('1'));
        throw new WireError('ERROR', '22012', 'division by zero', { position: 3 });
      case 'bug':
        throw new Error('secret detail');
      case 'wait':
        await this.#cancelled();
        throw new WireError('ERROR', '57014', 'canceling statement due to user request');
      case 'hold':
        await this.#cancelled();
        return done('HOLD');
      case 'notice':
        return done('NOTICE', { notices: [{ severity: 'NOTICE', sqlstate: '00000', message: 'hear hear' }] });
      case 'set':
        return done('SET', { parameterChanges: [[first, second]] });
      case 'copy':
        await rows.write(join(message('d', 'a\tb\n'), message('d', 'c\td\n')));
        return done('COPY 2');
      case 'blob':
        for (let i = 0; i < Number(second); i++) {
          await rows.write(dataRow('x'.repeat(Number(first))));
          this.written++;
        }
        return done(`SELECT ${second}`);
      case 'deallocate':
        if (first === 'all') this.control.deallocateAll();
        else if (!this.control.deallocate(first)) throw new WireError('ERROR', '26000', 'no such statement');
        return done('DEALLOCATE');
      case 'expire':
        this.expired = true;
        return done('EXPIRE');
      default:
        return done(verb.toUpperCase());
    }
  }

  /** Lets `hold` and `wait` go on. */
  release(): void {
    this.#wake?.();
  }

  get waiting(): boolean {
    return this.#wake !== null;
  }

  #cancelled(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = null;
        resolve();
      };
    });
  }

  noteFailure(): void {
    this.#handler.log.push('failed');
    if (this.transactionStatus === 'T') this.transactionStatus = 'E';
  }

  cancel(): void {
    this.cancelled++;
    this.release();
  }

  expiry(): WireError | null {
    return this.expired ? new WireError('ERROR', '28000', 'the token has expired') : null;
  }

  close(): void {
    this.closed++;
  }
}

function columnsOf(verb: string, count: number): ColumnDescription[] | null {
  const int = { name: 'n', typeOid: 23, typeLength: 4, typeModifier: -1 };
  const string = { name: 't', typeOid: 25, typeLength: -1, typeModifier: -1 };
  switch (verb) {
    case 'rows':
    case 'fail':
      return [int];
    case 'pair':
      return [int, string];
    case 'echo':
    case 'blob':
      return [string];
    case 'gives':
      return Array.from({ length: count }, () => int);
    default:
      return null;
  }
}

function dataRow(...values: (string | Buffer | null)[]): Buffer {
  return message(
    'D',
    int16(values.length),
    ...values.map((v) => (v === null ? int32(-1) : join(int32(Buffer.byteLength(v)), v))),
  );
}

/** Waits until `condition` holds; fails the test by its time limit if it never does. */
export async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}
