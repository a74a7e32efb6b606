import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import pg from 'pg';
import type { Test } from 'tap';
import { WITNESS_SCHEMA } from '../../../audit/witness/places.js';
import { mintToken } from '../../../policy/index.js';
import { activatePolicy, controlVersions, pushPolicy } from '../../../src/base/control/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { type ControlHouse, controlHouse, migrated, opened } from '../../control/support.js';
import { actorClaims, KeyServer, type Signer, signer } from '../../identity/signers.js';
import { type AuditTable, startAuditTable } from '../../support/audit-table.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { osl, Server, temporary } from '../../tools/cli/support.js';
import { MANIFEST, POLICY, TABLES } from './store.js';
import { asked, type Reply } from './support.js';

/** A gateway whose every database and issuer stands behind a proxy of its own that can refuse, fall silent or break. */

/** What the gateway connects to. */
export type Part = 'data' | 'system' | 'control' | 'audit' | 'limits' | 'issuer' | 'witness' | 'collector';

export interface Surroundings {
  readonly house: ControlHouse;
  readonly table: AuditTable;
  readonly proxies: Readonly<Record<Part, FaultProxy>>;
  readonly manifest: string;
  /** Of every gateway here. */
  readonly settings: Readonly<Record<string, string>>;
  /** Pushes a policy and has it serve. */
  activate(text: string): Promise<void>;
  /** `osl serve` with a data directory of its own; resolves when it listens. */
  serve(t: Pick<Test, 'teardown'>, env?: Readonly<Record<string, string>>): Promise<Surrounded>;
}

export const ACCOUNTS = 'select id, name from osl.entities.account';

/** A gateway in it. */
export class Surrounded {
  readonly server: Server;
  /** Ids of requests that the audit log must have. */
  readonly recorded: string[] = [];
  readonly #keysDir: string;
  readonly #signer: Signer;

  constructor(server: Server, keysDir: string, issuerKey: Signer) {
    this.server = server;
    this.#keysDir = keysDir;
    this.#signer = issuerKey;
  }

  /** A client of the Postgres port that has not connected yet. */
  async wireClient(): Promise<pg.Client> {
    return new pg.Client({
      host: '127.0.0.1',
      port: Number(this.server.record()['pgPort']),
      user: 'user:analyst',
      database: 'osl',
      password: await this.token(),
    });
  }

  /** A token of the gateway's own key. */
  token(subject = 'user:analyst'): Promise<string> {
    const claims = { tenant: 'demo', chain: [subject], aclRoles: ['analyst'] };
    const { signing } = tenantKeys(this.server.dataDir, this.#keysDir);
    return mintToken(claims, { algorithm: 'HS256', secret: signing });
  }

  /** A token of the issuer whose keys are fetched. */
  issued(): string {
    return this.#signer.seal({ typ: 'service-actor+jwt' }, actorClaims(ISSUER, 'osl'));
  }

  /** `200`, or the status and code of the refusal: `503 E2001`. Its request id is noted, unless it could not be recorded. */
  async asks(osql = ACCOUNTS, token?: string): Promise<string> {
    const authorization = `Bearer ${token ?? (await this.token())}`;
    const { status, body } = await asked(
      this.server,
      '/osl/query',
      { osql },
      { authorization, connection: 'close' },
    );
    const { code, request_id }: { readonly code?: unknown; readonly request_id?: unknown } = JSON.parse(body);
    if (code !== 'E5030') this.recorded.push(String(request_id));
    return code === undefined ? String(status) : `${status} ${String(code)}`;
  }

  /** The same of publishing a metric of that name. */
  publishes(name: string): Promise<string> {
    return this.changes({ fragment: `metrics:\n  ${name}: { entity: account, expression: count(id) }\n` });
  }

  /** The same of a change of what is published. */
  async changes(change: object): Promise<string> {
    const claims = { tenant: 'demo', chain: ['user:admin'], aclRoles: ['analyst'], roles: ['TENANT_ADMIN'] };
    const { signing } = tenantKeys(this.server.dataDir, this.#keysDir);
    const ask = async (body: unknown): Promise<Reply> => {
      const token = await mintToken(claims, { algorithm: 'HS256', secret: signing }); // good for one use
      return asked(this.server, '/osl/objects', body, {
        authorization: `Bearer ${token}`,
        connection: 'close',
      });
    };
    const { version }: { readonly version?: unknown } = JSON.parse((await ask(null)).body);
    const { status, body } = await ask({ ...change, base_version: version });
    const { code }: { readonly code?: unknown } = JSON.parse(body);
    return code === undefined ? String(status) : `${status} ${String(code)}`;
  }

  get(path: string): Promise<Reply> {
    return asked(this.server, path, null, { connection: 'close' });
  }

  /** The names of the checks of `/ready` that fail. */
  async lacks(): Promise<readonly string[]> {
    const { checks }: { readonly checks: Readonly<Record<string, boolean>> } = JSON.parse(
      (await this.get('/ready')).body,
    );
    return Object.entries(checks).flatMap(([name, holds]) => (holds ? [] : [name]));
  }

  get alive(): boolean {
    return this.server.alive;
  }
}

/** The same of an entity whose answers may be given again, so that the system role is asked first. */
export const STOCK = 'select id, at from osl.entities.stock';

const CACHED = `  stock:
    source: db.shop.stock
    primary_key: [id]
    columns: { id: { column: id }, at: { column: at } }
    cache: { max_age: 60, watermark: at, notify: true }
`;

function surroundedManifest(): string {
  const tables = MANIFEST.replace(
    'entities:',
    '      shop.stock: { columns: { id: { type: int4 }, at: { type: int4 } } }\nentities:',
  );
  return `${tables.replace('version: 1', 'version: 1\ntenant: demo')}${CACHED}`;
}

export const SURROUNDED_POLICY = POLICY.replace(
  '- { on: big, columns: [id] }',
  '- { on: big, columns: [id] }\n      - { on: stock, columns: [id, at] }',
);

const ISSUER = 'https://tokens.example';

/** Takes whatever is sent. */
async function collector(t: Pick<Test, 'teardown'>): Promise<number> {
  const server = createServer((request, reply) => request.resume().on('end', () => reply.end('{}')));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Null where there is no native Postgres. */
export async function surroundings(t: Pick<Test, 'teardown'>): Promise<Surroundings> {
  const house = await controlHouse(t);
  await migrated(house);
  await house.admin(`${TABLES}${WITNESS_SCHEMA}
    create table shop.stock (id int primary key, at int); insert into shop.stock values (1, 1);
    grant select on shop.stock to osl_reader;`);
  const table = await startAuditTable();
  if (table === null) throw new Error('there is a native Postgres');
  t.teardown(() => table.stop());
  const key = signer('curve', 'ES256');
  const keys = new KeyServer();
  keys.keys = [key];
  await keys.start();
  t.teardown(() => keys.stop());
  const port = Number(new URL(house.postgres.url).port);
  const proxies = {
    data: await startFaultProxy(port),
    control: await startFaultProxy(port),
    audit: await startFaultProxy(Number(new URL(table.postgres.url).port)),
    limits: await startFaultProxy(port),
    system: await startFaultProxy(port),
    witness: await startFaultProxy(port),
    collector: await startFaultProxy(await collector(t)),
    issuer: await startFaultProxy(Number(new URL(keys.url).port)),
  };
  t.teardown(() => Promise.all(Object.values(proxies).map((proxy) => proxy.close())));
  const dir = temporary();
  const manifest = join(dir, 'manifest.yaml');
  writeFileSync(manifest, surroundedManifest());
  const issuers = join(dir, 'issuers.yaml');
  const issuer = {
    issuer: ISSUER,
    tokens: 'actor',
    jwks_url: proxies.issuer.by(keys.url),
    audiences: ['osl'],
    cool_down_seconds: 1,
    refresh_seconds: 5,
  };
  writeFileSync(issuers, JSON.stringify({ issuers: [issuer] }));
  const keysDir = join(dir, 'keys');
  const made = await osl(['keys', 'make', keysDir]);
  if (made.code !== 0) throw new Error(made.stderr);
  const author = opened(t, house.author);
  const activate = async (text: string): Promise<void> => {
    const by = { author: 'the test', comment: null };
    const { number } = await pushPolicy(author, 'demo', text, by);
    await activatePolicy(
      author,
      'demo',
      { version: number, action: 'activate', ...by },
      await controlVersions(author, 'demo'),
    );
  };
  await activate(SURROUNDED_POLICY);
  const settings = {
    STORE_URL: proxies.data.by(house.postgres.readerUrl),
    OSL_POLICY_SOURCE: 'control',
    OSL_CONTROL_URL: proxies.control.by(house.gateway),
    // On a busy machine its poll and a new connection after a fault together take more than two seconds.
    OSL_CONTROL_SILENCE_SECONDS: '4',
    OSL_LIMITS_URL: proxies.limits.by(house.gateway),
    OSL_AUDIT_SINK: 'postgres',
    OSL_AUDIT_URL: proxies.audit.by(table.gatewayUrl),
    OSL_ISSUERS: issuers,
    OSL_LOCAL_TOKENS: 'on',
    OSL_KEYS_DIR: keysDir,
    STORE_URL_SYSTEM: proxies.system.by(house.postgres.url),
    OSL_AUDIT_WITNESS: proxies.witness.by(house.postgres.url),
    OSL_AUDIT_WITNESS_SECONDS: '1',
    OTEL_EXPORTER_OTLP_ENDPOINT: proxies.collector.by('http://127.0.0.1/'),
    OTEL_METRIC_EXPORT_INTERVAL: '300',
    OTEL_BSP_SCHEDULE_DELAY: '100',
  };
  const serve = async (
    within: Pick<Test, 'teardown'>,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Surrounded> => {
    const dataDir = join(temporary(), 'data');
    mkdirSync(dataDir);
    const server = new Server(['serve', '--json', '--manifest', manifest], dataDir, { ...settings, ...env });
    within.teardown(() => server.signal('SIGKILL'));
    await server.said('"event":"listening"');
    return new Surrounded(server, env['OSL_KEYS_DIR'] ?? keysDir, key);
  };
  return { house, table, proxies, manifest, settings, activate, serve };
}
