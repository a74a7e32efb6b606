import pg from 'pg';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { connectPg } from '../../support/pg-client.js';
import type { TestService } from '../../support/service.js';
import type { Reply } from '../../surfaces/rest/fixture.js';

/** What a surface tells of one question. */
export interface Told {
  readonly surface: 'REST' | 'MCP' | 'wire';
  /** Of HTTP; null on the wire, which has none. */
  readonly status: number | null;
  /** Of the catalogue of errors; '' where the question is answered. */
  readonly code: string;
  /** The values as text, row by row. */
  readonly rows: readonly (readonly string[])[];
}

/** An answer of the service, with what the checks read of it. */
export interface Heard extends Reply {
  readonly code: string;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly body: Readonly<Record<string, unknown>>;
}

type Members = Readonly<Record<string, unknown>>;

export function heardOf(reply: Reply): Heard {
  const isJson = /json/.test(String(reply.headers['content-type'])) && reply.text !== '';
  const parsed: unknown = isJson ? JSON.parse(reply.text) : {};
  const body = parsed as Members; // every JSON answer but the levels is an object
  return { ...reply, body, code: String(body['code'] ?? ''), rows: rowsIn(body) };
}

/** An answer of `/mcp`: of a call, what its result holds; a refusal there has its status and code. */
export function heardFromMcp(reply: Reply): Heard {
  const event = /^data: (.*)$/m.exec(reply.text)?.[1];
  if (event === undefined) return heardOf(reply);
  const { result = {}, error } = JSON.parse(event) as { result?: Members; error?: { code: number } };
  const body = (result['structuredContent'] ?? result) as Members;
  const problem = (body['problem'] ?? {}) as Members;
  return {
    ...reply,
    status: Number(problem['status'] ?? reply.status),
    code: String(problem['code'] ?? error?.code ?? ''),
    body: { ...body, isError: result['isError'] === true },
    rows: rowsIn(body),
  };
}

function rowsIn(body: Members): readonly Members[] {
  const rows = body['rows'];
  return Array.isArray(rows) ? rows : [];
}

export function textsOf(rows: readonly Members[]): readonly (readonly string[])[] {
  return rows.map((row) => Object.values(row).map((value) => String(value)));
}

/** The wire before the service of the checks, with a session for each subject. */
export interface WireClients {
  ask(subject: string, text: string): Promise<Told>;
  close(): Promise<void>;
}

export async function openWire(test: TestService): Promise<WireClients> {
  const frontend = createPgFrontend(test.service);
  const { port } = await frontend.listen(0, '127.0.0.1');
  const clients = new Map<string, Promise<pg.Client>>();
  const connect = async (user: string): Promise<pg.Client> => {
    const types = { getTypeParser: () => (value: string) => value };
    const password = await test.token(user);
    const client = await connectPg({ port, user, password, types });
    return client;
  };
  return {
    async ask(subject, text) {
      const client = clients.get(subject) ?? connect(subject);
      clients.set(subject, client);
      try {
        const { rows } = await (await client).query<string[]>({ text, rowMode: 'array' });
        return { surface: 'wire', status: null, code: '', rows };
      } catch (error) {
        if (!(error instanceof pg.DatabaseError)) throw error;
        return {
          surface: 'wire',
          status: null,
          code: /^E\d{4}/.exec(error.detail ?? '')?.[0] ?? String(error.code),
          rows: [],
        };
      }
    },
    async close() {
      for (const client of clients.values()) await (await client).end();
      await frontend.stop();
    },
  };
}
