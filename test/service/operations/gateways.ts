import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import type { Test } from 'tap';
import { mintToken } from '../../../policy/index.js';
import { activatePolicy, controlVersions, pushPolicy } from '../../../src/base/control/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { type ControlHouse, controlHouse, migrated, opened } from '../../control/support.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import type { NativePostgres } from '../../support/native-postgres.js';
import { connectPg } from '../../support/pg-client.js';
import { type Finished, osl, Server, temporary } from '../../tools/cli/support.js';
import { TENANT_MANIFEST, tables } from './store.js';

/** Several gateways of one machine over one Postgres, which has both the data and `osl_control`. */

const ROWS = tables(
  "select n, 'name ' || n from generate_series(1, 50) n",
  'create table shop.big (id int primary key); insert into shop.big select generate_series(1, 2000);',
);

/** A policy in which the analyst sees `columns` of accounts, and bystanders see all of it in any case. */
export function policyText(columns: string, limit = 100_000): string {
  return `version: 1
tenant: demo
subjects:
  user:analyst: { ceiling: [analyst] }
  user:bystander: { ceiling: [bystander] }
  user:admin: { ceiling: [bystander], admin: [TENANT_ADMIN] }
roles:
  analyst:
    grants:
      - { on: account, columns: [${columns}] }
      - { on: big, columns: [id] }
  bystander:
    grants:
      - { on: account, columns: [id, name] }
      - { on: big, columns: [id] }
masks: {}
limits: { query: ${limit}, catalog: 100000, authoring: 1000 }
`;
}

const SHIFTED_CLOCK = new URL('../../support/shifted-clock.js', import.meta.url).href;
const clockFileOf = (dataDir: string): string => join(dataDir, 'test-clock');

export class Gateway {
  readonly number: number;
  readonly dataDir: string;
  server: Server;
  /** Milliseconds by which its clock is ahead, if it is the second one. */
  readonly clockFile: string;
  /** To the control database. */
  readonly line: FaultProxy;
  readonly #start: () => Server;
  readonly #keysDir: string;

  constructor(number: number, dataDir: string, keysDir: string, line: FaultProxy, start: () => Server) {
    this.number = number;
    this.dataDir = dataDir;
    this.clockFile = clockFileOf(dataDir);
    this.line = line;
    this.#keysDir = keysDir;
    this.#start = start;
    this.server = start();
  }

  /** Where it listens; resolves once it does. */
  async listening(): Promise<void> {
    await this.server.said('"event":"listening"');
  }

  async restart(): Promise<void> {
    this.server = this.#start();
    await this.listening();
  }

  token(subject = 'user:analyst'): Promise<string> {
    const claims = { tenant: 'demo', chain: [subject], aclRoles: [subject.replace('user:', '')] };
    return mintToken(claims, { algorithm: 'HS256', secret: tenantKeys(this.dataDir, this.#keysDir).signing });
  }

  async connect(subject = 'user:analyst', more: pg.ClientConfig = {}): Promise<pg.Client> {
    const client = await connectPg({
      port: this.server.record()['pgPort'],
      user: subject,
      password: await this.token(subject),
      ...more,
    });
    client.on('error', () => undefined); // it may be killed
    return client;
  }

  /** The status and the body of a request over REST. */
  async rest(
    path: string,
    body: unknown,
    subject = 'user:analyst',
    admin = false,
    given: string | null = null,
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    const token = given ?? (admin ? await this.adminToken() : await this.token(subject));
    const reply = await fetch(`http://127.0.0.1:${String(this.server.record()['httpPort'])}${path}`, {
      method: body === null ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== null && { body: JSON.stringify(body) }),
    });
    return { status: reply.status, body: (await reply.json()) as Record<string, unknown> }; // looked at member by member
  }

  adminToken(): Promise<string> {
    const claims = {
      tenant: 'demo',
      chain: ['user:admin'],
      aclRoles: ['bystander'],
      roles: ['TENANT_ADMIN'],
    };
    return mintToken(claims, { algorithm: 'HS256', secret: tenantKeys(this.dataDir, this.#keysDir).signing });
  }

  /** As `rest`, of the admin listener. */
  async admin(path: string, body: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
    const reply = await fetch(`http://127.0.0.1:${String(this.server.record()['adminPort'])}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await this.adminToken()}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: reply.status, body: (await reply.json()) as Record<string, unknown> }; // looked at member by member
  }

  async ready(): Promise<boolean> {
    const reply = await fetch(`http://127.0.0.1:${String(this.server.record()['httpPort'])}/ready`);
    await reply.text();
    return reply.status === 200;
  }
}

export interface Fleet {
  readonly house: ControlHouse;
  readonly dir: string;
  /** Of every gateway, but that each reaches the control database by a line of its own. */
  readonly settings: Readonly<Record<string, string>>;
  readonly gateways: readonly [Gateway, Gateway, Gateway];
  /** `osl policy …` as an author. */
  policy(...args: readonly string[]): Promise<Finished>;
  /** Pushes and activates; gives when the database began to write that, ms since 1970. */
  activate(text: string): Promise<number>;
}

/** Three gateways, the second of two workers and with a clock that a test sets, that take the policy from the control database. */
export async function fleet(
  t: Pick<Test, 'teardown'>,
  env: Readonly<Record<string, string>> = {},
  first = policyText('id, name'),
  server: NativePostgres | null = null,
): Promise<Fleet> {
  const house = await controlHouse(t, server);
  await migrated(house);
  await house.admin(ROWS);
  const dir = temporary();
  const manifest = join(dir, 'manifest.yaml');
  writeFileSync(manifest, TENANT_MANIFEST);
  const policy = (...args: readonly string[]): Promise<Finished> =>
    osl(['policy', ...args], { cwd: dir, env: { OSL_CONTROL_URL: house.author } });
  const author = opened(t, house.author);
  const activate = async (text: string): Promise<number> => {
    const by = { author: 'the test', comment: null };
    const { number } = await pushPolicy(author, 'demo', text, by);
    const seen = await controlVersions(author, 'demo');
    await activatePolicy(author, 'demo', { version: number, action: 'activate', ...by }, seen);
    const [row] = await house.admin(
      'select extract(epoch from max(at)) * 1000 as at from osl_control.policy_activation',
    );
    return Number(row?.['at']);
  };
  await activate(first);
  // All have the same keys, so that a token of one is good at another.
  const keys = join(dir, 'keys');
  const made = await osl(['keys', 'make', keys]);
  if (made.code !== 0) throw new Error(made.stderr);
  const lines = await Promise.all([1, 2, 3].map(() => startFaultProxy(Number(new URL(house.gateway).port))));
  const common = {
    STORE_URL: house.postgres.readerUrl,
    OSL_CONTROL_URL: house.gateway,
    OSL_POLICY_SOURCE: 'control',
    OSL_KEYS_DIR: keys,
    OSL_HTTP_PORT: '0',
    OSL_PG_PORT: '0',
    OSL_POOL_SIZE: '6',
    ...env,
  };
  const all = lines.map((line, i) => {
    const number = i + 1;
    const dataDir = join(dir, `gateway-${number}`);
    mkdirSync(dataDir);
    const settings = {
      ...common,
      OSL_CONTROL_URL: line.by(house.gateway),
      ...(number === 2 && {
        OSL_WORKERS: '2',
        OSL_TEST_CLOCK: clockFileOf(dataDir),
        NODE_OPTIONS: `--import=${SHIFTED_CLOCK}`,
      }),
    };
    if (number === 2) writeFileSync(clockFileOf(dataDir), '0');
    const gateway = new Gateway(
      number,
      dataDir,
      keys,
      line,
      () => new Server(['serve', '--json', '--manifest', manifest], dataDir, settings),
    );
    t.teardown(() => gateway.server.signal('SIGKILL'));
    return gateway;
  });
  const [one, two, three] = all;
  if (one === undefined || two === undefined || three === undefined) throw new Error('three gateways');
  await Promise.all(all.map((gateway) => gateway.listening()));
  return { house, dir, settings: common, gateways: [one, two, three], policy, activate };
}
