import { ready } from 'osl-compiler';
import { EXIT } from '../exit.js';
import { counted, print, printJson, visible } from '../output.js';
import { logicalResult, sarifRun } from '../sarif.js';
import type { SecurityCatalog } from './catalog/catalog.js';
import {
  type CheckScope,
  catalogOf,
  checkedDatabase,
  type DatabaseFlags,
  openDatabase,
  requireKnown,
  scopeOf,
  urlOf,
} from './database.js';
import { type RlsFinding, type RlsRule, type RlsSeverity, SEVERITIES } from './finding.js';
import { RULES, UNREAD_CATALOG } from './rules/index.js';

export interface RlsCheckFlags extends DatabaseFlags {
  readonly ignore?: readonly string[];
  readonly format: 'text' | 'json' | 'sarif';
  readonly json?: true;
  readonly failOn: RlsSeverity;
}

/** Checks row security; sets exit status 1 if a finding is at least as severe as `failOn`. @throws Failure */
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
  const survey = await openDatabase(url);
  const catalog = await catalogOf(survey).finally(() => survey.close());
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

/**
 * Returns the findings of all rules, most severe first, then by code and object; if a part of the catalog could not be
 * read, only the findings about that. Requires `ready()` of osl-compiler.
 *
 * @param ignored codes of rules to leave out
 */
export function checkCatalog(
  catalog: SecurityCatalog,
  scope: CheckScope,
  ignored: ReadonlySet<string> = new Set(),
): readonly RlsFinding[] {
  const database = checkedDatabase(catalog, scope);
  const findings = rulesFor(catalog, ignored).flatMap((rule) => {
    const { check, ...described } = rule;
    return check(database)
      .filter(({ object }) => object.schema === null || (scope.schemas?.has(object.schema) ?? true))
      .map((violation): RlsFinding => ({ ...described, ...violation }));
  });
  return findings.toSorted(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
      compare(a.code, b.code) ||
      compare(a.object.identity, b.object.identity),
  );
}

/** The rules to check; if the catalog could not be read fully, only the rule for that, which cannot be ignored. */
function rulesFor({ unread }: SecurityCatalog, ignored: ReadonlySet<string>): readonly RlsRule[] {
  if (unread.length > 0) return RULES.filter(({ code }) => code === UNREAD_CATALOG);
  return RULES.filter(({ code }) => !ignored.has(code));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** True if a finding of this severity is at least as severe as `least`. */
function isAtLeast(severity: RlsSeverity, least: RlsSeverity): boolean {
  return SEVERITIES.indexOf(severity) <= SEVERITIES.indexOf(least);
}

/** Findings of one database. */
interface Report {
  readonly catalog: SecurityCatalog;
  readonly findings: readonly RlsFinding[];
  /** True if no finding is severe enough to fail the check. */
  readonly ok: boolean;
}

/** Lines for a terminal: findings by rule, then a summary. */
function textReport({ catalog, findings }: Report): readonly string[] {
  const codes = [...new Set(findings.map(({ code }) => code))];
  const tables = [...catalog.relations.values()].filter(({ rowSecurity }) => rowSecurity !== 'off').length;
  return [
    ...codes.flatMap((code) => ruleLines(findings.filter((finding) => finding.code === code))),
    `${visible(catalog.database)}, PostgreSQL ${catalog.server.version}: ${summary(findings)}; ` +
      `row security on ${counted(tables, 'table', 'tables')}`,
  ];
}

function ruleLines(findings: readonly RlsFinding[]): readonly string[] {
  const [first] = findings;
  if (first === undefined) return [];
  return [
    `${first.severity} ${first.code}: ${first.title}`,
    `  ${first.consequence}`,
    `  To mend: ${first.mend}.`,
    ...findings.flatMap(({ object, detail, sql }) => [
      `  - ${object.kind} ${visible(object.identity)}${detail === null ? '' : ` (${visible(detail)})`}`,
      ...sql.map((statement) => `      ${visible(statement)}`),
    ]),
    '',
  ];
}

function summary(findings: readonly RlsFinding[]): string {
  const counts = SEVERITIES.map((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return counted(count, severity, `${severity}s`);
  });
  return counts.join(', ');
}

function jsonReport({ catalog, findings, ok }: Report) {
  return {
    ok,
    database: catalog.database,
    server_version: catalog.server.version,
    role: catalog.reader,
    unread: catalog.unread,
    counts: Object.fromEntries(
      SEVERITIES.map((severity) => [severity, findings.filter((f) => f.severity === severity).length]),
    ),
    findings: findings.map(({ code, severity, title, object, detail, consequence, mend, sql }) => ({
      code,
      severity,
      title,
      object,
      detail,
      consequence,
      mend,
      sql,
    })),
  };
}

/** SARIF 2.1.0 log. Findings have no file; their locations are names of database objects. */
function sarifReport({ catalog, findings }: Report) {
  const rules = RULES.map(({ code, title, consequence, mend, severity }) => ({
    id: code,
    shortDescription: { text: title },
    fullDescription: { text: consequence },
    help: { text: mend },
    defaultConfiguration: { level: severity },
  }));
  const results = findings.map((finding) => {
    const { code, severity, title, object, detail, consequence, sql } = finding;
    const index = RULES.findIndex((rule) => rule.code === code);
    const about = detail === null ? '' : ` (${detail})`;
    const text = `${object.kind} ${object.identity}${about}: ${title}. ${consequence}`;
    const place = { fullyQualifiedName: object.identity, kind: object.kind };
    const properties = { database: catalog.database, sql };
    return logicalResult({ code, index, level: severity, text, place, properties });
  });
  return sarifRun(rules, results);
}
