import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type AuditRecord, readRecords } from '../../../audit/index.js';
import { type ListeningServer, openServer } from '../../../cli/serve/server.js';
import { mintToken, tokenIdIn } from '../../../policy/index.js';
import { singleProcessFiles } from '../../../src/service/process-files.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { makeScramVerifier } from '../../../wire/index.js';
import { type Message, reportOf, WireClient } from '../../support/frontends.js';
import type { NativePostgres } from '../../support/native-postgres.js';
import { nameServer, onPostgres } from '../../support/service.js';
import { SHOP_MANIFEST, SHOP_POLICY, SHOP_SCRIPT } from '../../support/shop.js';
import * as wire from '../../wire/support/bytes.js';

/** What a caller got in the place of an answer. */
export interface Failure {
  /** Code of the catalogue; null where the surface says an SQLSTATE alone. */
  readonly code: string | null;
  readonly sqlstate: string | null;
  readonly http: number | null;
  readonly message: string;
  /** By which the log has it; null where the surface says none. */
  readonly requestId: string | null;
}

export const PASSWORD = 'correct horse, battery: staple';

const MANIFEST = `${SHOP_MANIFEST}
features: { subqueries: false }
traverse: { max_per_hop: 2 }
`
  .replace(
    'entities:\n',
    `entities:
  gone: { source: db.shop.gone, primary_key: [id], columns: [id] }
  shut: { source: db.shop.shut, primary_key: [id], columns: [id] }
  other: { source: db.shop.other, primary_key: [id], columns: [id] }
`,
  )
  .replace(
    'shop.samples:\n',
    `shop.gone: { columns: { id: { type: int4 } } }
      shop.shut: { columns: { id: { type: int4 } } }
      shop.other: { columns: { id: { type: int4 } } }
      shop.samples:\n`,
  )
  .replace('id: { type: int4 }\n          label', 'id: { type: int4, sensitivity: serial }\n          label');

const POLICY = SHOP_POLICY.replace(
  'version: 1\ntenant: shop\n',
  'version: 1\ntenant: shop\npurposes: { audit: {} }\n',
)
  .replace(
    'subjects:\n',
    `subjects:
  user:sum: { ceiling: [counting] }
  user:tight: { ceiling: [cheap] }
  user:hot: { ceiling: [emergency] }
  user:wait: { ceiling: [approved] }
  user:dull: { ceiling: [dull] }
  user:deaf: { ceiling: [deaf] }
`,
  )
  .replace(
    'roles:\n',
    `roles:
  counting: { grants: [{ on: customer, columns: "*", min_group_size: 2 }] }
  cheap: { grants: [{ on: order, columns: "*" }], max_cost: 1 }
  emergency: { grants: [{ on: customer, columns: "*", break_glass: { minutes: 5, per_day: 1 } }] }
  approved: { grants: [{ on: customer, columns: "*", approval: { by: analyst, minutes: 5 } }] }
  deaf: { grants: [{ on: product, columns: "*", unmask: [serial] }, { on: labels, columns: "*", unmask: [serial] }] }
  dull: { grants: [{ on: product, columns: "*" }, { on: line, columns: "*" }, { on: order, columns: "*" }] }
`,
  )
  .replace(
    '      - { on: labels, columns: "*" }\n',
    `      - { on: labels, columns: "*", decode: true, unmask: [serial] }
      - { on: gone, columns: "*" }
      - { on: shut, columns: "*" }
      - { on: other, columns: "*" }
`,
  )
  .replace('{ on: product, columns: "*" }\n', '{ on: product, columns: "*", unmask: [serial] }\n')
  .replace('masks:\n', 'masks:\n  serial: redact\n');

const MORE_TABLES = `
CREATE TABLE shop.gone (id int4 PRIMARY KEY);
CREATE TABLE shop.shut (id int4 PRIMARY KEY);
CREATE TABLE shop.other (id int4 PRIMARY KEY);
`;

/** A caller, as its token has it. */
export interface Who {
  readonly subject: string;
  readonly roles?: readonly string[];
  readonly issuedAt?: number;
  /** Root first; the subject alone unless told. */
  readonly chain?: readonly string[];
}

export const ANN: Who = { subject: 'user:ann' };
export const ROOT: Who = { subject: 'user:root', roles: ['TENANT_ADMIN'] };

interface Sent {
  readonly method?: string;
  /** As JSON, or a text as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A served gateway with all its listeners, and its log. What the model rests on is changed once it has been read. */
export class World {
  readonly server: ListeningServer;
  readonly #dir: string;
  readonly #postgres: NativePostgres;
  /** Records that were looked at. */
  #seen = 0;

  private constructor(server: ListeningServer, dir: string, postgres: NativePostgres) {
    this.server = server;
    this.#dir = dir;
    this.#postgres = postgres;
  }

  static async start(postgres: NativePostgres): Promise<World> {
    const reader = new URL(postgres.readerUrl).username;
    await asOwner(
      postgres,
      `${SHOP_SCRIPT}${MORE_TABLES}
      GRANT USAGE ON SCHEMA shop TO "${reader}"; GRANT SELECT ON ALL TABLES IN SCHEMA shop TO "${reader}"`,
    );
    const dir = mkdtempSync(join(tmpdir(), 'osl-records-'));
    const variable = `RECORDS_${randomUUID().slice(0, 8).toUpperCase()}`;
    nameServer(postgres, variable);
    const manifestFile = join(dir, 'manifest.yaml');
    const policyFile = join(dir, 'policy.yaml');
    const scram = await makeScramVerifier(PASSWORD);
    writeFileSync(manifestFile, onPostgres(MANIFEST, variable));
    writeFileSync(
      policyFile,
      `${POLICY}\nservice_accounts:\n  tool: { subject: user:ann, scram: "${scram}" }\n`,
    );
    const env = {
      OSL_HTTP_PORT: '0',
      OSL_PG_PORT: '0',
      OSL_ADMIN_PORT: '0',
      OSL_POLICY_KEEP_SECONDS: '0',
      OSL_ADMIN_PG_PORT: '0',
      OSL_MAX_ROWS: '30',
      OSL_MAX_ROW_MIB: '1',
      OSL_ANSWER_MEMORY_MIB: '8',
    };
    const settings = settingsFrom(env, dir, { manifestFile, policyFile, dataDir: join(dir, 'data') });
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const progress = { step: () => undefined, end: () => undefined };
    const server = await openServer(
      { settings, demo: null, log, progress },
      singleProcessFiles(settings.dataDir),
    );
    await asOwner(
      postgres,
      `DROP TABLE shop.gone; REVOKE ALL ON shop.shut FROM "${reader}"; ALTER TABLE shop.other ALTER COLUMN id TYPE text`,
    );
    return new World(server, dir, postgres);
  }

  token({ subject, roles = [], issuedAt, chain = [subject] }: Who): Promise<string> {
    const { service, keys } = this.server.open;
    const aclRoles = [...(service.model().snapshot?.subjects.get(subject)?.ceiling ?? [])];
    const time = issuedAt === undefined ? {} : { issuedAt };
    return mintToken(
      { tenant: service.tenant, chain, roles, aclRoles, ...time },
      { algorithm: 'HS256', secret: keys.signing },
    );
  }

  /** One that is good for nothing any more. */
  async revokedToken(who: Who): Promise<string> {
    const token = await this.token(who);
    await this.server.open.service.revocations.revoke({ kind: 'token', name: tokenIdIn(token) });
    return token;
  }

  /** Serves another policy from now on, while `work` is done. */
  async underPolicy<T>(change: (policy: string) => string, work: () => Promise<T>): Promise<T> {
    const file = join(this.#dir, 'policy.yaml');
    const before = readFileSync(file, 'utf8');
    const serve = async (policy: string): Promise<void> => {
      writeFileSync(file, policy);
      await this.server.reload().catch(() => undefined); // one that is broken is refused, which ends all answers
    };
    await serve(change(before));
    try {
      return await work();
    } finally {
      await serve(before);
    }
  }

  /** Does `work` while nobody can read the orders; `blocked` resolves once somebody waits to. */
  async whileOrdersAreLocked<T>(work: (blocked: () => Promise<void>) => Promise<T>): Promise<T> {
    const owner = new pg.Client(this.#postgres.url);
    await owner.connect();
    const blocked = async (): Promise<void> => {
      for (;;) {
        const { rowCount } = await owner.query(
          "select from pg_locks where not granted and relation = 'shop.orders'::regclass",
        );
        if ((rowCount ?? 0) > 0) return;
        await sleep(5);
      }
    };
    try {
      await owner.query('begin; lock table shop.orders in access exclusive mode');
      return await work(blocked);
    } finally {
      await owner.query('rollback');
      await owner.end();
    }
  }

  get dataDir(): string {
    return join(this.#dir, 'data');
  }

  /** Version of the manifest that serves, for changes to be made for. */
  get manifest(): string {
    return this.server.open.service.model().manifest.version;
  }

  /** A request to REST or the admin listener; null where it was answered. */
  async http(who: Who | string | null, path: string, sent: Sent = {}): Promise<Failure | null> {
    const { httpPort, adminPort } = this.server;
    const port = path.startsWith('/admin') ? adminPort : httpPort;
    const token = who === null || typeof who === 'string' ? who : await this.token(who);
    const body =
      sent.body === undefined || typeof sent.body === 'string' ? sent.body : JSON.stringify(sent.body);
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: sent.method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...sent.headers,
      },
      ...(body !== undefined && { body }),
    });
    const text = await reply.text();
    return reply.ok && !text.includes('"code":"E')
      ? null
      : failureIn(text, reply.headers.get('x-request-id'));
  }

  /** A tool of `/mcp`. */
  async mcp(
    who: Who | string,
    name: string,
    args: Readonly<Record<string, unknown>>,
  ): Promise<Failure | null> {
    const reply = await fetch(`http://127.0.0.1:${this.server.httpPort}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${typeof who === 'string' ? who : await this.token(who)}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-06-18',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: args },
      }),
    });
    const text = await reply.text();
    if (!reply.ok) return failureIn(text, reply.headers.get('x-request-id'));
    const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
    const { result } = JSON.parse(data) as {
      result?: { isError?: boolean; structuredContent?: { problem?: object; request_id?: string } };
    };
    const { problem, request_id: id = null } = result?.structuredContent ?? {};
    return result?.isError === true ? failureIn(JSON.stringify(problem), id) : null;
  }

  /** A session of the wire. */
  async session(who: Who, token?: string): Promise<WireClient> {
    return WireClient.login(this.server.pgPort, who.subject, token ?? (await this.token(who)));
  }

  /** What a login is told. */
  async login(
    port: number | null,
    user: string,
    password: string,
    database = 'osl',
  ): Promise<Failure | null> {
    const { client, messages } = await WireClient.attempt(port ?? 0, user, password, { database });
    client.end();
    return failureOf(messages);
  }

  /** Sends texts one after another in a session of its own; gives the first failure. */
  async wire(
    who: Who,
    texts: readonly string[],
    how: 'simple' | 'extended' = 'simple',
  ): Promise<Failure | null> {
    const client = await this.session(who);
    try {
      for (const text of texts) {
        const parts =
          how === 'simple'
            ? [wire.query(text)]
            : [wire.parse('', text), wire.bind('', ''), wire.describe('P'), wire.execute(), wire.sync];
        const failure = failureOf(await client.exchange(...parts));
        if (failure !== null) return failure;
      }
      return null;
    } finally {
      client.end();
    }
  }

  /** The whole log. */
  async records(): Promise<readonly AuditRecord[]> {
    const records: AuditRecord[] = [];
    for await (const record of readRecords(join(this.dataDir, 'audit'))) records.push(record);
    return records;
  }

  /** What was recorded since the last call, once `whole` says that it is all there. */
  async recorded(whole: (records: readonly AuditRecord[]) => boolean): Promise<readonly AuditRecord[]> {
    for (let tries = 0; ; tries++) {
      const records: AuditRecord[] = [];
      const dir = join(this.#dir, 'data', 'audit');
      for await (const record of readRecords(dir, { from: this.#seen })) records.push(record);
      if (whole(records) || tries === 100) {
        this.#seen += records.length;
        return records;
      }
      await sleep(5);
    }
  }

  async stop(): Promise<void> {
    await this.server.stop(1_000);
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

async function asOwner({ url }: NativePostgres, sql: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(sql);
  await client.end();
}

function failureIn(problem: string, requestId: string | null): Failure {
  const said = JSON.parse(problem.split('\n').findLast((line) => line.includes('"code"')) ?? '{}') as Record<
    string,
    unknown
  >;
  const { code = null, sqlstate = null, status = null, detail = '', request_id: id = requestId } = said;
  return { code, sqlstate, http: status, message: detail, requestId: id } as Failure; // a problem, by the API's document
}

/** What an ErrorResponse among these messages says; null where there is none. */
export function failureOf(messages: readonly Message[]): Failure | null {
  const report = messages.find((message) => message.type === 'E');
  if (report === undefined) return null;
  const fields = reportOf(report.body);
  const [, code = null, id = null] = /^(E\d{4}), request ([0-9a-f-]{36})/.exec(fields.get('D') ?? '') ?? [];
  const [sqlstate, message] = [fields.get('C') ?? null, fields.get('M') ?? ''];
  return { code, sqlstate, http: null, message, requestId: id };
}
