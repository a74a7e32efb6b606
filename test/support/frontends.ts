import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { emit } from 'osl-compiler';
import type { AuditEntry, AuditUnavailable } from '../../audit/index.js';
import { mintToken } from '../../policy/index.js';
import type { GovernedEngine } from '../../src/engine/index.js';
import type { OpenService } from '../../src/service/open.js';
import type { Service } from '../../src/service/service.js';
import { createHttpServer } from '../../src/surfaces/http/server.js';
import { createPgFrontend } from '../../src/surfaces/pg/index.js';
import * as wire from '../wire/support/bytes.js';
import { replacing } from './replacing.js';
import { sealedParts, sealing } from './sealed-parts.js';
import { watchedLog } from './watched-log.js';

/** The three ways in which a caller can put the same question. */
export const SURFACES = ['simple wire', 'extended wire', 'REST'] as const;
export type SurfaceName = (typeof SURFACES)[number];

/** A value as Postgres writes it in text; REST's JSON values are brought to the same form. */
export type Cell = string | null;

export type Outcome =
  | {
      readonly kind: 'rows';
      readonly columns: readonly string[];
      readonly rows: readonly (readonly Cell[])[];
    }
  | {
      readonly kind: 'refused';
      readonly code: string;
      readonly sqlstate: string;
      readonly message: string;
      readonly hint: string | null;
      /** In Unicode code points from 1; null where the error has no place. */
      readonly position: number | null;
    };

export interface Reply {
  readonly outcome: Outcome;
  /** Every byte that came, protocol and headers included. */
  readonly raw: Buffer;
  readonly requestId: string | null;
  /** Column types, by their names in REST or their OIDs on the wire. */
  readonly types: readonly string[];
}

/** One caller on one surface. */
export interface Asker {
  ask(text: string): Promise<Reply>;
  end(): void;
}

export interface Caller {
  readonly subject: string;
  readonly aclRoles: readonly string[];
  readonly chain?: readonly string[];
  readonly roles?: readonly string[];
}

/** A governed statement as an engine received it. */
export interface ReceivedStatement {
  readonly sql: string;
  readonly values: readonly Cell[];
}

/** Both frontends over one service, and what they wrote to the audit log. */
export interface Frontends {
  readonly pgPort: number;
  readonly httpPort: number;
  /** Everything that was appended since the last `takeAudit`, in order. */
  takeAudit(): AuditEntry[];
  /** What reached a database since the last call. */
  takeStatements(): ReceivedStatement[];
  /** Questions of the wire that were answered by a route. */
  fastQuestions(): number;
  /** While set, nothing can be recorded. */
  breakAudit(error: AuditUnavailable | null): void;
  token(caller: Caller, claims?: { readonly issuedAt?: number }): Promise<string>;
  /** `body` is what REST is sent the text as. */
  asker(surface: SurfaceName, caller: Caller, body?: 'osql' | 'sql'): Promise<Asker>;
  stop(): Promise<void>;
}

/**
 * The limits per address are off: a test is one address, and fails to log in more often than anybody may. Unless `fast`,
 * the fast lane is hidden, so that `takeStatements` misses nothing.
 */
export async function startFrontends(open: OpenService, { fast = false } = {}): Promise<Frontends> {
  const entries: AuditEntry[] = [];
  let failure: AuditUnavailable | null = null;
  const sealed = sealedParts(open.service);
  const audit = watchedLog(
    sealed.audit,
    (entry) => entries.push(entry),
    () => failure,
  );
  const limiter = { ...sealed.limiter, takeAddress: () => ({ ok: true as const }) };
  const statements: ReceivedStatement[] = [];
  const engines = new Map([...sealed.engines].map(([name, e]) => [name, fast ? e : watched(e, statements)]));
  const service: Service = sealing(open.service, { audit, limiter, engines });
  const pg = createPgFrontend(service);
  const { port: pgPort } = await pg.listen(0, '127.0.0.1');
  const rest = await createHttpServer(service);
  const { port: httpPort } = await rest.listen(0, '127.0.0.1');
  const token = (caller: Caller, claims: { readonly issuedAt?: number } = {}): Promise<string> =>
    mintToken(
      {
        tenant: service.tenant,
        chain: caller.chain ?? [caller.subject],
        aclRoles: caller.aclRoles,
        roles: caller.roles ?? [],
        ...claims,
      },
      { algorithm: 'HS256', secret: open.keys.signing },
    );
  return {
    pgPort,
    httpPort,
    takeAudit: () => entries.splice(0),
    takeStatements: () => statements.splice(0),
    fastQuestions: () => pg.fastQuestions,
    breakAudit: (error) => {
      failure = error;
    },
    token,
    asker: async (surface, caller, body = 'osql') => {
      if (surface === 'REST') return restAsker(httpPort, await token(caller), body);
      const client = await WireClient.login(pgPort, caller.subject, await token(caller));
      return surface === 'simple wire'
        ? { ask: (text) => client.simple(text), end: () => client.end() }
        : { ask: (text) => client.extended(text), end: () => client.end() };
    },
    stop: async () => {
      await pg.stop(0);
      await rest.close(0);
    },
  };
}

/** `engine`, with a note of what goes through its governed door. */
function watched(engine: GovernedEngine, statements: ReceivedStatement[]): GovernedEngine {
  return replacing(engine, {
    short: () => null, // each question comes by here
    execute: (plan, values, options, sink) => {
      const texts = values.map((v) => (v.bytes === null ? null : Buffer.from(v.bytes).toString('utf8')));
      statements.push({ sql: emit(plan).sql, values: texts });
      return engine.execute(plan, values, options, sink);
    },
  });
}

// ---- wire -----------------------------------------------------------------------------------------------------

export interface Message {
  readonly type: string;
  readonly body: Buffer;
}

/** A raw client that keeps every byte it was sent. */
export class WireClient {
  readonly socket: Socket;
  #pending = Buffer.alloc(0);
  #raw: Buffer[] = [];
  #closed = false;
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#pending = Buffer.concat([this.#pending, chunk]);
      this.#raw.push(chunk);
      this.#wake();
    });
    socket.on('error', () => undefined);
    const closed = (): void => {
      this.#closed = true;
      this.#wake();
    };
    socket.on('end', closed);
    socket.on('close', closed);
  }

  static async open(port: number): Promise<WireClient> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const client = new WireClient(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return client;
  }

  /** Connected and authenticated; throws the server's message where it refuses. */
  static async login(
    port: number,
    user: string,
    token: string,
    parameters: Record<string, string> = {},
  ): Promise<WireClient> {
    const { client, reply } = await WireClient.attempt(port, user, token, parameters);
    if (reply.outcome.kind === 'refused') throw new Error(reply.outcome.message);
    return client;
  }

  /** A login and what came of it. */
  static async attempt(port: number, user: string, token: string, parameters: Record<string, string> = {}) {
    const client = await WireClient.open(port);
    client.send(wire.startup({ user, database: 'osl', ...parameters }), wire.password(token));
    const messages = await client.messagesUntil('Z');
    return { client, messages, reply: client.reply(messages) };
  }

  send(...parts: Buffer[]): this {
    this.socket.write(Buffer.concat(parts));
    return this;
  }

  /** Whole messages up to one of type `type`; up to the end where the server closes first. */
  async messagesUntil(type: string): Promise<Message[]> {
    const messages: Message[] = [];
    for (;;) {
      const message = this.#next();
      if (message !== null) {
        messages.push(message);
        if (message.type === type) return messages;
      } else if (this.#closed) return messages;
      else await this.#more();
    }
  }

  /** What comes for these messages up to ReadyForQuery. */
  async exchange(...parts: Buffer[]): Promise<Message[]> {
    this.send(...parts);
    return this.messagesUntil('Z');
  }

  async simple(text: string): Promise<Reply> {
    return this.reply(await this.exchange(wire.query(text)));
  }

  async extended(text: string, bind: wire.BindOptions = {}, types: number[] = []): Promise<Reply> {
    return this.reply(
      await this.exchange(
        wire.parse('', text, types),
        wire.bind('', '', bind),
        wire.describe('P'),
        wire.execute(),
        wire.sync,
      ),
    );
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Every byte since the last call. */
  takeRaw(): Buffer {
    return Buffer.concat(this.#raw.splice(0));
  }

  reply(messages: readonly Message[]): Reply {
    const raw = this.takeRaw();
    const refusal = messages.find((m) => m.type === 'E');
    const described = messages.find((m) => m.type === 'T');
    const columns = described === undefined ? [] : columnsOf(described.body);
    const types = columns.map((c) => String(c.oid));
    if (refusal !== undefined) {
      const fields = reportOf(refusal.body);
      const detail = fields.get('D') ?? '';
      return {
        raw,
        types,
        requestId: /request ([0-9a-f-]{36})/.exec(detail)?.[1] ?? null,
        outcome: {
          kind: 'refused',
          code: /^E\d{4}/.exec(detail)?.[0] ?? '',
          sqlstate: fields.get('C') ?? '',
          message: fields.get('M') ?? '',
          hint: fields.get('H') ?? null,
          position: fields.has('P') ? Number(fields.get('P')) : null,
        },
      };
    }
    const rows = messages.filter((m) => m.type === 'D').map((m) => cellsOf(m.body, columns));
    return {
      raw,
      types,
      requestId: null,
      outcome: { kind: 'rows', columns: columns.map((c) => c.name), rows },
    };
  }

  end(): void {
    this.socket.destroy();
  }

  #next(): Message | null {
    const b = this.#pending;
    if (b.length < 5) return null;
    const end = b.readUInt32BE(1) + 1;
    if (b.length < end) return null;
    this.#pending = b.subarray(end);
    return { type: b.subarray(0, 1).toString('latin1'), body: b.subarray(5, end) };
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** The fields of an ErrorResponse or NoticeResponse by their letters. */
export function reportOf(body: Buffer): ReadonlyMap<string, string> {
  const fields = body.toString('utf8').split('\0').slice(0, -1);
  return new Map(fields.filter((f) => f !== '').map((f) => [f.slice(0, 1), f.slice(1)]));
}

interface Described {
  readonly name: string;
  readonly oid: number;
  readonly format: number;
}

function columnsOf(body: Buffer): readonly Described[] {
  const found: Described[] = [];
  let at = 2;
  for (let i = body.readUInt16BE(0); i > 0; i--) {
    const end = body.indexOf(0, at);
    found.push({
      name: body.toString('utf8', at, end),
      oid: body.readUInt32BE(end + 7),
      format: body.readInt16BE(end + 17),
    });
    at = end + 19;
  }
  return found;
}

const JSONB = 3802;

function cellsOf(body: Buffer, columns: readonly Described[]): Cell[] {
  const cells: Cell[] = [];
  let at = 2;
  for (let i = 0; i < body.readInt16BE(0); i++) {
    const length = body.readInt32BE(at);
    at += 4;
    const value = length < 0 ? null : body.subarray(at, at + length);
    at += Math.max(0, length);
    const column = columns[i];
    if (value === null) cells.push(null);
    else if (column?.format === 1) cells.push(`\\x${value.toString('hex')}`);
    else if (column?.oid === JSONB) cells.push(JSON.stringify(JSON.parse(value.toString('utf8'))));
    else cells.push(value.toString('utf8'));
  }
  return cells;
}

// ---- REST -----------------------------------------------------------------------------------------------------

function restAsker(port: number, token: string, body: 'osql' | 'sql'): Asker {
  return {
    ask: (text) => postQuery(port, { [body]: text }, { authorization: `Bearer ${token}` }, text),
    end: () => undefined,
  };
}

/** `POST /osl/query` with this body and these headers. `text` is what error positions refer to. */
export async function postQuery(
  port: number,
  body: unknown,
  headers: Readonly<Record<string, string>>,
  text = '',
): Promise<Reply & { readonly status: number; readonly json: unknown }> {
  const answer = await postRaw(port, body, headers);
  const json: unknown = JSON.parse(answer.body.toString('utf8'));
  return { ...answer, json, ...readRest(json, text) };
}

/** The same where the answer need not be JSON. A text is sent as it is. */
export function postRaw(
  port: number,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): Promise<{ readonly status: number; readonly raw: Buffer; readonly body: Buffer }> {
  const payload = typeof body === 'string' ? body : JSON.stringify(body);
  return httpRequest(port, 'POST', '/osl/query', headers, payload);
}

function httpRequest(
  port: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  payload: string,
): Promise<{ status: number; raw: Buffer; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const req = request(
      { port, host: '127.0.0.1', method, path, headers: { 'content-type': 'application/json', ...headers } },
      (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.on('error', reject);
        res.on('end', () => {
          const body = Buffer.concat(chunks);
          const raw = Buffer.concat([Buffer.from(`${res.rawHeaders.join('\n')}\n\n`), body]);
          resolve({ status: res.statusCode ?? 0, raw, body });
        });
      },
    );
    req.on('error', reject);
    req.end(payload);
  });
}

function readRest(json: unknown, text: string): Omit<Reply, 'raw'> {
  const requestId = stringAt(json, 'request_id');
  const code = stringAt(json, 'code');
  if (code !== null) {
    const offset = numberAt(memberAt(json, 'position'), 'offset');
    return {
      requestId,
      types: [],
      outcome: {
        kind: 'refused',
        code,
        sqlstate: stringAt(json, 'sqlstate') ?? '',
        message: stringAt(json, 'detail') ?? '',
        hint: stringAt(json, 'hint'),
        position: offset === null ? null : [...text.slice(0, offset)].length + 1,
      },
    };
  }
  const columns = listAt(json, 'columns');
  const names = columns.map((c) => stringAt(c, 'name') ?? '');
  const types = columns.map((c) => stringAt(c, 'type') ?? '');
  const rows = listAt(json, 'rows').map((row) =>
    names.map((name, i) => asCell(memberAt(row, name), types[i] ?? 'text')),
  );
  return { requestId, types, outcome: { kind: 'rows', columns: names, rows } };
}

/** A JSON value as Postgres writes it in text. */
function asCell(value: unknown, type: string): Cell {
  if (value === null || value === undefined) return null;
  if (type === 'jsonb') return JSON.stringify(value);
  if (Array.isArray(value)) return `{${value.map((v) => arrayItem(asCell(v, 'text'))).join(',')}}`;
  if (typeof value === 'boolean') return value ? 't' : 'f';
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'string') return JSON.stringify(value);
  if (type === 'timestamp') return value.replace('T', ' ');
  if (type === 'timestamptz') return value.replace('T', ' ').replace(/Z$|\+00:00$/, '+00');
  return value;
}

function arrayItem(cell: Cell): string {
  if (cell === null) return 'NULL';
  return cell === '' || /[{}",\\\s]|^null$/i.test(cell) ? `"${cell.replace(/["\\]/g, '\\$&')}"` : cell;
}

export function memberAt(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[key]; // an object has members
}

export function stringAt(value: unknown, key: string): string | null {
  const member = memberAt(value, key);
  return typeof member === 'string' ? member : null;
}

function numberAt(value: unknown, key: string): number | null {
  const member = memberAt(value, key);
  return typeof member === 'number' ? member : null;
}

export function listAt(value: unknown, key: string): readonly unknown[] {
  const member = memberAt(value, key);
  return Array.isArray(member) ? member : [];
}
