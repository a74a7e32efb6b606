import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Test } from 'tap';
import { mintToken } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { type NativePostgres, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { temporary } from '../../tools/cli/support.js';
import type { Place } from './support.js';

/** A small shop in a native Postgres, for servers that are looked at from outside. */

/** A script that makes accounts of what `rows` selects, then `more`, for the reader. */
export const tables = (rows: string, more = ''): string => `
  create schema shop;
  create table shop.account (id int primary key, name text);
  insert into shop.account ${rows};
  ${more}
  grant usage on schema shop to osl_reader;
  grant select on all tables in schema shop to osl_reader;`;

/** Two accounts. */
export const ACCOUNTS = tables("values (1, 'ann'), (2, 'bob')");
export const TABLES = tables("values (1, 'ann'), (2, 'bob')", 'create table shop.big (id int primary key);');

export const MANIFEST = `version: 1
connectors:
  db:
    kind: postgres
    url_env: STORE_URL
    tables:
      shop.account: { columns: { id: { type: int4 }, name: { type: text } } }
      shop.big: { columns: { id: { type: int4 } } }
entities:
  big: { source: db.shop.big, primary_key: [id], columns: { id: { column: id } } }
  account: { source: db.shop.account, primary_key: [id], columns: { id: { column: id }, name: { column: name } } }
`;

/** The manifest of accounts alone. */
export const ACCOUNTS_MANIFEST = MANIFEST.replace(/^ *(shop\.)?big: .*\n/gm, '');

/** The manifest, which names its tenant. */
export const TENANT_MANIFEST = MANIFEST.replace('version: 1', 'version: 1\ntenant: demo');

export const POLICY = `version: 1
tenant: demo
subjects:
  user:analyst: { ceiling: [analyst] }
  user:admin: { ceiling: [analyst], admin: [TENANT_ADMIN] }
roles:
  analyst:
    grants:
      - { on: account, columns: [id, name] }
      - { on: big, columns: [id] }
masks: {}
limits: { query: 1000, catalog: 1000, authoring: 1000 }
`;

/** Files that a server over a native Postgres can be started from; `env` names it by STORE_URL. */
export function files(manifest = MANIFEST, policy = POLICY): Place {
  const dir = temporary();
  const place = {
    dataDir: join(dir, 'data'),
    manifest: join(dir, 'manifest.yaml'),
    policy: join(dir, 'policy.yaml'),
  };
  writeFileSync(place.manifest, manifest);
  writeFileSync(place.policy, policy);
  return place;
}

/** A native Postgres with these tables until `t` ends; null where there is none, which a skipped test of that name says. */
export async function openStore(
  t: Test,
  name: string,
  script = TABLES,
): Promise<{ readonly postgres: NativePostgres; readonly admin: pg.Client } | null> {
  const postgres = await startNativePostgres();
  if (postgres === null) {
    t.test(name, { skip: NO_NATIVE }, async () => undefined);
    return null;
  }
  t.teardown(() => postgres.stop());
  const admin = new pg.Client(postgres.url);
  await admin.connect();
  t.teardown(() => admin.end());
  await admin.query(script);
  return { postgres, admin };
}

/** A token of an admin. */
export function adminToken({ dataDir }: Place): Promise<string> {
  const claims = { tenant: 'demo', chain: ['user:admin'], aclRoles: ['analyst'], roles: ['TENANT_ADMIN'] };
  return mintToken(claims, { algorithm: 'HS256', secret: tenantKeys(dataDir).signing });
}
