import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Question, questionOf } from './shop.js';

/** Where clients of one gateway, or of one load balancer, connect. */
export interface Target {
  readonly name: string;
  readonly httpPort: () => number;
  readonly pgPort: () => number;
  readonly token: (subject: string) => Promise<string>;
}

export interface Outcome {
  readonly target: string;
  readonly surface: 'rest' | 'wire';
  /** `connect`: a new session on the wire. */
  readonly what: 'query' | 'connect';
  /** On the clock of `performance.now()`. */
  readonly began: number;
  readonly ended: number;
  /** `right`, `wrong`, or the code of the error. */
  readonly result: string;
  /** Of an answer over REST. */
  readonly requestId: string | null;
}

export interface LoadOptions {
  /** Clients of each surface at each target. */
  readonly clients: number;
  /** Pause between two queries of a client, ms. */
  readonly pauseMs: number;
  /** Queries of one wire session, after which its client opens another. */
  readonly sessionQueries: number;
}

const TIMEOUT_MS = 30_000;

/** Clients that ask questions whose answers are known, until they are stopped. */
export class Load {
  readonly outcomes: Outcome[] = [];
  readonly #options: LoadOptions;
  readonly #clients: Promise<void>[] = [];
  /** Codes with which sessions ended while no query ran. */
  readonly #told = new WeakMap<pg.Client, string>();
  #over = false;

  constructor(targets: readonly Target[], options: LoadOptions) {
    this.#options = options;
    for (const target of targets)
      for (let i = 0; i < options.clients; i++)
        this.#clients.push(this.#rest(target, i), this.#wire(target, i));
  }

  /** Outcomes that ended at or after `from`, and before `to`. */
  between(from: number, to: number): readonly Outcome[] {
    return this.outcomes.filter(({ ended }) => ended >= from && ended < to);
  }

  async stop(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#clients);
  }

  async #rest(target: Target, first: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let turn = first; !this.#over; turn++) {
      const question = questionOf(turn);
      const token = await target.token('user:load');
      await this.#timed(target, 'rest', 'query', async () => {
        const reply = await post(agent, target.httpPort(), question.osql, token);
        return { result: judged(reply, question), requestId: reply.status === 200 ? reply.requestId : null };
      });
      await sleep(this.#options.pauseMs);
    }
    agent.destroy();
  }

  async #wire(target: Target, first: number): Promise<void> {
    let client: pg.Client | null = null;
    for (let turn = first, left = 0; !this.#over; turn++, left--) {
      if (client !== null && left === 0) {
        await client.end().catch(() => undefined);
        client = null;
      }
      if (client === null) {
        client = await this.#session(target);
        left = this.#options.sessionQueries;
      }
      if (client !== null) client = await this.#query(target, client, questionOf(turn));
      await sleep(this.#options.pauseMs);
    }
    await client?.end().catch(() => undefined);
  }

  /** Null if it could not be opened, which is noted. */
  async #session(target: Target): Promise<pg.Client | null> {
    const client = new pg.Client({
      host: '127.0.0.1',
      port: target.pgPort(),
      user: 'user:load',
      database: 'osl',
      password: await target.token('user:load'),
      connectionTimeoutMillis: TIMEOUT_MS,
      query_timeout: TIMEOUT_MS,
    });
    client.on('error', (error) => {
      if (!this.#told.has(client)) this.#told.set(client, codeIn(error)); // the next query is told
    });
    let made: pg.Client | null = null;
    await this.#timed(target, 'wire', 'connect', async () => {
      await client.connect();
      made = client;
      return { result: 'right', requestId: null };
    });
    return made;
  }

  /** Null if the session is over. */
  async #query(target: Target, client: pg.Client, question: Question): Promise<pg.Client | null> {
    let open = true;
    await this.#timed(target, 'wire', 'query', async () => {
      try {
        const { rows } = await client.query(question.osql);
        return { result: question.isAnswer(rows) ? 'right' : 'wrong', requestId: null };
      } catch (error) {
        open = error instanceof pg.DatabaseError && error.severity === 'ERROR';
        const result = error instanceof pg.DatabaseError ? codeIn(error) : this.#told.get(client);
        return { result: result ?? codeIn(error), requestId: null };
      }
    });
    return open ? client : null;
  }

  async #timed(
    { name: target }: Target,
    surface: Outcome['surface'],
    what: Outcome['what'],
    work: () => Promise<Pick<Outcome, 'result' | 'requestId'>>,
  ): Promise<void> {
    const began = performance.now();
    const { result, requestId } = await work().catch((error: unknown) => ({
      result: codeIn(error),
      requestId: null,
    }));
    this.outcomes.push({ target, surface, what, began, ended: performance.now(), result, requestId });
  }
}

interface Reply {
  readonly status: number;
  readonly rows: readonly unknown[];
  readonly code: string;
  readonly requestId: string | null;
}

function judged({ status, rows, code }: Reply, question: Question): string {
  if (status === 200) return question.isAnswer(rows) ? 'right' : 'wrong';
  return code === '' ? `${status}` : code;
}

/** One question to a gateway, or to a load balancer before it. Rejects if the connection breaks. */
export function post(agent: Agent | false, port: number, osql: string, token: string): Promise<Reply> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port, path: '/osl/query', method: 'POST', headers, agent, timeout: TIMEOUT_MS },
      (reply) => {
        let text = '';
        reply.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        reply.once('error', reject);
        reply.once('end', () => resolve(replyIn(reply.statusCode ?? 0, text)));
      },
    );
    sent.once('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.once('error', reject);
    sent.end(JSON.stringify({ osql }));
  });
}

function replyIn(status: number, text: string): Reply {
  try {
    const { rows = [], code = '', request_id: requestId = null }: Record<string, unknown> = JSON.parse(text);
    return {
      status,
      rows: Array.isArray(rows) ? rows : [],
      code: String(code),
      requestId: typeof requestId === 'string' ? requestId : null,
    };
  } catch {
    return { status, rows: [], code: '', requestId: null }; // of a load balancer
  }
}

function codeIn(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string')
    return error.code;
  return error instanceof Error ? error.message : String(error);
}

/** The 99th percentile of how long right answers took, ms; NaN if there are none. */
export function p99(outcomes: readonly Outcome[]): number {
  const times = outcomes
    .filter(({ what, result }) => what === 'query' && result === 'right')
    .map(({ began, ended }) => ended - began)
    .sort((a, b) => a - b);
  return times[Math.min(times.length - 1, Math.floor(times.length * 0.99))] ?? Number.NaN;
}

/** Codes of what failed, with how often, as `08006 12, E0523 3`; `none`. */
export function failures(outcomes: readonly Outcome[]): string {
  const counts = new Map<string, number>();
  for (const { result } of outcomes)
    if (result !== 'right') counts.set(result, (counts.get(result) ?? 0) + 1);
  return [...counts].map(([code, n]) => `${code} ${n}`).join(', ') || 'none';
}
