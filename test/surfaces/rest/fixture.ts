import { request } from 'node:http';
import { connect } from 'node:net';
import type { AuditRecord } from '../../../audit/index.js';
import type { Service } from '../../../src/service/service.js';
import {
  createHttpServer,
  type HttpServer,
  type HttpServerOptions,
} from '../../../src/surfaces/http/server.js';
import {
  startTestService,
  type TestService,
  type TestServiceOptions,
  type TokenClaims,
} from '../../support/service.js';

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly bytes: Buffer;
  readonly requestId: string;
  /** The body as JSON; throws where it is none. */
  json(): Record<string, unknown>;
}

export interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** Anything but a string or bytes is sent as JSON. */
  readonly body?: unknown;
  /** Of this machine; each has its own limit for callers without a token. */
  readonly from?: string;
}

export interface RestFixture {
  readonly test: TestService;
  readonly server: HttpServer;
  readonly port: number;
  send(path: string, sent?: Sent): Promise<Reply>;
  /** `POST /osl/query` with a token of `subject`. */
  ask(
    subject: string,
    body: unknown,
    claims?: TokenClaims & { headers?: Record<string, string> },
  ): Promise<Reply>;
  /**
   * Decisions and outcomes of one request, without what differs each time. Waits for the outcome of what was allowed: it
   * is recorded once the answer has left, so it may reach the log after the client has read the answer.
   */
  trail(requestId: string): Promise<readonly Partial<AuditRecord>[]>;
  close(): Promise<void>;
}

interface RestFixtureOptions extends TestServiceOptions, HttpServerOptions {
  /** The service that is served, made of the real one. */
  readonly serve?: (service: Service) => Service;
  /** One that is free, where others must know it before; the system's choice, unless told. */
  readonly port?: number;
}

export async function startRest(options: RestFixtureOptions = {}): Promise<RestFixture> {
  const test = await startTestService(options);
  const server = await createHttpServer(options.serve?.(test.service) ?? test.service, options);
  const { port } = await server.listen(options.port ?? 0, '127.0.0.1');
  const send = (path: string, sent: Sent = {}): Promise<Reply> => sendTo(port, path, sent);
  return {
    test,
    server,
    port,
    send,
    async ask(subject, body, claims = {}) {
      const authorization = `Bearer ${await test.token(subject, claims)}`;
      const headers = { 'content-type': 'application/json', authorization, ...claims.headers };
      return send('/osl/query', { method: 'POST', headers, body });
    },
    async trail(requestId) {
      return (await test.records(requestId)).map(
        ({ kind, action, subject, decision, code, outcome, rows }) =>
          kind === 'decision'
            ? { kind, action, subject, decision, code }
            : { kind, action, subject, code, outcome, rows },
      );
    },
    async close() {
      await server.close(1_000);
      await test.close();
    },
  };
}

function sendTo(port: number, path: string, sent: Sent): Promise<Reply> {
  const payload = bytesOf(sent.body);
  return new Promise((resolve, reject) => {
    const local = sent.from === undefined ? {} : { localAddress: sent.from };
    const outgoing = request(
      {
        port,
        host: '127.0.0.1',
        path,
        method: sent.method ?? 'GET',
        headers: { ...sent.headers },
        agent: false,
        ...local,
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const bytes = Buffer.concat(chunks);
          const text = bytes.toString('utf8');
          const { headers, statusCode } = incoming;
          const requestId = String(headers['x-request-id']);
          resolve({ status: statusCode ?? 0, headers, text, bytes, requestId, json: () => JSON.parse(text) });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(payload);
  });
}

function bytesOf(body: unknown): string | Uint8Array | undefined {
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) return body;
  return JSON.stringify(body);
}

/** Sends these bytes and gives all that comes back until the server closes. */
export function sendRaw(port: number, bytes: string, from = '127.0.0.1'): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from }, () => socket.write(bytes));
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('utf8')));
  });
}

let lastAddress = 1;

/** A loopback address that nothing was sent from yet, so that no limit of another test counts. */
export function freshAddress(): string {
  lastAddress += 1;
  return `127.0.${lastAddress >> 8}.${lastAddress & 0xff}`;
}

/** Waits until `holds`, which the test's own time-out bounds. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
}
