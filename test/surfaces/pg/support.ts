import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import type { Test } from 'tap';
import type { AuditRecord } from '../../../audit/index.js';
import { generatedSql } from '../../../src/base/sql.js';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { createPgFrontend, type PgFrontend, type PgOptions } from '../../../src/surfaces/pg/index.js';
import { type NativePostgres, startNativePostgres } from '../../support/native-postgres.js';
import { connectPg } from '../../support/pg-client.js';
import { startTestService, type TestService, type TestServiceOptions } from '../../support/service.js';

/** The shop behind the gateway, and the same tables as an auditor sees them straight from Postgres. */
export interface Both {
  readonly shop: TestService;
  readonly port: number;
  /** Environment for clients of the gateway. */
  gateway(user: string): Promise<NodeJS.ProcessEnv>;
  /** Environment for clients of Postgres itself, with views named as the entities. */
  readonly direct: NodeJS.ProcessEnv;
  close(): Promise<void>;
}

const VIEWS = `
CREATE SCHEMA entities;
CREATE VIEW entities.customer AS SELECT * FROM shop.customers;
CREATE VIEW entities."order" AS SELECT * FROM shop.orders;
CREATE VIEW entities.product AS SELECT * FROM shop.products;
CREATE VIEW entities.sample AS SELECT * FROM shop.samples;`;

/** Other tables than the shop's, and views of them under the names of the entities. */
export interface Tables extends Pick<TestServiceOptions, 'manifest' | 'policy' | 'script' | 'schema'> {
  readonly views: string;
}

/** Null where there is no native Postgres to compare with. */
export async function startBoth(tables: Tables = { views: VIEWS }): Promise<Both | null> {
  const postgres = await startNativePostgres();
  if (postgres === null) return null;
  const { views, ...options } = tables;
  const shop = await startTestService({ postgres, ...options });
  await shop.engine.system.script(generatedSql(views));
  const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
  await catalogs.warm();
  const frontend = createPgFrontend(shop.service, { catalogs });
  const { port } = await frontend.listen(0, '127.0.0.1');
  return {
    shop,
    port,
    gateway: (user) => environment(shop, port, user),
    direct: directly(postgres),
    async close() {
      await frontend.stop();
      await catalogs.close();
      await shop.close();
      await postgres.stop();
    },
  };
}

/** The wire before a test service. */
export interface Served {
  readonly frontend: PgFrontend;
  readonly port: number;
  /** Environment for clients of the gateway. */
  gateway(user: string): Promise<NodeJS.ProcessEnv>;
  /** A driver's session, with a token of `user` where no password is given. */
  connect(user: string, password?: string): Promise<pg.Client>;
}

/** Serves `shop` on the wire; when `t` is over, both are closed. */
export async function servePg(
  t: Pick<Test, 'teardown'>,
  shop: TestService,
  options: PgOptions = {},
): Promise<Served> {
  const frontend = createPgFrontend(shop.service, options);
  const { port } = await frontend.listen(0, '127.0.0.1');
  t.teardown(async () => {
    await frontend.stop();
    await shop.close();
  });
  return {
    frontend,
    port,
    gateway: (user) => environment(shop, port, user),
    async connect(user, password) {
      const secret = password ?? (await shop.token(user));
      const client = await connectPg({ port, user, password: secret });
      client.on('error', () => undefined);
      return client;
    },
  };
}

async function environment(shop: TestService, port: number, user: string): Promise<NodeJS.ProcessEnv> {
  return {
    ...process.env,
    PGHOST: '127.0.0.1',
    PGPORT: String(port),
    PGUSER: user,
    PGPASSWORD: await shop.token(user),
    PGDATABASE: 'osl',
  };
}

function directly(postgres: NativePostgres): NodeJS.ProcessEnv {
  const url = new URL(postgres.url);
  return {
    ...process.env,
    PGHOST: url.hostname,
    PGPORT: url.port,
    PGUSER: url.username,
    PGPASSWORD: url.password,
    PGDATABASE: url.pathname.slice(1),
    PGOPTIONS: '-c search_path=entities -c default_transaction_read_only=on -c TimeZone=UTC',
  };
}

/** The decisions beyond the first `known` records, once there are `count`: clients are told first. */
export async function decisionsAfter(
  shop: TestService,
  known: number,
  count: number,
): Promise<readonly AuditRecord[]> {
  for (;;) {
    const fresh = (await shop.records()).slice(known).filter((r) => r.kind === 'decision');
    if (fresh.length >= count) return fresh;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** What psql prints for a script: rows, command tags, and of an error its SQLSTATE. */
export function psqlScript(env: NodeJS.ProcessEnv, script: string | Buffer): Promise<string> {
  const args = ['-X', '-A', '-t', '-e', '-v', 'VERBOSITY=sqlstate', '-f', '-'];
  return new Promise((resolve, reject) => {
    const child = execFile(
      'psql',
      args,
      { env, timeout: 600_000, encoding: 'latin1', maxBuffer: 1 << 26 },
      (error, out, err) =>
        error === null ? resolve(out + err) : reject(new Error(`${error.message} ${err}`)),
    );
    child.stdin?.end(script);
  });
}
