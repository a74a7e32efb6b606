import type { SecurityCatalog } from './catalog/catalog.js';
import { type CheckScope, checkedDatabase } from './checked-database.js';
import { type Finding, type Rule, SEVERITIES, type Severity } from './finding.js';
import { RULES, UNREAD_CATALOG } from './rules/index.js';

/**
 * Findings of all rules (of one that says so, if a part of the catalog could not be read), gravest first, then by code and object. Requires `ready()` of osl-compiler.
 *
 * @param ignored codes of rules to leave out
 */
export function checkCatalog(
  catalog: SecurityCatalog,
  scope: CheckScope,
  ignored: ReadonlySet<string> = new Set(),
): readonly Finding[] {
  const database = checkedDatabase(catalog, scope);
  const findings = rulesFor(catalog, ignored).flatMap((rule) => {
    const { check, ...described } = rule;
    return check(database)
      .filter(({ object }) => object.schema === null || (scope.schemas?.has(object.schema) ?? true))
      .map((violation): Finding => ({ ...described, ...violation }));
  });
  return findings.toSorted(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
      compare(a.code, b.code) ||
      compare(a.object.identity, b.object.identity),
  );
}

/** An unread catalog is a finding that cannot be ignored. */
function rulesFor({ unread }: SecurityCatalog, ignored: ReadonlySet<string>): readonly Rule[] {
  if (unread.length > 0) return RULES.filter(({ code }) => code === UNREAD_CATALOG);
  return RULES.filter(({ code }) => !ignored.has(code));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** True if a finding of this severity is at least as grave as `least`. */
export function isAtLeast(severity: Severity, least: Severity): boolean {
  return SEVERITIES.indexOf(severity) <= SEVERITIES.indexOf(least);
}
