import type { Relation } from 'osl-compiler';
import type { GrantDocument, PolicyDocument, RoleDocument } from '../../policy/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';

/** A policy with one rule changed: where no test notices, nothing holds the rule. */
export interface Mutant {
  readonly role: string;
  /** The rule, as the file has it: `roles.analyst.grants[0]`. */
  readonly rule: string;
  /** What is changed of it, in words. */
  readonly change: string;
  readonly document: PolicyDocument;
}

/** Each rule of each role changed alone: taken away, and where it narrows, widened. */
export function* mutantsOf(document: PolicyDocument, manifest: Manifest): Generator<Mutant> {
  for (const [role, { grants, deny = [] }] of Object.entries(document.roles)) {
    const changed = (rule: string, change: string, next: Partial<RoleDocument>): Mutant => ({
      role,
      rule: `roles.${role}.${rule}`,
      change,
      document: withRole(document, role, next),
    });
    for (const [i, grant] of grants.entries()) {
      const rule = `grants[${i}]`;
      yield changed(rule, 'the grant taken away', { grants: grants.filter((_, n) => n !== i) });
      for (const [change, wider] of widened(grant, manifest))
        yield changed(rule, change, { grants: grants.map((g, n) => (n === i ? wider : g)) });
    }
    for (const i of deny.keys())
      yield changed(`deny[${i}]`, 'the deny rule taken away', { deny: deny.filter((_, n) => n !== i) });
  }
}

function* widened(grant: GrantDocument, { catalog }: Manifest): Generator<readonly [string, GrantDocument]> {
  const { rows: _rows, ...everyRow } = grant;
  if (grant.rows !== undefined) yield ['`rows` taken away: every row', everyRow];
  const { min_group_size: _size, metrics: _metrics, ...shown } = grant;
  if (grant.min_group_size !== undefined) yield ['`min_group_size` taken away: rows are shown', shown];
  const { starts: _starts, ends: _ends, when: _when, for: _for, break_glass: _glass, ...always } = grant;
  if (Object.keys(always).length < Object.keys(grant).length)
    yield ['its conditions taken away: it counts always', always];
  const relation = catalog.relations.get(grant.on);
  if (relation === undefined) return;
  const unmask = grant.unmask ?? [];
  for (const label of hiddenLabels(relation, grant))
    yield [
      `\`unmask: [${label}]\` added: it is shown in the clear`,
      { ...grant, unmask: [...unmask, label] },
    ];
}

/** Labels of the columns that a grant covers and does not show in the clear. */
function hiddenLabels(relation: Relation, { columns, unmask = [] }: GrantDocument): readonly string[] {
  const covered = (name: string): boolean => columns === '*' || columns.includes(name);
  const labels = relation.columns.filter((c) => covered(c.name)).flatMap((c) => c.sensitivity ?? []);
  return [...new Set(labels)].filter((label) => !unmask.includes(label)).sort();
}

function withRole(document: PolicyDocument, role: string, next: Partial<RoleDocument>): PolicyDocument {
  const before = document.roles[role];
  if (before === undefined) return document;
  return { ...document, roles: { ...document.roles, [role]: { ...before, ...next } } };
}
