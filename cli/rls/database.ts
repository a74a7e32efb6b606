import { nearest } from 'osl-compiler';
import { sql } from '../../src/base/sql.js';
import { type Survey, surveyPostgres } from '../../src/engine/index.js';
import { connectFault, connectorUrl, urlInFile, withoutPassword } from '../../src/service/connector-url.js';
import { usage } from '../exit.js';
import type { SecurityCatalog } from './catalog/catalog.js';
import { readCatalog } from './catalog/read.js';
import type { CheckScope } from './checked-database.js';

/** Address of a database, and the part of it that is read. */
export interface DatabaseFlags {
  readonly url?: string;
  readonly urlFile?: string;
  readonly schema?: readonly string[];
  readonly role?: readonly string[];
}

const URL_VARIABLE = 'DATABASE_URL';

/** @throws Failure without a URL of a Postgres database */
export async function urlOf({ url, urlFile }: DatabaseFlags): Promise<string> {
  const given =
    url ?? (urlFile === undefined ? await connectorUrl(process.env, URL_VARIABLE) : urlInFile(urlFile));
  if (given === null) throw usage(`which database? Give --url or --url-file, or set ${URL_VARIABLE}`);
  if (!/^postgres(ql)?:\/\//.test(given) || !URL.canParse(given))
    throw usage('the URL of a database looks like postgres://user:password@host:5432/database');
  return given;
}

/** Major version; older servers lack columns of the catalog. */
const OLDEST = 14;

/** @throws Failure if the database cannot be reached, or is too old */
export async function openDatabase(url: string): Promise<Survey> {
  const survey = await surveyPostgres(url).catch((error: unknown) => {
    throw usage(`${withoutPassword(url)}: ${connectFault(error)}`);
  });
  const version = survey.report.serverVersion;
  if (Number.parseInt(version, 10) >= OLDEST) return survey;
  survey.close();
  throw usage(`the server is PostgreSQL ${version}; row security is read from ${OLDEST} or newer`);
}

export function catalogOf({ system }: Survey): Promise<SecurityCatalog> {
  return system.transaction(async (tx) => {
    await tx.query(sql`set transaction isolation level repeatable read, read only`);
    return readCatalog(tx);
  });
}

/** @throws Failure for names that the database does not have */
export function scopeOf({ schema, role }: DatabaseFlags, { schemas, roles }: SecurityCatalog): CheckScope {
  for (const name of schema ?? []) requireKnown('schema', name, [...schemas.keys()]);
  for (const name of role ?? [])
    requireKnown(
      'role',
      name,
      [...roles.values()].map((r) => r.name),
    );
  return {
    schemas: schema === undefined ? null : new Set(schema),
    roles: role === undefined ? null : new Set(role),
  };
}

/** A name that nothing has would otherwise hide what is to be checked. @throws Failure */
export function requireKnown(kind: string, name: string, known: readonly string[]): void {
  if (known.includes(name)) return;
  const near = nearest(name, known);
  throw usage(`there is no ${kind} ${name}${near === null ? '' : `: perhaps you meant ${near}`}`);
}
