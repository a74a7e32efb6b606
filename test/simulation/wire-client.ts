import { cellsOf, fieldsOf, int, type Message, MessageSplitter, message } from './backend-messages.js';
import type { Judge, Reply } from './judge.js';
import type { Network } from './network.js';
import type { Act } from './plan.js';
import type { Scheduler } from './scheduler.js';
import { type Host, SimulatedSocket } from './socket.js';
import { OID } from './statements.js';
import { preparedTextOf, type Question, textOf, ZONES, type Zone } from './world.js';

export interface ClientParts {
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly host: Host;
  readonly judge: Judge;
  readonly gateway: number;
  readonly port: number;
  readonly caller: number;
  readonly token: string;
}

/** Virtual time in µs within which every question must be answered or its connection ended. */
export const PATIENCE_US = 120_000_000;

interface Column {
  readonly oid: number;
  readonly isBinary: boolean;
}

/** A client of the Postgres port, which speaks the protocol by hand. */
export class WireClient {
  readonly #parts: ClientParts;
  readonly #socket: SimulatedSocket;
  readonly #splitter = new MessageSplitter();
  readonly #received: Message[] = [];
  readonly #prepared = new Map<string, string>();
  #wake: (() => void) | null = null;
  #isOver = false;
  #columns: readonly Column[] = [];
  #key: { readonly pid: number; readonly secret: Buffer } = { pid: 0, secret: Buffer.alloc(0) };
  #zone: Zone = ZONES[0];

  constructor(parts: ClientParts) {
    this.#parts = parts;
    const { network, host, gateway, caller, port } = parts;
    const socket = new SimulatedSocket(network, host, { allowHalfOpen: true });
    this.#socket = socket;
    socket.label = `${gateway} ${caller}`;
    socket.on('data', (bytes: Buffer) => {
      this.#received.push(...this.#splitter.push(bytes));
      this.#awake();
    });
    const over = (): void => {
      this.#isOver = true;
      this.#awake();
    };
    socket.on('error', over).on('end', over).on('close', over);
    socket.connect(port, '127.0.0.1');
  }

  /** Logs in, does what is planned and leaves. */
  async live(acts: readonly Act[]): Promise<void> {
    if (await this.#login()) for (const act of acts) if (!this.#isOver) await this.#perform(act);
    if (!this.#socket.destroyed && this.#socket.writable) {
      this.#socket.write(message('X'));
      this.#socket.end();
    }
    await this.#pause(200_000, 'goodbye');
    this.#socket.destroy();
  }

  async #login(): Promise<boolean> {
    const { caller, token, scheduler } = this.#parts;
    const sentAtUs = scheduler.now;
    const body = Buffer.from(`user\0user:${caller}\0database\0osl\0\0`);
    this.#send(Buffer.concat([int(body.length + 8, 4), int(196_608, 4), body]));
    for (;;) {
      const next = await this.#next('a login');
      if (next === null) return false;
      if (next.type === 'R' && next.body.readInt32BE(0) === 3) this.#send(message('p', token));
      if (next.type === 'K') this.#key = { pid: next.body.readInt32BE(0), secret: next.body.subarray(4) };
      if (next.type === 'E') {
        const fields = fieldsOf(next.body);
        const reply = {
          rows: [],
          sqlstate: fields.get('C') ?? '',
          message: fields.get('M') ?? '',
          isWhole: true,
        };
        this.#judge({ kind: 'point', id: 0 }, sentAtUs, reply, false);
        return false;
      }
      if (next.type === 'Z') break;
    }
    return true;
  }

  async #perform(act: Act): Promise<void> {
    const { scheduler, host, caller, gateway } = this.#parts;
    scheduler.trace?.(`    caller ${caller} on the wire to ${gateway}: ${JSON.stringify(act)}`);
    switch (act.do) {
      case 'ask':
        await this.#ask(act.question, message('Q', textOf(act.question)));
        return;
      case 'prepared':
        await this.#askPrepared([act.question], act.binary);
        return;
      case 'pipeline':
        await this.#askPrepared(act.questions, false);
        return;
      case 'block':
        await this.#askInBlock(act.questions);
        return;
      case 'zone':
        await this.#setZone(ZONES[act.zone] ?? ZONES[0]);
        return;
      case 'cancel':
        scheduler.after(host.party, act.afterUs, 'cancel', () => this.#cancel());
        await this.#ask(act.question, message('Q', textOf(act.question)), true);
        // A cancel that comes late must not hit what follows.
        await this.#pause(20_000, 'after a cancel');
        return;
      case 'slowly':
        this.#socket.pause();
        scheduler.after(host.party, act.us, 'read again', () => this.#socket.resume());
        await this.#ask(act.question, message('Q', textOf(act.question)));
        return;
      case 'vanish':
        this.#send(message('Q', textOf(act.question)));
        await this.#pause(act.afterUs, 'vanish');
        this.#socket.resetAndDestroy();
        this.#isOver = true;
        return;
      case 'halfClose':
        this.#send(message('Q', textOf(act.question)));
        this.#socket.end();
        this.#isOver = true;
        return;
      case 'rest':
        await this.#pause(act.us, 'rest');
        return;
    }
  }

  async #ask(question: Question, bytes: Buffer, isDisturbed = false): Promise<void> {
    const sentAtUs = this.#parts.scheduler.now;
    this.#send(bytes);
    this.#judge(question, sentAtUs, await this.#reply(), isDisturbed);
  }

  async #askPrepared(questions: readonly Question[], isBinary: boolean): Promise<void> {
    const sentAtUs = this.#parts.scheduler.now;
    const out: Buffer[] = [];
    for (const question of questions) {
      const text = preparedTextOf(question.kind);
      if (text === null) {
        out.push(message('P', '', textOf(question), int(0, 2)), bindOf('', [], isBinary));
      } else {
        const name = this.#prepared.get(text) ?? `s${this.#prepared.size}`;
        if (!this.#prepared.has(text)) out.push(message('P', name, text, int(0, 2)));
        this.#prepared.set(text, name);
        out.push(bindOf(name, [String(question.id)], isBinary));
      }
      out.push(message('D', Buffer.from('P'), ''), message('E', '', 0), message('S'));
    }
    this.#send(Buffer.concat(out));
    for (const [i, question] of questions.entries()) {
      const reply = await this.#reply();
      // What was not prepared is prepared anew.
      if (reply.sqlstate !== null) {
        this.#prepared.clear();
        this.#send(
          Buffer.concat(
            [...Array(9).keys()].map((n) => message('C', Buffer.from('S'), `s${n}`)).concat(message('S')),
          ),
        );
        for (const other of questions.slice(i + 1))
          this.#judge(other, sentAtUs, await this.#reply(), false, true);
        this.#judge(question, sentAtUs, reply, false);
        await this.#reply();
        return;
      }
      this.#judge(question, sentAtUs, reply, false);
    }
  }

  async #askInBlock(questions: readonly Question[]): Promise<void> {
    this.#send(message('Q', 'begin'));
    const begun = await this.#reply();
    if (!begun.isWhole || begun.sqlstate !== null) return;
    let failed = false;
    for (const question of questions) {
      const sentAtUs = this.#parts.scheduler.now;
      this.#send(message('Q', textOf(question)));
      const reply = await this.#reply();
      if (!failed || reply.sqlstate !== '25P02') this.#judge(question, sentAtUs, reply, false, failed);
      failed ||= reply.sqlstate !== null;
    }
    this.#send(message('Q', 'commit'));
    await this.#reply();
  }

  async #setZone(zone: Zone): Promise<void> {
    this.#send(message('Q', `set timezone = '${zone.name}'`));
    const reply = await this.#reply();
    if (reply.sqlstate === null && reply.isWhole) this.#zone = zone;
  }

  #cancel(): void {
    const { network, host, port } = this.#parts;
    const socket = new SimulatedSocket(network, host);
    socket.on('error', () => undefined);
    socket.resume();
    socket.connect(port, '127.0.0.1');
    const { pid, secret } = this.#key;
    socket.end(Buffer.concat([int(12 + secret.length, 4), int(80_877_102, 4), int(pid, 4), secret]));
  }

  /** Everything up to ReadyForQuery, or the end of the connection. */
  async #reply(): Promise<Reply> {
    const rows: string[][] = [];
    let sqlstate: string | null = null;
    let text = '';
    for (;;) {
      const next = await this.#next('an answer');
      if (next === null) return { rows, sqlstate, message: text, isWhole: false };
      if (next.type === 'T') this.#columns = columnsOf(next.body);
      if (next.type === 'D')
        rows.push(cellsOf(next.body).map((cell, i) => textIn(cell, this.#columns[i], this.#zone)));
      if (next.type === 'E') {
        const fields = fieldsOf(next.body);
        sqlstate = fields.get('C') ?? '';
        text = fields.get('M') ?? '';
      }
      if (next.type === 'Z') return { rows, sqlstate, message: text, isWhole: true };
    }
  }

  #judge(question: Question, sentAtUs: number, reply: Reply, isDisturbed: boolean, mayFail = false): void {
    const { gateway, caller, judge } = this.#parts;
    if (mayFail && reply.sqlstate !== null) return;
    judge.judge({
      gateway,
      caller,
      question,
      zone: this.#zone,
      sentAtUs,
      reply,
      isDisturbed,
    });
  }

  #send(bytes: Buffer): void {
    if (!this.#socket.destroyed && this.#socket.writable) this.#socket.write(bytes);
  }

  #pause(us: number, label: string): Promise<void> {
    const { scheduler, host } = this.#parts;
    return scheduler.pause(host.party, us, label);
  }

  #awake(): void {
    this.#wake?.();
    this.#wake = null;
  }

  async #next(what: string): Promise<Message | null> {
    const { scheduler, judge, host } = this.#parts;
    const until = scheduler.now + PATIENCE_US;
    while (this.#received.length === 0 && !this.#isOver) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      const late = scheduler.channel(host.party);
      late.add(PATIENCE_US, 'patience ends', () => this.#awake());
      await woken;
      late.clear();
      if (this.#received.length === 0 && !this.#isOver && scheduler.now >= until) {
        judge.note(
          'no answer',
          `caller ${this.#parts.caller} at gateway ${this.#parts.gateway} waited for ${what} on the wire`,
        );
        this.#isOver = true;
      }
    }
    return this.#received.shift() ?? null;
  }
}

function bindOf(name: string, values: readonly string[], isBinary: boolean): Buffer {
  const bound = values.map((value) => Buffer.concat([int(Buffer.byteLength(value), 4), Buffer.from(value)]));
  return message(
    'B',
    '',
    name,
    int(0, 2),
    int(values.length, 2),
    ...bound,
    int(1, 2),
    int(isBinary ? 1 : 0, 2),
  );
}

function columnsOf(body: Buffer): readonly Column[] {
  const columns: Column[] = [];
  let at = 2;
  for (let n = body.readInt16BE(0); n > 0; n--) {
    at = body.indexOf(0, at) + 1;
    columns.push({ oid: body.readInt32BE(at + 6), isBinary: body.readInt16BE(at + 16) === 1 });
    at += 18;
  }
  return columns;
}

function textIn(cell: Buffer | null, column: Column | undefined, { hours, suffix }: Zone): string {
  if (cell === null) return '∅';
  if (column?.isBinary !== true) return cell.toString();
  // A value of another length has another format than was asked for.
  if (
    cell.length !==
    (column.oid === OID.timestamptz || column.oid === OID.int8
      ? 8
      : column.oid === OID.int4
        ? 4
        : cell.length)
  )
    return `${cell.toString('hex')} in the wrong format`;
  if (column.oid === OID.timestamptz) {
    const ms = Number(cell.readBigInt64BE(0) / 1_000n) + Date.UTC(2000, 0, 1) + hours * 3_600_000;
    return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}${suffix}`;
  }
  if (column.oid === OID.int4) return String(cell.readInt32BE(0));
  return column.oid === OID.int8 ? String(cell.readBigInt64BE(0)) : cell.toString();
}
