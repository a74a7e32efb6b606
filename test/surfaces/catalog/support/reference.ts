import pg from 'pg';
import { effectiveAccess, type Identity } from '../../../../policy/index.js';
import type { Service } from '../../../../src/service/service.js';
import { parseContents } from '../../../../src/surfaces/catalog/engine-contract.js';
import { modelOf } from '../../../../src/surfaces/catalog/index.js';
import { referenceDdl } from './reference-ddl.js';

/**
 * A client of a native server, in whose database exactly the clerk's tables are, empty. The roles may be there from
 * another test on the same server.
 */
export async function referenceClient(url: string, service: Service): Promise<pg.Client> {
  const { manifest, snapshot } = service.model();
  if (snapshot === null) throw new Error('no policy');
  const access = effectiveAccess(clerkIdentity(), snapshot, manifest.catalog);
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query(`DROP SCHEMA public; CREATE SCHEMA entities; GRANT USAGE ON SCHEMA entities TO PUBLIC`);
  await admin.query(role('osl_model', ''));
  await admin.query(role('user:clerk', `LOGIN PASSWORD 'clerk' IN ROLE osl_model`));
  const { parts } = await modelOf(manifest, access);
  for (const script of referenceDdl(parseContents(parts), 14)) await admin.query(script);
  await admin.end();
  const { hostname, port, pathname } = new URL(url);
  const client = new pg.Client({
    host: hostname,
    port: Number(port),
    database: pathname.slice(1),
    user: 'user:clerk',
    password: 'clerk',
    options: '-c search_path=entities -c timezone=UTC',
  });
  await client.connect();
  return client;
}

function role(name: string, options: string): string {
  return `DO $do$ BEGIN CREATE ROLE "${name}" ${options}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $do$`;
}

function clerkIdentity(): Identity {
  const far = Date.now() / 1_000 + 3_600;
  return {
    tenant: 'test',
    subject: 'user:clerk',
    chain: ['user:clerk'],
    aclRoles: ['clerk'],
    roles: [],
    expiresAt: far,
  } as unknown as Identity; // an identity as the verifier makes it, as far as access looks at it
}
