import { errorMessage, int, type Message, MessageSplitter, message, Reader } from './backend-messages.js';
import type { ControlStore } from './control-store.js';
import { type Network, SimulatedServer } from './network.js';
import type { Scheduler } from './scheduler.js';
import type { Host, SimulatedSocket } from './socket.js';
import {
  cell,
  DatabaseError,
  formatAt,
  OID,
  type Program,
  programOf,
  rowDescription,
  type Settings,
  type Value,
} from './statements.js';

export const DATABASE_PORT = 5432;
export const CONTROL_PORT = 5433;
/** Rows that are sent at once. */
const ROWS_AT_ONCE = 16;
/** Largest time of an ordinary statement, in µs. */
export const USUAL_US = 1_500;

/** Faults and speed of the database, which a run changes. */
export interface DatabaseMood {
  /** Largest time of an ordinary statement, in µs. */
  usualUs: number;
  /** Share of statements that take far longer. */
  slow: number;
  /** Share of statements at which the connection breaks. */
  breaks: number;
  /** True if new connections are refused for lack of places. */
  isFull: boolean;
}

/** A model of Postgres: answers what the gateway asks from memory, over the real protocol. */
export class Database {
  /** The control database has its own statements; null for the database of the data. */
  readonly control: ControlStore | null;
  readonly mood: DatabaseMood = { usualUs: USUAL_US, slow: 0.01, breaks: 0, isFull: false };
  readonly #scheduler: Scheduler;
  readonly #host: Host;
  readonly #sessions = new Map<number, DatabaseSession>();
  #nextPid = 100;

  constructor(scheduler: Scheduler, network: Network, host: Host, control: ControlStore | null = null) {
    this.control = control;
    this.#scheduler = scheduler;
    this.#host = host;
    if (control !== null)
      control.onNotice = (payload) => {
        for (const session of this.#sessions.values()) session.notify('osl_control', payload);
      };
    new SimulatedServer(network, host, {}, (socket) => {
      const session = new DatabaseSession(this, scheduler, host, socket, this.#nextPid++);
      void session.serve();
    }).listen(control === null ? DATABASE_PORT : CONTROL_PORT);
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  add(session: DatabaseSession): void {
    this.#sessions.set(session.pid, session);
  }

  delete(session: DatabaseSession): void {
    this.#sessions.delete(session.pid);
  }

  /** Passes a cancel request on, which the session may see late. */
  async cancel(pid: number, key: number): Promise<void> {
    await this.#scheduler.pause(
      this.#host.party,
      this.#scheduler.random.between(10, 3_000),
      'cancel request',
    );
    const session = this.#sessions.get(pid);
    if (session?.key === key) session.interrupt();
  }

  /** Ends all sessions, as an administrator or a restart does. */
  endSessions(abruptly: boolean): void {
    for (const session of [...this.#sessions.values()]) session.end(abruptly);
  }
}

class DatabaseSession {
  readonly pid: number;
  readonly key: number;
  readonly #database: Database;
  readonly #scheduler: Scheduler;
  readonly #host: Host;
  readonly #socket: SimulatedSocket;
  readonly #splitter = new MessageSplitter(true);
  readonly #waiting: Message[] = [];
  readonly #settings: Settings = new Map([['TimeZone', 'UTC']]);
  readonly #prepared = new Map<string, { readonly program: Program; readonly sql: string }>();
  #portal: {
    readonly program: Program;
    readonly values: readonly string[];
    readonly formats: readonly number[];
    sent: number;
  } | null = null;
  #wake: (() => void) | null = null;
  #out: Buffer[] = [];
  /** Called when the statement that runs is to stop; null while none does. */
  #stop: ((error: DatabaseError) => void) | null = null;
  #status: 'I' | 'T' | 'E' = 'I';
  #isOver = false;
  #isListening = false;

  constructor(database: Database, scheduler: Scheduler, host: Host, socket: SimulatedSocket, pid: number) {
    this.#database = database;
    this.#scheduler = scheduler;
    this.#host = host;
    this.#socket = socket;
    this.pid = pid;
    this.key = scheduler.random.below(2 ** 31);
    socket.on('data', (bytes: Buffer) => {
      this.#waiting.push(...this.#splitter.push(bytes));
      this.#awake();
    });
    socket.on('error', () => undefined); // followed by `close`
    socket.on('close', () => {
      this.#isOver = true;
      this.#stop?.(new DatabaseError('08006', 'the client has gone'));
      this.#awake();
    });
  }

  /** Stops the statement that runs; one that comes later is not meant. */
  interrupt(): void {
    this.#stop?.(new DatabaseError('57014', 'canceling statement due to user request'));
  }

  end(abruptly: boolean): void {
    if (!abruptly) {
      this.#out.push(errorMessage('FATAL', '57P01', 'terminating connection due to administrator command'));
      this.#flush();
    }
    this.#isOver = true;
    this.#stop?.(new DatabaseError('57P01', 'terminating connection due to administrator command'));
    if (abruptly) this.#socket.resetAndDestroy();
    else this.#socket.end();
  }

  #awake(): void {
    this.#wake?.();
    this.#wake = null;
  }

  async #next(): Promise<Message | null> {
    while (this.#waiting.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#isOver ? null : (this.#waiting.shift() ?? null);
  }

  #flush(): void {
    const bytes = Buffer.concat(this.#out.splice(0));
    if (bytes.length > 0 && !this.#socket.destroyed && this.#socket.writable) this.#socket.write(bytes);
  }

  async serve(): Promise<void> {
    const startup = await this.#next();
    if (startup === null) return;
    const code = startup.body.readInt32BE(0);
    if (code === 80_877_102) {
      await this.#database.cancel(startup.body.readInt32BE(4), startup.body.readInt32BE(8));
      this.#socket.end();
      return;
    }
    if (this.#database.mood.isFull) {
      this.#out.push(errorMessage('FATAL', '53300', 'sorry, too many clients already'));
      this.#flush();
      this.#socket.end();
      return;
    }
    this.#database.add(this);
    const parameter = (name: string, value: string): Buffer => message('S', name, value);
    this.#out.push(
      message('R', 0),
      parameter('server_version', '15.18'),
      parameter('client_encoding', 'UTF8'),
      parameter('standard_conforming_strings', 'on'),
      message('K', this.pid, this.key),
      message('Z', Buffer.from('I')),
    );
    this.#flush();
    let isSkipping = false;
    for (let next = await this.#next(); next !== null; next = await this.#next()) {
      if (next.type === 'X') break;
      if (isSkipping && next.type !== 'S') continue;
      isSkipping = false;
      try {
        await this.#handle(next);
      } catch (error) {
        if (!(error instanceof DatabaseError)) throw error;
        if (this.#isOver) break;
        this.#out.push(errorMessage('ERROR', error.sqlstate, error.message));
        if (this.#status === 'T') this.#status = 'E';
        isSkipping = next.type !== 'Q';
        if (next.type === 'Q') this.#ready();
      }
    }
    this.#database.delete(this);
    this.#database.control?.end(this.#settings, 'rollback');
    if (!this.#socket.destroyed) this.#socket.end();
  }

  async #handle({ type, body }: Message): Promise<void> {
    const reader = new Reader(body);
    switch (type) {
      case 'Q':
        await this.#simple(reader.text());
        this.#ready();
        return;
      case 'P': {
        const name = reader.text();
        const sql = reader.text();
        if (name !== '' && this.#prepared.has(name))
          throw new DatabaseError('42P05', `prepared statement "${name}" already exists`);
        this.#prepared.set(name, { program: this.#programOf(sql), sql });
        this.#out.push(message('1'));
        return;
      }
      case 'D': {
        const kind = reader.bytes(1).toString();
        const { program } = this.#find(kind === 'S' ? reader.text() : '');
        if (kind === 'S')
          this.#out.push(
            message(
              't',
              int(program.parameters, 2),
              ...new Array<Buffer>(program.parameters).fill(int(OID.text, 4)),
            ),
          );
        this.#out.push(program.columns.length === 0 ? message('n') : rowDescription(program.columns, []));
        return;
      }
      case 'B':
        this.#bind(reader);
        return;
      case 'E': {
        reader.text();
        await this.#execute(reader.int(4));
        return;
      }
      case 'C': {
        reader.bytes(1);
        this.#prepared.delete(reader.text());
        this.#out.push(message('3'));
        return;
      }
      case 'S':
        this.#endStatement();
        this.#ready();
        return;
      case 'H':
        this.#flush();
        return;
      default:
        throw new DatabaseError('08P01', `the model knows no message ${type}`);
    }
  }

  /** The program of a statement, a command of transactions, or LISTEN. */
  #programOf(sql: string): Program {
    const text = sql.trim();
    const tag = /^(BEGIN|COMMIT|ROLLBACK|LISTEN)\b/i.exec(text)?.[1]?.toUpperCase();
    if (tag === 'LISTEN') this.#isListening = true;
    if (tag !== undefined)
      return { columns: [], parameters: 0, reads: false, tag: () => tag, rows: () => [] };
    return this.#database.control?.programOf(text) ?? programOf(text);
  }

  /** Sends a notification, unless the session listens to none. */
  notify(channel: string, payload: string): void {
    if (!this.#isListening) return;
    const { random } = this.#scheduler;
    this.#scheduler.after(this.#host.party, random.between(50, 5_000), `notify ${payload}`, () => {
      this.#out.push(message('A', this.pid, channel, payload));
      this.#flush();
    });
  }

  #find(name: string) {
    const found = this.#prepared.get(name);
    if (found === undefined) throw new DatabaseError('26000', `prepared statement "${name}" does not exist`);
    return found;
  }

  #bind(reader: Reader): void {
    reader.text();
    const { program } = this.#find(reader.text());
    const list = <T>(item: () => T): T[] => Array.from({ length: reader.int(2) }, item);
    const formats = list(() => reader.int(2));
    const values = list(() => {
      const length = reader.int(4);
      return length < 0 ? Buffer.alloc(0) : reader.bytes(length);
    });
    const texts = values.map((bytes, i) =>
      formatAt(formats, i) === 1 ? String(bytes.readInt32BE(0)) : bytes.toString(),
    );
    this.#portal = { program, values: texts, formats: list(() => reader.int(2)), sent: 0 };
    this.#out.push(message('2'));
  }

  async #execute(limit: number): Promise<void> {
    const portal = this.#portal;
    if (portal === null) throw new DatabaseError('34000', 'portal "" does not exist');
    const { program, values, formats } = portal;
    if (this.#status === 'E' && program.tag(0) !== 'ROLLBACK')
      throw new DatabaseError('25P02', 'current transaction is aborted');
    await this.#work(program);
    while (program.waits?.(values, this.#settings) === true) await this.#during(400);
    const rows = program.rows(values, this.#settings);
    const most = limit === 0 ? rows.length : portal.sent + limit;
    await this.#sendRows(rows.slice(portal.sent, most), program, formats);
    portal.sent = Math.min(most, rows.length);
    this.#out.push(most < rows.length ? message('s') : message('C', program.tag(rows.length)));
    this.#transact(program.tag(0));
  }

  async #sendRows(
    rows: readonly (readonly Value[])[],
    { columns }: Program,
    formats: readonly number[],
  ): Promise<void> {
    for (const [n, row] of rows.entries()) {
      const cells = columns.map((of, i) => cell(row[i] ?? null, of, formatAt(formats, i)));
      this.#out.push(message('D', int(columns.length, 2), ...cells));
      if (n % ROWS_AT_ONCE !== ROWS_AT_ONCE - 1) continue;
      this.#flush();
      this.#breakNowAndThen();
      await this.#during(this.#scheduler.random.between(20, 600));
      while (this.#socket.writableNeedDrain && !this.#isOver) await this.#during(500);
    }
  }

  async #simple(text: string): Promise<void> {
    if (text.trim() === '') this.#out.push(message('I'));
    for (const sql of text.split(';').map((part) => part.trim())) {
      if (sql === '') continue;
      const program = this.#programOf(sql);
      await this.#work(program);
      const rows = program.rows([], this.#settings);
      if (program.columns.length > 0) this.#out.push(rowDescription(program.columns, []));
      await this.#sendRows(rows, program, []);
      this.#out.push(message('C', program.tag(rows.length)));
      this.#transact(program.tag(0));
    }
    this.#endStatement();
  }

  #transact(tag: string): void {
    const control = this.#database.control;
    if (tag === 'BEGIN') {
      this.#status = 'T';
      control?.begin(this.#settings);
    }
    if (tag !== 'COMMIT' && tag !== 'ROLLBACK') return;
    control?.end(this.#settings, tag === 'COMMIT' && this.#status !== 'E' ? 'commit' : 'rollback');
    this.#status = 'I';
  }

  #breakNowAndThen(): void {
    const { random } = this.#scheduler;
    if (!random.chance(this.#database.mood.breaks)) return;
    this.end(random.chance(0.7));
    throw new DatabaseError('08006', 'broken');
  }

  /** Takes the time of a statement, within its timeout. */
  async #work(program: Program): Promise<void> {
    const { random } = this.#scheduler;
    const { usualUs, slow } = this.#database.mood;
    if (program.reads) this.#breakNowAndThen();
    const us = program.reads
      ? random.chance(slow)
        ? random.between(20_000, 400_000)
        : random.between(50, usualUs)
      : 20;
    const timeoutUs = 1_000 * Number(this.#settings.get('statement_timeout') ?? 0);
    const isLate = timeoutUs > 0 && us > timeoutUs;
    await this.#during(isLate ? timeoutUs : us);
    if (isLate) throw new DatabaseError('57014', 'canceling statement due to statement timeout');
  }

  /** Waits, unless it is interrupted. */
  #during(us: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (error: DatabaseError): void => {
        this.#stop = null;
        reject(error);
      };
      this.#stop = stop;
      this.#scheduler.after(this.#host.party, us, 'work of the database', () => {
        if (this.#stop !== stop) return;
        this.#stop = null;
        if (this.#isOver) reject(new DatabaseError('08006', 'the client has gone'));
        else resolve();
      });
    });
  }

  /** Takes back what was set for a transaction that has ended. */
  #endStatement(): void {
    if (this.#status === 'T') return;
    for (const [name, value] of [...this.#settings]) {
      if (!name.startsWith('local ')) continue;
      this.#settings.set(name.slice(6), value);
      this.#settings.delete(name);
    }
  }

  #ready(): void {
    this.#out.push(message('Z', Buffer.from(this.#status)));
    this.#flush();
  }
}
