import { nearest, ready } from 'osl-compiler';
import { sql } from '../../src/base/sql.js';
import { surveyPostgres } from '../../src/engine/index.js';
import { connectFault, connectorUrl, urlInFile, withoutPassword } from '../../src/service/connector-url.js';
import { EXIT, usage } from '../exit.js';
import { print, printJson } from '../output.js';
import type { SecurityCatalog } from './catalog/catalog.js';
import { readCatalog } from './catalog/read.js';
import { checkCatalog, isAtLeast } from './check.js';
import type { Scope } from './checked-database.js';
import type { Severity } from './finding.js';
import { jsonReport, type Report, sarifReport, textReport } from './report.js';
import { RULES } from './rules/index.js';

export interface RlsCheckFlags {
  readonly url?: string;
  readonly urlFile?: string;
  readonly schema?: readonly string[];
  readonly role?: readonly string[];
  readonly ignore?: readonly string[];
  readonly format: 'text' | 'json' | 'sarif';
  readonly json?: true;
  readonly failOn: Severity;
}

/** Checks row security of a database, and sets exit status 1 for a finding as grave as `failOn`. @throws Failure */
export async function runRlsCheck(flags: RlsCheckFlags): Promise<void> {
  const ignored = new Set(flags.ignore ?? []);
  for (const code of ignored)
    requireKnown(
      'rule',
      code,
      RULES.map((rule) => rule.code),
    );
  const url = await urlOf(flags);
  await ready();
  const catalog = await catalogAt(url);
  const findings = checkCatalog(catalog, scopeOf(flags, catalog), ignored);
  const ok = !findings.some(({ severity }) => isAtLeast(severity, flags.failOn));
  printReport({ catalog, findings, ok }, flags);
  if (!ok) process.exitCode = EXIT.failed;
}

function printReport(report: Report, { format, json }: RlsCheckFlags): void {
  switch (json ? 'json' : format) {
    case 'json':
      printJson(jsonReport(report));
      break;
    case 'sarif':
      printJson(sarifReport(report));
      break;
    case 'text':
      for (const line of textReport(report)) print(line);
  }
}

const URL_VARIABLE = 'DATABASE_URL';

async function urlOf({ url, urlFile }: RlsCheckFlags): Promise<string> {
  const given =
    url ?? (urlFile === undefined ? await connectorUrl(process.env, URL_VARIABLE) : urlInFile(urlFile));
  if (given === null) throw usage(`which database? Give --url or --url-file, or set ${URL_VARIABLE}`);
  if (!/^postgres(ql)?:\/\//.test(given) || !URL.canParse(given))
    throw usage('the URL of a database looks like postgres://user:password@host:5432/database');
  return given;
}

/** Major version; older servers lack columns of the catalog. */
const OLDEST = 14;

async function catalogAt(url: string): Promise<SecurityCatalog> {
  const survey = await surveyPostgres(url).catch((error: unknown) => {
    throw usage(`${withoutPassword(url)}: ${connectFault(error)}`);
  });
  try {
    const version = survey.report.serverVersion;
    if (Number.parseInt(version, 10) < OLDEST)
      throw usage(`the server is PostgreSQL ${version}; the check needs ${OLDEST} or newer`);
    return await survey.system.transaction(async (tx) => {
      await tx.query(sql`set transaction isolation level repeatable read, read only`);
      return readCatalog(tx);
    });
  } finally {
    survey.close();
  }
}

function scopeOf({ schema, role }: RlsCheckFlags, { schemas, roles }: SecurityCatalog): Scope {
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

/** A name that nothing has would otherwise hide what is to be checked. */
function requireKnown(kind: string, name: string, known: readonly string[]): void {
  if (known.includes(name)) return;
  const near = nearest(name, known);
  throw usage(`there is no ${kind} ${name}${near === null ? '' : `: perhaps you meant ${near}`}`);
}
