import { ready } from 'osl-compiler';
import t from 'tap';
import { effectiveAccess } from '../../policy/access.js';
import { ALL_APPROVED, NOTHING_APPROVED } from '../../policy/approvals.js';
import { compileSnapshot } from '../../policy/compile-snapshot.js';
import type { Circumstances } from '../../policy/conditions.js';
import type { GrantDocument, PolicyDocument, RoleDocument, SubjectDocument } from '../../policy/document.js';
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
  purposes: fc.subarray(['care', 'study']),
  attributes: fc.record({ region: attribute, team: attribute }, { requiredKeys: [] }),
});
/** 2027-01-15T08:00:00Z is a Friday; the circumstances are within some hours of it. */
const NOON = 1_800_000_000_000;
const HOUR = 3_600_000;
const moment = fc.integer({ min: -3, max: 3 }).map((h) => new Date(NOON + h * HOUR).toISOString());
const CONDITION = fc.record(
  {
    starts: moment,
    for: fc.subarray(['care', 'study'], { minLength: 1 }),
    break_glass: fc.record({ minutes: fc.constantFrom(30, 90), per_day: fc.constant(1) }),
    approval: fc.record({ by: fc.constant('r0'), minutes: fc.constantFrom(30, 90) }),
    when: fc.record(
      {
        surfaces: fc.subarray(['rest', 'wire', 'mcp'] as const, { minLength: 1 }),
        networks: fc.constantFrom(['10.0.0.0/8'], ['10.1.0.0/16', 'fd00::/8']),
        claims: fc.constantFrom({ amr: 'mfa' }, { amr: ['mfa', 'otp'], level: 2 }),
        zone: fc.constant('UTC'),
        days: fc.constantFrom(['fri'] as const, ['mon', 'thu'] as const),
      },
      { requiredKeys: ['zone', 'days'] },
    ),
  },
  { requiredKeys: [] },
);
const emergency = fc.option(
  fc.integer({ min: 0, max: 120 }).map((ago) => ({ id: 'e', startedAt: NOON - ago * 60_000 })),
);
const circumstances: fc.Arbitrary<Circumstances> = fc.record({
  now: fc.integer({ min: -4, max: 4 }).map((h) => NOON + h * HOUR),
  surface: fc.constantFrom('rest', 'wire', 'mcp'),
  address: fc.constantFrom('10.1.2.3', '::ffff:10.2.0.1', 'fd00::1', '192.0.2.1', null),
  purpose: fc.constantFrom('care', 'study', null),
  emergency,
  approved: fc.constantFrom(NOTHING_APPROVED, ALL_APPROVED),
});
const claims = fc.record(
  {
    amr: fc.constantFrom(['mfa'], ['pwd'], ['pwd', 'otp']),
    level: fc.constant(['2']),
    purpose: fc.subarray(['care', 'study']),
  },
  { requiredKeys: [] },
);

/** True if a grant counts, worked out from the document and apart from the policy's own code. */
function counts(
  grant: GrantDocument,
  asked: Asked,
  subjects: readonly (SubjectDocument | undefined)[],
): boolean {
  const { now, surface, address, purpose, emergency, approved } = asked.circumstances;
  const { starts, when, for: purposes, break_glass: glass, approval } = grant;
  if (starts !== undefined && now < Date.parse(starts)) return false;
  if (purposes !== undefined) {
    const claimed = asked.claims['purpose'];
    const said = purpose ?? (claimed?.length === 1 ? claimed[0] : undefined);
    if (said === undefined || !purposes.includes(said) || claimed?.includes(said) === false) return false;
    if (!subjects.every((s) => s?.purposes?.includes(said))) return false;
  }
  if (glass !== undefined) {
    if (emergency === null || subjects.length > 1) return false;
    if (now < emergency.startedAt || now - emergency.startedAt >= glass.minutes * 60_000) return false;
  }
  if (approval !== undefined && approved.get('any') === undefined) return false;
  if (when === undefined) return true;
  const day = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'][new Date(now).getUTCDay()];
  if (when.days?.some((d) => d === day) === false) return false;
  if (when.surfaces?.some((s) => s === surface) === false) return false;
  if (when.networks !== undefined) {
    const inside = [/^(::ffff:)?10\.1\./, /^fd/];
    const wide = [/^(::ffff:)?10\./];
    if (!(when.networks.length === 1 ? wide : inside).some((n) => n.test(address ?? ''))) return false;
  }
  return Object.entries(when.claims ?? {}).every(([name, wanted]) => {
    const values = (Array.isArray(wanted) ? wanted : [wanted]).map(String);
    return asked.claims[name]?.some((v) => values.includes(v)) === true;
  });
}

interface Asked {
  readonly circumstances: Circumstances;
  readonly claims: Readonly<Partial<Record<string, readonly string[]>>>;
}
const asked: fc.Arbitrary<Asked> = fc.record({ circumstances, claims });
const role: fc.Arbitrary<RoleDocument> = fc.record({
  grants: fc.array(
    fc
      .tuple(
        fc.record(
          {
            on: fc.constant('order'),
            columns: fc.oneof(fc.constant<'*'>('*'), fc.subarray(COLUMNS, { minLength: 1 })),
            rows: fc.constantFrom(...PREDICATES.map((p) => p.text)),
            unmask: fc.subarray(['pii', 'secret']),
          },
          { requiredKeys: ['on', 'columns'] },
        ),
        fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 3, arbitrary: CONDITION }),
      )
      .map(([grant, condition]) => ({ ...grant, ...condition })),
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
      purposes: { care: {}, study: {} },
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
  asked: Asked,
): ReadonlySet<string> {
  const subjects = chain.map((s) => (s in d.subjects ? d.subjects[s] : undefined));
  const holdable = claimed.filter((r) => subjects.some((s) => s?.ceiling.includes(r)));
  const held = claimed.filter((r) => subjects.every((s) => s?.ceiling.includes(r)));
  const rules = holdable.flatMap((r) => d.roles[r]?.deny ?? []);
  if (rules.some((rule) => rule.columns === undefined)) return new Set();
  const denied = new Set(rules.flatMap((rule) => rule.columns ?? []));
  // Rules that name its every column take away all of a relation.
  if (COLUMNS.every((name) => denied.has(name))) return new Set();
  const seen = new Set<string>();
  for (const [i, row] of ROWS.entries()) {
    for (const grant of held.flatMap((r) => d.roles[r]?.grants ?? [])) {
      const predicate = PREDICATES.find((p) => p.text === grant.rows);
      if (!counts(grant, asked, subjects)) continue;
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
    if ([value].flat().length === 0) return false; // as Postgres has `= any ('{}')`, also of NULL
    if (row[name] === null) return null;
    return [value].flat().includes(row[name]);
  };
  return predicate.holds(row, has) === true;
}

function seenBy(d: PolicyDocument, chain: readonly string[], aclRoles: readonly string[], asked: Asked) {
  const access = effectiveAccess(
    identity({ chain, aclRoles, roles: ['A', 'B'], claims: claimsOf(asked) }),
    compileSnapshot(d, CATALOG),
    CATALOG,
    asked.circumstances,
  );
  return { cells: visible(access, ROWS, LABELS), admin: access.adminRoles };
}

function claimsOf({ claims }: Asked): ReadonlyMap<string, readonly string[]> {
  return new Map(
    Object.entries(claims).flatMap(([name, v]) => (v === undefined ? [] : [[name, v] as const])),
  );
}

const isSubset = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean => [...a].every((x) => b.has(x));

/** `OSL_MONOTONE_RUNS` chains, from `OSL_ORACLE_SEED`. */
const RUNS = Number(process.env['OSL_MONOTONE_RUNS'] ?? 1_000);
const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? 20_260_106);

t.test('a caller sees exactly what the policy document says', async (t) => {
  let nonEmpty = 0;
  fc.assert(
    fc.property(document, chain, claimed, asked, (d, c, roles, a) => {
      const { cells } = seenBy(d, c, roles, a);
      t.strictSame([...cells].sort(), [...expected(d, c, roles, a)].sort());
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
      asked,
      (d, c, roles, joins, at, a) => {
        fc.pre(!c.includes(joins));
        const longer = c.toSpliced(at, 0, joins);
        const before = seenBy(d, c, roles, a);
        const after = seenBy(d, longer, roles, a);
        narrowed += after.cells.size > 0 && after.cells.size < before.cells.size ? 1 : 0;
        return isSubset(after.cells, before.cells) && isSubset(after.admin, before.admin);
      },
    ),
    { numRuns: RUNS, seed: SEED },
  );
  t.ok(narrowed > RUNS / 50, `${narrowed} of ${RUNS} see less, but something`);
});
