import { ready } from 'osl-compiler';
import t from 'tap';
import { effectiveAccess } from '../../policy/access.js';
import { compileSnapshot } from '../../policy/compile-snapshot.js';
import type { PolicyDocument, RoleDocument, SubjectDocument } from '../../policy/document.js';
import { fc } from '../support/fast-check.js';
import { CATALOG, ORDER, policy } from './fixtures.js';
import { and, not, or, type Row, type Truth, visible } from './rows.js';
import { identity } from './tokens.js';

await ready();

/** A predicate as text and, apart from the compiler, as what it means for one subject. */
interface Predicate {
  readonly text: string;
  readonly attributes: readonly ('region' | 'team')[];
  readonly holds: (row: Row, has: (attribute: 'region' | 'team') => Truth) => Truth;
}

const PREDICATES: readonly Predicate[] = [
  { text: "region = attribute('region')", attributes: ['region'], holds: (_, has) => has('region') },
  { text: "team in (attribute('team'))", attributes: ['team'], holds: (_, has) => has('team') },
  {
    text: "not (region = attribute('region'))",
    attributes: ['region'],
    holds: (_, has) => not(has('region')),
  },
  {
    text: "region = attribute('region') and team = attribute('team')",
    attributes: ['region', 'team'],
    holds: (_, has) => and([has('region'), has('team')]),
  },
  {
    text: "team is null or region = attribute('region')",
    attributes: ['region'],
    holds: (row, has) => or([row.team === null, has('region')]),
  },
  {
    text: "not (team = attribute('team') or region is null)",
    attributes: ['team'],
    holds: (row, has) => not(or([has('team'), row.region === null])),
  },
  { text: 'team is null', attributes: [], holds: (row) => row.team === null },
];

const VALUES = ['a', 'b', 'c'];
const ROWS: readonly Row[] = [...VALUES, null].flatMap((region) =>
  [...VALUES, null].map((team) => ({ region, team })),
);
const COLUMNS = ORDER.columns.map((c) => c.name);
const LABELS = new Map(ORDER.columns.map((c) => [c.name, c.sensitivity]));
const ROLES = ['r0', 'r1', 'r2', 'r3'];
const SUBJECTS = ['s0', 's1', 's2', 's3', 's4'];

const attribute = fc.oneof(
  fc.constantFrom(...VALUES),
  fc.subarray(VALUES),
  fc.constant<{ readonly any: true }>({ any: true }),
);
const subject: fc.Arbitrary<SubjectDocument> = fc.record({
  ceiling: fc.oneof(
    { weight: 2, arbitrary: fc.constant(ROLES) },
    { weight: 1, arbitrary: fc.subarray(ROLES) },
  ),
  admin: fc.subarray(['A', 'B', 'C']),
  attributes: fc.record({ region: attribute, team: attribute }, { requiredKeys: [] }),
});
const role: fc.Arbitrary<RoleDocument> = fc.record({
  grants: fc.array(
    fc.record(
      {
        on: fc.constant('order'),
        columns: fc.oneof(fc.constant<'*'>('*'), fc.subarray(COLUMNS, { minLength: 1 })),
        rows: fc.constantFrom(...PREDICATES.map((p) => p.text)),
        unmask: fc.subarray(['pii', 'secret']),
      },
      { requiredKeys: ['on', 'columns'] },
    ),
    { maxLength: 3 },
  ),
  deny: fc.array(
    fc.record(
      { on: fc.constant('order'), columns: fc.subarray(COLUMNS, { minLength: 1, maxLength: 2 }) },
      { requiredKeys: ['on'] },
    ),
    { maxLength: 1 },
  ),
});
const document: fc.Arbitrary<PolicyDocument> = fc
  .tuple(fc.array(role, { minLength: 4, maxLength: 4 }), fc.array(subject, { minLength: 4, maxLength: 4 }))
  .map(([roles, subjects]) =>
    policy({
      roles: Object.fromEntries(roles.map((r, i) => [`r${i}`, r])),
      subjects: Object.fromEntries(subjects.map((s, i) => [`s${i}`, s])), // s4 is unknown
      masks: { pii: 'redact' },
    }),
  );
/** Mostly known subjects: an unknown one empties everything. */
const chain = fc
  .shuffledSubarray(SUBJECTS, { minLength: 1, maxLength: 4 })
  .map((c) => (c.length > 1 ? c.filter((s) => s !== 's4' || c.length > 3) : c));
const claimed = fc.oneof(fc.constant(ROLES), fc.subarray(ROLES));

/** Cells and rows that `chain` sees, worked out from the document alone. */
function expected(
  d: PolicyDocument,
  chain: readonly string[],
  claimed: readonly string[],
): ReadonlySet<string> {
  const subjects = chain.map((s) => (s in d.subjects ? d.subjects[s] : undefined));
  const holdable = claimed.filter((r) => subjects.some((s) => s?.ceiling.includes(r)));
  const held = claimed.filter((r) => subjects.every((s) => s?.ceiling.includes(r)));
  const rules = holdable.flatMap((r) => d.roles[r]?.deny ?? []);
  if (rules.some((rule) => rule.columns === undefined)) return new Set();
  const denied = new Set(rules.flatMap((rule) => rule.columns ?? []));
  const seen = new Set<string>();
  for (const [i, row] of ROWS.entries()) {
    for (const grant of held.flatMap((r) => d.roles[r]?.grants ?? [])) {
      const predicate = PREDICATES.find((p) => p.text === grant.rows);
      if (predicate !== undefined && !subjects.every((s) => s !== undefined && holdsFor(predicate, row, s)))
        continue;
      seen.add(`${i}`);
      for (const name of grant.columns === '*' ? COLUMNS : grant.columns) {
        const label = LABELS.get(name) ?? null;
        if (!denied.has(name) && (label === null || grant.unmask?.includes(label))) seen.add(`${i}:${name}`);
      }
    }
  }
  return seen;
}

function holdsFor(predicate: Predicate, row: Row, subject: SubjectDocument): boolean {
  const attributes = subject.attributes ?? {};
  if (predicate.attributes.some((a) => attributes[a] === undefined)) return false;
  const has = (name: 'region' | 'team'): Truth => {
    const value = attributes[name];
    if (value === undefined) return false;
    if (typeof value === 'object' && 'any' in value) return true;
    if (row[name] === null) return null;
    return typeof value === 'string' ? value === row[name] : value.includes(row[name]);
  };
  return predicate.holds(row, has) === true;
}

function seenBy(d: PolicyDocument, chain: readonly string[], aclRoles: readonly string[]) {
  const access = effectiveAccess(
    identity({ chain, aclRoles, roles: ['A', 'B'] }),
    compileSnapshot(d, CATALOG),
    CATALOG,
  );
  return { cells: visible(access, ROWS, LABELS), admin: access.adminRoles };
}

const isSubset = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean => [...a].every((x) => b.has(x));

/** `OSL_MONOTONE_RUNS` chains, from `OSL_ORACLE_SEED`. */
const RUNS = Number(process.env['OSL_MONOTONE_RUNS'] ?? 1_000);
const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? 20_260_106);

t.test('a caller sees exactly what the policy document says', async (t) => {
  let nonEmpty = 0;
  fc.assert(
    fc.property(document, chain, claimed, (d, c, roles) => {
      const { cells } = seenBy(d, c, roles);
      t.strictSame([...cells].sort(), [...expected(d, c, roles)].sort());
      nonEmpty += cells.size > 0 ? 1 : 0;
    }),
    { numRuns: RUNS / 2, seed: SEED },
  );
  t.ok(nonEmpty > RUNS / 10, `${nonEmpty} of ${RUNS / 2} see something`);
});

t.test('a longer chain can only see less, wherever the subject joins it', async (t) => {
  let narrowed = 0;
  fc.assert(
    fc.property(
      document,
      chain,
      claimed,
      fc.constantFrom(...SUBJECTS),
      fc.nat(4),
      (d, c, roles, joins, at) => {
        fc.pre(!c.includes(joins));
        const longer = c.toSpliced(at, 0, joins);
        const before = seenBy(d, c, roles);
        const after = seenBy(d, longer, roles);
        narrowed += after.cells.size > 0 && after.cells.size < before.cells.size ? 1 : 0;
        return isSubset(after.cells, before.cells) && isSubset(after.admin, before.admin);
      },
    ),
    { numRuns: RUNS, seed: SEED },
  );
  t.ok(narrowed > RUNS / 50, `${narrowed} of ${RUNS} see less, but something`);
});
