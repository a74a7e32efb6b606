import {
  compileSnapshot,
  conditionsIn,
  type ExchangeRuleDocument,
  type GrantDocument,
  type PolicyDocument,
  PolicyProblems,
  type PolicySnapshot,
} from '../../../policy/index.js';
import { entityName, facetName } from '../graph/index.js';
import { type Manifest, ManifestProblems, parsePolicyDocument } from '../manifest/index.js';
import type { Model } from '../served-model.js';
import { type AccessChange, accessBetween, type RoleChange } from './changes.js';
import { type DraftFinding, findingsIn } from './check.js';

export interface PolicyJudgement {
  readonly ok: boolean;
  readonly diagnostics: readonly DraftFinding[];
  readonly diff: PolicyDifference | null;
}

interface PolicyDifference {
  readonly version: string;
  readonly access: readonly RoleChange[];
  readonly subjects: readonly SubjectChange[];
  /** Sections that changed, except `subjects` and `roles`, and limits of roles, such as `roles.analyst.max_cost`. */
  readonly sections: readonly string[];
}

interface SubjectChange {
  readonly subject: string;
  /** Rights such as `role analyst`, `admin role TENANT_ADMIN`, `purpose billing`, `login bi` or `certificate laptop`. */
  readonly gains: readonly string[];
  readonly loses: readonly string[];
  /** Other changes, such as `attribute region: "eu" -> "us"` or `exchange: changed`. */
  readonly differs: readonly string[];
}

/** Compares the text of a policy with the policy being served. Pure. */
export function judgePolicy(text: string, file: string, model: Model): PolicyJudgement {
  const { manifest, snapshot: before } = model;
  try {
    const after = compiledPolicy(text, file, manifest);
    const old = before ?? compileSnapshot(withoutSubjects(after.document), manifest.catalog);
    return { ok: true, diagnostics: [], diff: differenceBetween(old, after, model) };
  } catch (error) {
    const diagnostics = findingsIn(error, true).map((f): DraftFinding => ({ ...f, document: 'policy' }));
    return { ok: false, diagnostics, diff: null };
  }
}

/** Returns the policy without subjects, roles, and the sections that refer to subjects. */
function withoutSubjects(document: PolicyDocument): PolicyDocument {
  const { service_accounts: _, certificates: __, exchange: ___, ...rest } = document;
  return { ...rest, subjects: {}, roles: {} };
}

/** Compiles the text of a policy. @throws ManifestProblems, located in `file` */
export function compiledPolicy(text: string, file: string, { catalog, tenant }: Manifest): PolicySnapshot {
  const policy = parsePolicyDocument(text, file);
  try {
    return compileSnapshot(policy.document, catalog, tenant);
  } catch (error) {
    if (!(error instanceof PolicyProblems)) throw error;
    throw new ManifestProblems(policy.diagnostics(error.problems), policy.text);
  }
}

function differenceBetween(
  before: PolicySnapshot,
  after: PolicySnapshot,
  { manifest }: Model,
): PolicyDifference {
  const access = accessBetween({ manifest, snapshot: before }, { manifest, snapshot: after });
  return {
    version: after.version,
    access: withTerms(access, before, after, manifest.facets),
    subjects: [...subjectsBetween(before, after), ...rulesBetween(before, after)],
    sections: sectionsBetween(before.document, after.document),
  };
}

const SECTIONS = [
  ...(['attributes', 'masks', 'limits', 'order', 'privacy_units', 'purposes', 'claims'] as const),
  ...(['service_accounts', 'certificates', 'exchange'] as const),
];

function sectionsBetween(before: PolicyDocument, after: PolicyDocument): readonly string[] {
  const roles = new Set([...Object.keys(before.roles), ...Object.keys(after.roles)]);
  return [
    ...SECTIONS.filter((name) => !same(before[name], after[name])),
    ...[...roles].flatMap((role) =>
      (['max_cost', 'limits'] as const)
        .filter((limit) => !same(before.roles[role]?.[limit], after.roles[role]?.[limit]))
        .map((limit) => `roles.${role}.${limit}`),
    ),
  ];
}

/** Adds changes to the terms of grants: row filters, group sizes, metrics, conditions, use of language models. */
function withTerms(
  access: readonly RoleChange[],
  before: PolicySnapshot,
  after: PolicySnapshot,
  facets: ReadonlyMap<string, unknown>,
): readonly RoleChange[] {
  const known = new Map(access.map((change) => [change.role, change]));
  const roles = new Set([...before.roles.keys(), ...after.roles.keys()]);
  return [...roles].flatMap((role): readonly RoleChange[] => {
    const terms = termChanges(termsOf(role, before), termsOf(role, after), facets);
    const found = known.get(role);
    if (found === undefined && terms.length === 0) return [];
    const { subjects, changes } = found ?? { subjects: subjectsWith(role, after), changes: [] };
    return [{ role, subjects, changes: [...changes, ...terms] }];
  });
}

function subjectsWith(role: string, { subjects }: PolicySnapshot): RoleChange['subjects'] {
  const names = [...subjects].filter(([, s]) => s.ceiling.has(role)).map(([name]) => name);
  return { count: names.length, first: names.slice(0, 20) };
}

interface AccessTerms {
  /** Row filters as written in the policy; a row must pass at least one. Empty if any grant shows every row. */
  readonly rows: readonly string[];
  readonly group: number;
  /** Metrics that the grants allow, sorted; empty if any grant allows every query of its columns. */
  readonly metrics: readonly string[];
  readonly decode: boolean;
  /** Conditions of the role's grants, as written; at least one must hold. Empty if any grant is unconditional. */
  readonly when: readonly string[];
}

function termsOf(role: string, { document }: PolicySnapshot): ReadonlyMap<string, AccessTerms> {
  const terms = new Map<string, AccessTerms>();
  for (const grant of document.roles[role]?.grants ?? []) {
    const known = terms.get(grant.on);
    const rows = grant.rows === undefined ? [] : [grant.rows];
    const group = grant.min_group_size ?? 1;
    terms.set(grant.on, {
      rows: joined(known?.rows, rows),
      group: Math.min(known?.group ?? group, group),
      metrics: [...new Set(joined(known?.metrics, grant.metrics ?? []))].sort(),
      decode: known?.decode === true || grant.decode === true,
      when: joined(known?.when, whenText(grant)),
    });
  }
  return terms;
}

/** Combines the restrictions of two grants, such as row filters. A grant without a restriction lifts the other's. */
function joined(known: readonly string[] | undefined, more: readonly string[]): readonly string[] {
  if (known === undefined) return more;
  return known.length === 0 || more.length === 0 ? [] : [...known, ...more];
}

function whenText(grant: GrantDocument): readonly string[] {
  const { distinct, dominance, overlap } = grant;
  const text = JSON.stringify({ ...conditionsIn(grant), distinct, dominance, overlap });
  return text === '{}' ? [] : [text];
}

function termChanges(
  before: ReadonlyMap<string, AccessTerms>,
  after: ReadonlyMap<string, AccessTerms>,
  facets: ReadonlyMap<string, unknown>,
): readonly AccessChange[] {
  return [...after].flatMap(([on, now]): readonly AccessChange[] => {
    const old = before.get(on);
    // New and removed grants are reported as changes of their columns.
    if (old === undefined || same(old, now)) return [];
    const object = facets.has(on) ? facetName(on) : entityName(on);
    const sight = (terms: AccessTerms) => ({ access: 'rows', reads: termsText(terms) }) as const;
    return [{ object, effect: effectOf(old, now), before: sight(old), after: sight(now) }];
  });
}

function termsText({ rows, group, metrics, decode, when }: AccessTerms): string {
  const parts = [
    rows.length === 0 ? 'all rows' : rows.join(' or '),
    ...(group > 1 ? [`in groups of ${group} at least`] : []),
    ...(metrics.length > 0 ? [`only as the metrics ${metrics.join(', ')}`] : []),
    ...(decode ? ['may be sent to a language model'] : []),
    ...(when.length > 0 ? [`only when ${when.join(' or ')}`] : []),
  ];
  return parts.join(', ');
}

/** Returns `gains` or `loses` if all changed terms widen or all narrow access; otherwise `differs`. */
function effectOf(before: AccessTerms, after: AccessTerms): AccessChange['effect'] {
  const rows = Math.sign(Number(after.rows.length === 0) - Number(before.rows.length === 0));
  const others =
    (!same(before.rows, after.rows) && rows === 0) ||
    !same(before.when, after.when) ||
    !(includesMetrics(after, before) || includesMetrics(before, after));
  const signs = [
    rows,
    Math.sign(before.group - after.group),
    Number(includesMetrics(after, before)) - Number(includesMetrics(before, after)),
    Number(after.decode) - Number(before.decode),
  ];
  if (others || (signs.includes(1) && signs.includes(-1))) return 'differs';
  return signs.includes(1) ? 'gains' : 'loses';
}

/** True if `terms` allow every metric that `others` allow. */
function includesMetrics({ metrics }: AccessTerms, { metrics: others }: AccessTerms): boolean {
  if (metrics.length === 0 || others.length === 0) return metrics.length === 0;
  return others.every((name) => metrics.includes(name));
}

function subjectsBetween(before: PolicySnapshot, after: PolicySnapshot): readonly SubjectChange[] {
  const names = new Set([...before.subjects.keys(), ...after.subjects.keys()]);
  const logins = [loginsOf(before), loginsOf(after)] as const;
  return [...names].flatMap((subject): readonly SubjectChange[] => {
    const [old, now] = [rightsOf(subject, before, logins[0]), rightsOf(subject, after, logins[1])];
    const change = { subject, ...setChanges(old, now), differs: attributeChanges(subject, before, after) };
    return change.gains.length + change.loses.length + change.differs.length === 0 ? [] : [change];
  });
}

/** Compares the token exchange rules. Each is reported as a subject, such as `whoever rule staff takes` for `staff`. */
function rulesBetween(before: PolicySnapshot, after: PolicySnapshot): readonly SubjectChange[] {
  const [old, now] = [before, after].map(
    ({ document }) => new Map((document.exchange ?? []).map((rule) => [rule.name, rule])),
  );
  const names = new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])]);
  return [...names].flatMap((name): readonly SubjectChange[] => {
    const [was, is] = [old?.get(name), now?.get(name)];
    if (JSON.stringify(was) === JSON.stringify(is)) return [];
    const state = was === undefined ? 'a new rule' : is === undefined ? 'removed' : 'changed';
    const changes = setChanges(rightsOfRule(was), rightsOfRule(is));
    return [{ subject: `whoever rule ${name} takes`, ...changes, differs: [`exchange: ${state}`] }];
  });
}

function setChanges(old: ReadonlySet<string>, now: ReadonlySet<string>) {
  const gains = [...now].filter((right) => !old.has(right));
  const loses = [...old].filter((right) => !now.has(right));
  return { gains, loses };
}

function rightsOfRule(rule: ExchangeRuleDocument | undefined): ReadonlySet<string> {
  return new Set([
    ...(rule?.ceiling ?? []).map((role) => `role ${role}`),
    ...(rule?.admin ?? []).map((role) => `admin role ${role}`),
  ]);
}

/** Returns the logins and certificates of each subject. */
function loginsOf({ document }: PolicySnapshot): ReadonlyMap<string, readonly string[]> {
  const logins = new Map<string, string[]>();
  for (const [kind, section] of [
    ['login', document.service_accounts],
    ['certificate', document.certificates],
  ] as const)
    for (const [name, { subject }] of Object.entries(section ?? {}))
      logins.set(subject, [...(logins.get(subject) ?? []), `${kind} ${name}`]);
  return logins;
}

function rightsOf(
  subject: string,
  { subjects }: PolicySnapshot,
  logins: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const policy = subjects.get(subject);
  return new Set([
    ...[...(policy?.ceiling ?? [])].map((role) => `role ${role}`),
    ...[...(policy?.adminCeiling ?? [])].map((role) => `admin role ${role}`),
    ...[...(policy?.purposes ?? [])].map((purpose) => `purpose ${purpose}`),
    ...(logins.get(subject) ?? []),
  ]);
}

function attributeChanges(subject: string, before: PolicySnapshot, after: PolicySnapshot): readonly string[] {
  const [old, now] = [before, after].map(
    (s) => s.subjects.get(subject)?.attributes ?? new Map<string, never>(),
  );
  const names = new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])]);
  const shown = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value));
  return [...names]
    .filter((name) => !same(old?.get(name), now?.get(name)))
    .map((name) => `attribute ${name}: ${shown(old?.get(name))} -> ${shown(now?.get(name))}`);
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
