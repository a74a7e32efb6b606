import { type Sql, sql } from '../../../src/base/sql.js';
import type { SecurityCatalog, UnreadPart } from './catalog.js';
import * as functions from './functions.js';
import * as relations from './relations.js';
import * as roles from './roles.js';
import { type CatalogRow, numberIn, textIn } from './row.js';

/** A session inside a transaction. */
export interface CatalogSession {
  query(statement: Sql): Promise<readonly CatalogRow[]>;
}

const SERVER = sql`
  select pg_catalog.current_database()::text as database, current_user::text as reader,
         pg_catalog.current_setting('server_version') as version,
         pg_catalog.current_setting('server_version_num') as number`;

/**
 * With an empty search_path Postgres qualifies every name that it prints, except those of pg_catalog. Compiling these
 * queries to machine code would take seconds, and running them takes milliseconds.
 */
const SESSION = sql`
  select pg_catalog.set_config('search_path', '', true), pg_catalog.set_config('jit', 'off', true)`;

/**
 * Reads the security catalog with one query for each kind of object. The session must be in a transaction, which
 * should be REPEATABLE READ and READ ONLY. Any role may read nearly all of it; what this one may not is in `unread`.
 *
 * @throws the session's error if the connection fails or the server is older than Postgres 14
 */
export async function readCatalog(session: CatalogSession): Promise<SecurityCatalog> {
  await session.query(SESSION);
  const [server] = await session.query(SERVER);
  if (server === undefined) throw new Error('the server does not tell its version');
  const unread: UnreadPart[] = [];
  const read = (part: string, statement: Sql): Promise<readonly CatalogRow[]> =>
    readPart(session, part, statement, unread);
  const roleRows = await read('roles', roles.ROLES);
  const memberships = await read('role memberships', roles.MEMBERSHIPS);
  const relationRows = {
    relations: await read('relations', relations.RELATIONS),
    columns: await read('columns', relations.COLUMNS),
    policies: await read('policies', relations.POLICIES),
    indexes: await read('indexes', relations.INDEXES),
    foreignKeys: await read('foreign keys', relations.FOREIGN_KEYS),
  };
  const schemas = await read('schemas', roles.SCHEMAS);
  const functionRows = await read('functions', functions.FUNCTIONS);
  const systemFunctions = await read('functions of pg_catalog', functions.SYSTEM_FUNCTIONS);
  const casts = await read('casts', functions.BINARY_CASTS);
  const publications = await read('publications', relations.PUBLICATIONS);
  const defaults = await read('default privileges', roles.DEFAULT_PRIVILEGES);
  return {
    database: textIn(server, 'database'),
    server: { version: textIn(server, 'version').split(' ')[0] ?? '', number: numberIn(server, 'number') },
    reader: textIn(server, 'reader'),
    roles: roles.decodeRoles(roleRows, memberships),
    schemas: roles.decodeSchemas(schemas),
    relations: relations.decodeRelations(relationRows),
    functions: functions.decodeFunctions(functionRows),
    systemFunctions: functions.decodeSystemFunctions(systemFunctions),
    binaryCasts: functions.decodeBinaryCasts(casts),
    publications: relations.decodePublications(publications),
    defaultPrivileges: roles.decodeDefaultPrivileges(defaults),
    unread,
  };
}

/** Runs a query in a savepoint. If the role may not read a catalog, the rest is still read. */
async function readPart(
  session: CatalogSession,
  part: string,
  statement: Sql,
  unread: UnreadPart[],
): Promise<readonly CatalogRow[]> {
  await session.query(sql`savepoint part`);
  try {
    const rows = await session.query(statement);
    await session.query(sql`release savepoint part`);
    return rows;
  } catch (error) {
    if (!isDenied(error)) throw error;
    await session.query(sql`rollback to savepoint part`);
    unread.push({ part, reason: error.message });
    return [];
  }
}

const INSUFFICIENT_PRIVILEGE = '42501';

function isDenied(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const fields: CatalogRow = { ...error };
  return fields['sqlstate'] === INSUFFICIENT_PRIVILEGE || fields['code'] === INSUFFICIENT_PRIVILEGE;
}
