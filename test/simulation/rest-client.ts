import type { Reply } from './judge.js';
import type { Act } from './plan.js';
import { SimulatedSocket } from './socket.js';
import { type ClientParts, PATIENCE_US } from './wire-client.js';
import { type Question, textOf, ZONES } from './world.js';

interface Response {
  readonly status: number;
  readonly body: string;
  readonly isWhole: boolean;
}

/** A client of REST, which keeps its connection and writes HTTP by hand. */
export class RestClient {
  readonly #parts: ClientParts;
  #socket: SimulatedSocket | null = null;
  #bytes = Buffer.alloc(0);
  #wake: (() => void) | null = null;
  #isOver = true;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  async live(acts: readonly Act[]): Promise<void> {
    for (const act of acts) await this.#perform(act);
    this.#socket?.end();
    await this.#pause(100_000, 'goodbye');
    this.#socket?.destroy();
  }

  async #perform(act: Act): Promise<void> {
    const { scheduler, host, caller, gateway } = this.#parts;
    scheduler.trace?.(`    caller ${caller} over REST to ${gateway}: ${JSON.stringify(act)}`);
    switch (act.do) {
      case 'rest':
        await this.#pause(act.us, 'rest');
        return;
      case 'vanish':
        this.#send(act.question);
        await this.#pause(act.afterUs, 'vanish');
        this.#socket?.resetAndDestroy();
        this.#isOver = true;
        return;
      case 'slowly':
        this.#connect();
        this.#socket?.pause();
        scheduler.after(host.party, act.us, 'read again', () => this.#socket?.resume());
        await this.#ask(act.question);
        return;
      case 'ask':
        await this.#ask(act.question);
        return;
      default:
        throw new Error(`REST has no ${act.do}`);
    }
  }

  #connect(): void {
    if (!this.#isOver) return;
    const { network, host, port } = this.#parts;
    const socket = new SimulatedSocket(network, host, { allowHalfOpen: true });
    this.#socket = socket;
    this.#bytes = Buffer.alloc(0);
    this.#isOver = false;
    const over = (): void => {
      if (this.#socket === socket) this.#isOver = true;
      this.#wake?.();
    };
    socket.on('data', (bytes: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, bytes]);
      this.#wake?.();
    });
    socket.on('error', over).on('end', over).on('close', over);
    socket.connect(port, '127.0.0.1');
  }

  #send(question: Question): void {
    this.#connect();
    const body = JSON.stringify({ osql: textOf(question) });
    const head = [
      'POST /osl/query HTTP/1.1',
      'host: gateway',
      `authorization: Bearer ${this.#parts.token}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
    ];
    this.#socket?.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  }

  async #ask(question: Question): Promise<void> {
    const { scheduler, judge, gateway, caller } = this.#parts;
    const wasOpen = !this.#isOver;
    const sentAtUs = scheduler.now;
    this.#send(question);
    const response = await this.#response();
    // A kept connection may have ended when the request was under way; it was not answered.
    const isDisturbed = wasOpen && !response.isWhole && response.body === '';
    judge.judge({
      gateway,
      caller,
      question,
      zone: ZONES[0],
      sentAtUs,
      reply: replyIn(response),
      isDisturbed,
    });
  }

  async #response(): Promise<Response> {
    const { scheduler, judge, caller, gateway, host } = this.#parts;
    const until = scheduler.now + PATIENCE_US;
    for (;;) {
      const response = responseIn(this.#bytes, this.#isOver);
      if (response !== null) {
        if (response.isWhole) this.#bytes = Buffer.alloc(0);
        else this.#socket?.destroy();
        return response;
      }
      if (scheduler.now >= until) {
        judge.note('no answer', `caller ${caller} at gateway ${gateway} waited for a response`);
        return { status: 0, body: '', isWhole: false };
      }
      const late = scheduler.channel(host.party);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        late.add(PATIENCE_US, 'patience ends', resolve);
      });
      late.clear();
    }
  }

  #pause(us: number, label: string): Promise<void> {
    const { scheduler, host } = this.#parts;
    return scheduler.pause(host.party, us, label);
  }
}

/** The response at the beginning of these bytes; null if more of it is to come. */
function responseIn(bytes: Buffer, isOver: boolean): Response | null {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return isOver ? { status: 0, body: '', isWhole: false } : null;
  const head = bytes.toString('latin1', 0, end).toLowerCase();
  const status = Number(head.slice(9, 12));
  const rest = bytes.subarray(end + 4);
  const length = /content-length: (\d+)/.exec(head)?.[1];
  if (length !== undefined && rest.length >= Number(length))
    return { status, body: rest.toString('utf8', 0, Number(length)), isWhole: true };
  const chunks = /transfer-encoding: chunked/.test(head) ? chunksIn(rest) : null;
  if (chunks?.isWhole === true) return { status, body: chunks.body, isWhole: true };
  return isOver ? { status, body: chunks?.body ?? rest.toString(), isWhole: false } : null;
}

function chunksIn(bytes: Buffer): { readonly body: string; readonly isWhole: boolean } {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const end = bytes.indexOf('\r\n', at);
    if (end < 0) return { body: Buffer.concat(parts).toString(), isWhole: false };
    const size = Number.parseInt(bytes.toString('latin1', at, end), 16);
    const part = bytes.subarray(end + 2, end + 2 + size);
    parts.push(part);
    at = end + 2 + size + 2;
    if (size === 0) return { body: Buffer.concat(parts).toString(), isWhole: bytes.length >= at };
    if (part.length < size) return { body: Buffer.concat(parts).toString(), isWhole: false };
  }
}

interface QueryBody {
  readonly columns?: readonly { readonly name: string }[];
  readonly rows?: readonly Readonly<Record<string, unknown>>[];
  readonly code?: string;
  readonly sqlstate?: string;
  readonly title?: string;
}

function replyIn({ status, body, isWhole }: Response): Reply {
  if (!isWhole) return { rows: [], sqlstate: null, message: `HTTP ${status}, cut off`, isWhole: false };
  const { columns = [], rows = [], sqlstate, code, title } = JSON.parse(body) as QueryBody; // checked by the judge
  if (status !== 200)
    return { rows: [], sqlstate: sqlstate ?? `HTTP ${status} ${code}`, message: title ?? '', isWhole };
  return {
    rows: rows.map((row) => columns.map(({ name }) => textOfValue(row[name]))),
    sqlstate: null,
    message: '',
    isWhole,
  };
}

/** A value of JSON as Postgres prints it: times are in ISO 8601 there. */
function textOfValue(value: unknown): string {
  if (value === null || value === undefined) return '∅';
  const text = String(value);
  return /^\d{4}-\d\d-\d\dT/.test(text) ? text.replace('T', ' ').replace(/(\.0+)?(Z|\+00:00)$/, '+00') : text;
}
