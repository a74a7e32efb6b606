import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { cancelRequest, password, query, startup } from '../../../wire/support/bytes.js';
import { ScramClient } from '../../../wire/support/scram.js';
import { Conversation, cut, type Message } from './conversation.js';
import { ENDLESS } from './traces.js';
import { type Caller, hiddenIn, PASSWORD, type World } from './world.js';

/** How long an answer may take; a server that says nothing for so long has lost its place. */
const PATIENCE_MS = 30_000;

/** One raw connection: bytes out, whole messages in, and the moment when there is something new. */
export class Line {
  readonly socket: Socket;
  #pending: Buffer = Buffer.alloc(0);
  #raw: Buffer[] = [];
  #wake: () => void = () => undefined;
  closed = false;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('data', (chunk: Buffer) => {
      this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
      this.#raw.push(chunk);
      this.#wake();
    });
    this.socket.on('error', () => undefined);
    for (const event of ['end', 'close'] as const) {
      this.socket.on(event, () => {
        this.closed = true;
        this.#wake();
      });
    }
  }

  /** Whole messages that came since. Throws where the bytes are not messages. */
  take(): readonly Message[] {
    const { messages, rest, fault } = cut(this.#pending, 'server');
    if (fault !== null) throw new Error(`the server sent no message: ${fault}`);
    if (this.closed && rest.length > 0)
      throw new Error(`the server tore a message after ${rest.length} bytes`);
    this.#pending = rest;
    return messages;
  }

  /** Every byte since the last call. */
  takeRaw(): Buffer {
    return Buffer.concat(this.#raw.splice(0));
  }

  /** True as soon as something comes or the end is reached, false after `ms` of silence. */
  async more(ms: number): Promise<boolean> {
    if (this.closed) return true;
    const silence = new AbortController();
    const woken = new Promise<boolean>((resolve) => {
      this.#wake = () => resolve(true);
    });
    const quiet = setTimeout(ms, false, { signal: silence.signal }).catch(() => false);
    const result = await Promise.race([woken, quiet]);
    silence.abort();
    return result;
  }
}

/** A session of a caller, whose every answer is held against what the protocol allows. */
export class Player {
  readonly #line: Line;
  readonly #world: World;
  readonly #caller: Caller;
  readonly #talk = new Conversation();
  /** Of BackendKeyData. */
  readonly #key: Buffer;
  #status = 'I';
  /** Decisions of the caller that belong to earlier sessions, or to the login. */
  readonly #before: number;

  private constructor(line: Line, world: World, caller: Caller, key: Buffer) {
    this.#key = key;
    this.#line = line;
    this.#world = world;
    this.#caller = caller;
    this.#before = world.decisions(caller.subject);
  }

  /** Logged in, by token or by password, and the session answers what it should. */
  static async login(world: World, caller: Caller, how: 'token' | 'password' = 'token'): Promise<Player> {
    const line = new Line(world.port);
    const said: Message[] = [];
    const until = async (enough: () => boolean): Promise<void> => {
      for (;;) {
        said.push(...line.take());
        if (enough()) return;
        if (line.closed || !(await line.more(PATIENCE_MS)))
          throw new Error(`no login: ${said.map((m) => `${m.type} ${m.body}`).join(' ')}`);
      }
    };
    const asked = (times: number) => () => said.filter((m) => m.type === 'R').length === times;
    if (how === 'token') {
      const opening = startup({ user: caller.subject, database: 'osl' });
      line.socket.write(Buffer.concat([opening, password(caller.token)]));
    } else {
      const scram = new ScramClient(PASSWORD, 'rOprNGfwEbeRWgbNEkqO');
      line.socket.write(startup({ user: caller.account, database: 'osl' }));
      await until(asked(1));
      line.socket.write(scram.first());
      await until(asked(2));
      line.socket.write(scram.final(said.at(-1)?.body ?? Buffer.alloc(0)));
    }
    await until(() => said.at(-1)?.type === 'Z');
    const key = said.find((m) => m.type === 'K')?.body ?? Buffer.alloc(0);
    const player = new Player(line, world, caller, key);
    const answer = await player.play([query('select count(*), max(email) from customer')]);
    if (!/^D 4\s*\[redacted\]$/m.test(answer)) throw new Error(`a fresh session answers ${answer}`);
    return player;
  }

  /** A statement that does not end is cancelled: by nothing that `changed` makes of the request, by its own key at once. */
  async cancelled(changed: (request: Buffer) => Buffer): Promise<void> {
    const request = cancelRequest(this.#key.readInt32BE(0), this.#key.subarray(4));
    const answer = this.play([query(ENDLESS)]);
    answer.catch(() => undefined); // awaited below, or not at all where a knock fails first
    await setTimeout(30);
    for (const bytes of [changed(request), request]) {
      const asker = new Line(this.#world.port);
      asker.socket.end(bytes);
      while (!asker.closed) if (!(await asker.more(PATIENCE_MS))) throw new Error('a cancel request is held');
      asker.socket.destroy();
    }
    const said = await answer;
    if (!/^E .*C57014/m.test(said)) throw new Error(`a cancelled statement answers ${said}`);
  }

  get ended(): boolean {
    return this.#talk.ended || this.#line.closed;
  }

  /** The answers to these writes, one text per message. Throws at the first that is wrong. */
  async play(writes: readonly Buffer[]): Promise<string> {
    this.#talk.sends(cut(Buffer.concat(writes), 'client'));
    for (const [i, bytes] of writes.entries()) {
      if (i > 0) await setTimeout(2);
      this.#line.socket.write(bytes);
    }
    const said: Message[] = [];
    for (;;) {
      for (const message of this.#line.take()) {
        said.push(message);
        if (message.type === 'Z') this.#status = message.body.toString();
        this.#talk.hears(message);
      }
      if (this.#talk.fault !== null) throw new Error(`the server says ${this.#talk.fault}`);
      if (this.#talk.answered) break;
      if (this.#line.closed) throw new Error('the server hung up without a word');
      if (!(await this.#line.more(PATIENCE_MS))) throw new Error('the server says nothing more');
    }
    const hidden = hiddenIn(this.#line.takeRaw());
    if (hidden.length > 0) throw new Error(`the server shows ${hidden.join(', ')}`);
    await this.#audited();
    return outline(said);
  }

  /** Ends a transaction that a mutation left open, so that the next trace means something. */
  async settle(): Promise<void> {
    if (!this.ended && this.#status !== 'I') await this.play([query('rollback')]);
  }

  async end(): Promise<void> {
    this.#line.socket.end();
    while (!this.#line.closed) {
      if (!(await this.#line.more(PATIENCE_MS))) throw new Error('the server does not hang up');
    }
    this.#line.take();
    this.#line.socket.destroy();
  }

  /** A refusal by the protocol is recorded after it was said. */
  async #audited(): Promise<void> {
    const { subject } = this.#caller;
    for (let waited = 0; ; waited++) {
      const missing = this.#talk.statements - (this.#world.decisions(subject) - this.#before);
      if (missing <= 0) return;
      if (waited === 200) throw new Error(`${missing} statements are not in the audit log`);
      await setTimeout(waited < 10 ? 1 : 20);
    }
  }
}

/** What was said, without what differs from one time to the next. */
export function outline(messages: readonly Message[]): string {
  return messages
    .map(({ type, body }) => (type === 'K' || type === 'R' ? type : `${type} ${body.toString('latin1')}`))
    .join('\n')
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'REQUEST')
    .replace(/[^\x20-\x7e\n]/g, '');
}
