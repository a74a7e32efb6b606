import { ready } from 'osl-compiler';
import { EXIT } from '../exit.js';
import { print, printJson } from '../output.js';
import { checkCatalog, isAtLeast } from './check.js';
import { catalogOf, type DatabaseFlags, openDatabase, requireKnown, scopeOf, urlOf } from './database.js';
import type { Severity } from './finding.js';
import { jsonReport, type Report, sarifReport, textReport } from './report.js';
import { RULES } from './rules/index.js';

export interface RlsCheckFlags extends DatabaseFlags {
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
