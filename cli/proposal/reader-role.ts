import { randomBytes } from 'node:crypto';
import { sql, sqlJoin, sqlName, sqlTable, sqlText } from '../../src/base/sql.js';
import type { SystemEngine } from '../../src/engine/index.js';
import type { AdoptionCandidate } from '../../src/model/discovery/index.js';
import { makeScramVerifier } from '../../wire/index.js';

/** A role that may log in and read some tables, and nothing else. */
export interface ReaderRole {
  /** Of the same server and database. Holds the password, which is stored nowhere. */
  readonly url: string;
  /** Takes it away again. */
  drop(): Promise<void>;
}

/**
 * Makes the role `name` with a password of its own, and lets it read `tables`: all of it, or none. The password never
 * reaches the server, which gets its verifier.
 *
 * @throws UpstreamFailure, where the role exists already for example
 */
export async function makeReader(
  system: SystemEngine,
  name: string,
  tables: readonly AdoptionCandidate[],
  url: string,
): Promise<ReaderRole> {
  const password = randomBytes(24).toString('base64url');
  const role = sqlName(name);
  const schemas = [...new Set(tables.map((t) => t.schema))].map(sqlName);
  const relations = tables.map(sqlTable);
  const verifier = await makeScramVerifier(password);
  await system.transaction((tx) =>
    tx.script(
      sqlJoin(
        [
          sql`CREATE ROLE ${role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD ${sqlText(verifier)}`,
          ...(schemas.length === 0 ? [] : [sql`GRANT USAGE ON SCHEMA ${sqlJoin(schemas)} TO ${role}`]),
          ...(relations.length === 0 ? [] : [sql`GRANT SELECT ON ${sqlJoin(relations)} TO ${role}`]),
        ],
        sql`; `,
      ),
    ),
  );
  const own = new URL(url);
  own.username = encodeURIComponent(name);
  own.password = password;
  return {
    url: own.href,
    drop: () => system.script(sql`DROP OWNED BY ${role}; DROP ROLE ${role}`),
  };
}
