import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mintToken } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { temporary } from '../../tools/cli/support.js';
import type { Place } from './support.js';

/** A small shop in a native Postgres, for servers that are looked at from outside. */

export const TABLES = `
  create schema shop;
  create table shop.account (id int primary key, name text);
  insert into shop.account values (1, 'ann'), (2, 'bob');
  create table shop.big (id int primary key);
  grant usage on schema shop to osl_reader;
  grant select on all tables in schema shop to osl_reader;`;

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
export function files(): Place {
  const dir = temporary();
  const manifest = join(dir, 'manifest.yaml');
  const policy = join(dir, 'policy.yaml');
  writeFileSync(manifest, MANIFEST);
  writeFileSync(policy, POLICY);
  return { dataDir: join(dir, 'data'), manifest, policy };
}

/** A token of an admin. */
export function adminToken({ dataDir }: Place): Promise<string> {
  const claims = { tenant: 'demo', chain: ['user:admin'], aclRoles: ['analyst'], roles: ['TENANT_ADMIN'] };
  return mintToken(claims, { algorithm: 'HS256', secret: tenantKeys(dataDir).signing });
}
