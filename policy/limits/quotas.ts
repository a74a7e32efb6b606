import { assertNever } from 'osl-compiler';
import type { PolicyDocument, QuotaDocument } from '../document.js';
import { LIMIT_BUCKETS, type LimitBucket } from '../document.js';
import type { Identity } from '../identity.js';
import type { ProblemList } from '../problems.js';

/**
 * The unit of a quota: bytes as sent by the database, `ms` of database time, the planner's `cost` of statements, tokens
 * of models.
 */
export type QuotaUnit = 'requests' | 'rows' | 'bytes' | 'ms' | 'cost' | 'tokens';

/** A limit on one unit per window. */
export interface Quota {
  /** Identifies subjects and unit but not the amount, so that a count survives a change of the amount. */
  readonly key: string;
  readonly unit: QuotaUnit;
  readonly most: number;
  readonly windowMs: number;
  /** The quota in words of the policy: `limits.subject[0]: 1000 rows per day of user:scout`. */
  readonly label: string;
  /** True if it counts per task and the request names none, which refuses the request. */
  readonly lacksTask: boolean;
}

/** One unit of a `limits` entry of the policy. */
export interface QuotaRule extends Pick<Quota, 'unit' | 'most' | 'windowMs'> {
  /** The name that the policy gives, or else its place there, such as `limits.subject[0]`. */
  readonly name: string;
  readonly bucket: LimitBucket;
  readonly per: QuotaDocument['per'];
  /** The role whose members have the quota; null if it applies to all subjects. */
  readonly role: string | null;
  /** Unit that is counted separately: each subject, or each chain of subjects; null: all together. */
  readonly each: 'subject' | 'chain' | null;
}

/** Whose use is counted. */
export interface QuotaUser extends Pick<Identity, 'tenant' | 'subject' | 'chain'> {
  /** The task of the request; null if it names none. */
  readonly task: string | null;
}

/** The time in ms for which the count of a task is kept, from its first request. */
const TASK_MS = 86_400_000;

const WINDOWS: Readonly<Record<QuotaDocument['per'], number>> = Object.freeze({
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  task: TASK_MS,
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
    [limits?.subject ?? [], ['limits', 'subject'], { role: null, each: 'subject' }],
    [limits?.chain ?? [], ['limits', 'chain'], { role: null, each: 'chain' }],
    [limits?.tenant ?? [], ['limits', 'tenant'], { role: null, each: null }],
    ...Object.entries(roles).flatMap(([role, { limits: own = [] }]) => {
      const path = ['roles', role, 'limits'];
      return [[own, path, { role, each: null }] as const];
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
  const { bucket = 'query', each, name, per, requests, rows, bytes, seconds, cost, tokens } = quota;
  const most: readonly (readonly [QuotaUnit, number | undefined])[] = [
    ['requests', requests],
    ['rows', rows],
    ['bytes', bytes],
    ['ms', seconds === undefined ? undefined : 1_000 * seconds],
    ['cost', cost],
    ['tokens', tokens],
  ];
  const said = most.filter((entry): entry is readonly [QuotaUnit, number] => entry[1] !== undefined);
  const wrong = faultOf(said, bucket);
  if (wrong !== null) problems.add('limit', path, wrong);
  const rule = { ...whose, bucket, per, windowMs: WINDOWS[per], name: name ?? pathText(path) };
  return said.map(([unit, amount]) =>
    Object.freeze({ ...rule, ...(each !== undefined && { each }), unit, most: amount }),
  );
}

/** @param path ends with the index in the list */
function pathText(path: readonly (string | number)[]): string {
  return `${path.slice(0, -1).join('.')}[${path.at(-1)}]`;
}

function faultOf(said: readonly (readonly [QuotaUnit, number])[], bucket: LimitBucket) {
  if (said.length === 0)
    return {
      message: 'this limit counts nothing',
      hint: 'say requests, rows, bytes, seconds, cost or tokens',
    };
  if (said.some(([, amount]) => !Number.isInteger(amount) || amount < 1 || amount > MOST))
    return { message: 'a limit is a whole number from 1', hint: null };
  if (bucket !== 'query' && said.some(([unit]) => unit !== 'requests'))
    return {
      message: `of \`${bucket}\` only requests are counted`,
      hint: 'all else is counted of questions: leave out `bucket`',
    };
  return null;
}

export function quotaOf(rule: QuotaRule, user: QuotaUser): Quota {
  const { unit, bucket, most, windowMs, role, each, per } = rule;
  const who = [user.tenant, unit, bucket, windowMs, role, countedIn(each, user)];
  const key = JSON.stringify(per === 'task' ? [...who, user.task] : who);
  const label = `${rule.name}: ${ruleText(rule)} of ${ownersText(rule, user)}`;
  return Object.freeze({ key, unit, most, windowMs, label, lacksTask: per === 'task' && user.task === null });
}

function countedIn(
  each: QuotaRule['each'],
  { subject, chain }: QuotaUser,
): string | readonly string[] | null {
  switch (each) {
    case 'subject':
      return subject;
    case 'chain':
      return chain;
    case null:
      return null;
    default:
      return assertNever(each);
  }
}

const UNITS: Readonly<Record<QuotaUnit, (most: number) => string>> = Object.freeze({
  requests: (most) => `${most} requests`,
  rows: (most) => `${most} rows`,
  bytes: (most) => `${most} bytes`,
  ms: (most) => `${most / 1_000} seconds`,
  cost: (most) => `cost ${most}`,
  tokens: (most) => `${most} model tokens`,
});

/** `1000 rows per day`. */
function ruleText({ unit, most, bucket, per }: QuotaRule): string {
  const kind = bucket === 'query' ? '' : ` of kind ${bucket}`;
  return `${UNITS[unit](most)}${kind} per ${per}`;
}

/** Whose use the rule counts together with that of `user`: `user:scout`, `all subjects`. */
export function ownersText({ each, role }: QuotaRule, { subject, chain }: QuotaUser): string {
  if (each === 'subject') return subject;
  if (each === 'chain') return `the chain ${chain.join(' > ')}`;
  return role === null ? 'all subjects' : `all members of role ${role}`;
}

type ByBucket = Readonly<Record<LimitBucket, readonly Quota[]>>;

interface KnownQuotas {
  readonly task: string | null;
  readonly all: Partial<ByBucket>;
}

/** The quotas of an identity; only those of its last task. */
const KNOWN = new WeakMap<readonly QuotaRule[], WeakMap<Identity, KnownQuotas>>();

/** The quotas that apply to a request by `identity` with these roles. A subject is the leaf of its chain. */
export function quotasOf(
  rules: readonly QuotaRule[],
  identity: Identity,
  roles: ReadonlySet<string>,
  bucket: LimitBucket,
  task: string | null = null,
): readonly Quota[] {
  if (rules.length === 0) return NONE;
  let known = KNOWN.get(rules);
  if (known === undefined) KNOWN.set(rules, (known = new WeakMap()));
  let mine = known.get(identity);
  if (mine?.task !== task) {
    mine = { task, all: byBucket(rules, { ...identity, task }, roles) };
    known.set(identity, mine);
  }
  return mine.all[bucket] ?? NONE;
}

const NONE: readonly Quota[] = Object.freeze([]);

function byBucket(
  rules: readonly QuotaRule[],
  user: QuotaUser,
  roles: ReadonlySet<string>,
): Partial<ByBucket> {
  const mine = rules.filter(({ role }) => role === null || roles.has(role));
  const quotas = (bucket: LimitBucket): readonly Quota[] =>
    mine.filter((rule) => rule.bucket === bucket).map((rule) => quotaOf(rule, user));
  return Object.fromEntries(LIMIT_BUCKETS.map((bucket) => [bucket, quotas(bucket)]));
}
