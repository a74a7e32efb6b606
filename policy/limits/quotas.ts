import type { PolicyDocument, QuotaDocument } from '../document.js';
import { LIMIT_BUCKETS, type LimitBucket } from '../document.js';
import type { Identity } from '../identity.js';
import type { ProblemList } from '../problems.js';

/** The unit of a quota: bytes as sent by the database, `ms` of database time. */
export type QuotaUnit = 'requests' | 'rows' | 'bytes' | 'ms';

/** A limit on one unit per window. */
export interface Quota {
  /** Identifies subjects and unit but not the amount, so that a count survives a change of the amount. */
  readonly key: string;
  readonly unit: QuotaUnit;
  readonly most: number;
  readonly windowMs: number;
}

/** One unit of a `limits` entry of the policy. */
export interface QuotaRule extends Omit<Quota, 'key'> {
  readonly bucket: LimitBucket;
  /** The role whose members have the quota; null if it applies to all subjects. */
  readonly role: string | null;
  /** True if each subject is counted separately. */
  readonly each: boolean;
}

const WINDOWS: Readonly<Record<QuotaDocument['per'], number>> = Object.freeze({
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
});

const MOST = Number.MAX_SAFE_INTEGER;

/** Compiles the quotas of a policy; adds faults to `problems`. */
export function compileQuotas(document: PolicyDocument, problems: ProblemList): readonly QuotaRule[] {
  const { limits, roles } = document;
  const lists: readonly (readonly [
    readonly QuotaDocument[],
    readonly string[],
    Pick<QuotaRule, 'role' | 'each'>,
  ])[] = [
    [limits?.subject ?? [], ['limits', 'subject'], { role: null, each: true }],
    [limits?.tenant ?? [], ['limits', 'tenant'], { role: null, each: false }],
    ...Object.entries(roles).flatMap(([role, { limits: own = [] }]) => {
      const path = ['roles', role, 'limits'];
      return [[own, path, { role, each: false }] as const];
    }),
  ];
  return Object.freeze(
    lists.flatMap(([quotas, path, whose]) =>
      quotas.flatMap((quota, i) => rulesOf(quota, [...path, i], whose, problems)),
    ),
  );
}

function rulesOf(
  quota: QuotaDocument,
  path: readonly (string | number)[],
  whose: Pick<QuotaRule, 'role' | 'each'>,
  problems: ProblemList,
): readonly QuotaRule[] {
  const { bucket = 'query', each, per, requests, rows, bytes, seconds } = quota;
  const most: readonly (readonly [QuotaUnit, number | undefined])[] = [
    ['requests', requests],
    ['rows', rows],
    ['bytes', bytes],
    ['ms', seconds === undefined ? undefined : 1_000 * seconds],
  ];
  const said = most.filter((entry): entry is readonly [QuotaUnit, number] => entry[1] !== undefined);
  const wrong = faultOf(said, bucket);
  if (wrong !== null) problems.add('limit', path, wrong);
  const shared = { bucket, windowMs: WINDOWS[per], ...whose, ...(each === 'subject' && { each: true }) };
  return said.map(([unit, amount]) => Object.freeze({ ...shared, unit, most: amount }));
}

function faultOf(said: readonly (readonly [QuotaUnit, number])[], bucket: LimitBucket) {
  if (said.length === 0)
    return { message: 'this limit counts nothing', hint: 'say requests, rows, bytes or seconds' };
  if (said.some(([, amount]) => !Number.isInteger(amount) || amount < 1 || amount > MOST))
    return { message: 'a limit is a whole number from 1', hint: null };
  if (bucket !== 'query' && said.some(([unit]) => unit !== 'requests'))
    return {
      message: `of \`${bucket}\` only requests are counted`,
      hint: 'rows, bytes and seconds are those of questions: leave out `bucket`',
    };
  return null;
}

export function quotaOf(
  { unit, bucket, most, windowMs, role, each }: QuotaRule,
  tenant: string,
  subject: string,
): Quota {
  const key = JSON.stringify([tenant, unit, bucket, windowMs, role, each ? subject : null]);
  return Object.freeze({ key, unit, most, windowMs });
}

type ByBucket = Readonly<Record<LimitBucket, readonly Quota[]>>;

const KNOWN = new WeakMap<
  readonly QuotaRule[],
  WeakMap<Identity, Partial<Record<LimitBucket, readonly Quota[]>>>
>();

/** The quotas that apply to a request by `identity` with these roles, counted for the leaf of its chain. */
export function quotasOf(
  rules: readonly QuotaRule[],
  identity: Identity,
  roles: ReadonlySet<string>,
  bucket: LimitBucket,
): readonly Quota[] {
  if (rules.length === 0) return NONE;
  let known = KNOWN.get(rules);
  if (known === undefined) KNOWN.set(rules, (known = new WeakMap()));
  let all = known.get(identity);
  if (all === undefined) known.set(identity, (all = byBucket(rules, identity, roles)));
  return all[bucket] ?? NONE;
}

const NONE: readonly Quota[] = Object.freeze([]);

function byBucket(
  rules: readonly QuotaRule[],
  { tenant, subject }: Identity,
  roles: ReadonlySet<string>,
): Partial<ByBucket> {
  const mine = rules.filter(({ role }) => role === null || roles.has(role));
  const quotas = (bucket: LimitBucket): readonly Quota[] =>
    mine.filter((rule) => rule.bucket === bucket).map((rule) => quotaOf(rule, tenant, subject));
  return Object.fromEntries(LIMIT_BUCKETS.map((bucket) => [bucket, quotas(bucket)]));
}
