import { counted, visible } from '../output.js';
import { logicalResult, sarifRun } from '../sarif.js';
import type { SecurityCatalog } from './catalog/catalog.js';
import { type Finding, SEVERITIES } from './finding.js';
import { RULES } from './rules/index.js';

/** Findings of one database. */
export interface Report {
  readonly catalog: SecurityCatalog;
  readonly findings: readonly Finding[];
  /** True if no finding is grave enough to fail. */
  readonly ok: boolean;
}

/** Lines for a terminal: findings by rule, then how many there are. */
export function textReport({ catalog, findings }: Report): readonly string[] {
  const codes = [...new Set(findings.map(({ code }) => code))];
  const tables = [...catalog.relations.values()].filter(({ rowSecurity }) => rowSecurity !== 'off').length;
  return [
    ...codes.flatMap((code) => ruleLines(findings.filter((finding) => finding.code === code))),
    `${visible(catalog.database)}, PostgreSQL ${catalog.server.version}: ${summary(findings)}; ` +
      `row security on ${counted(tables, 'table', 'tables')}`,
  ];
}

function ruleLines(findings: readonly Finding[]): readonly string[] {
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

function summary(findings: readonly Finding[]): string {
  const counts = SEVERITIES.map((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return counted(count, severity, `${severity}s`);
  });
  return counts.join(', ');
}

export function jsonReport({ catalog, findings, ok }: Report) {
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

/** SARIF 2.1.0. Findings are in no file: their places are names of objects in the database. */
export function sarifReport({ catalog, findings }: Report) {
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
