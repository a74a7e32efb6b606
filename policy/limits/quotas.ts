import { assertNever } from 'osl-compiler';
import {
  LIMIT_BUCKETS,
  type LimitBucket,
  type LimitsDocument,
  type PolicyDocument,
  type QuotaDocument,
} from '../document.js';
import type { Identity } from '../identity.js';
import type { NameResolver } from '../names.js';
import type { ProblemList } from '../problems.js';

/**
 * The unit of a quota: `bytes` as sent by the database, `ms` of database time, the planner's `cost` of statements,
 * `tokens` of language models, different `entities` that are shown.
 */
export type QuotaUnit = 'requests' | 'rows' | 'bytes' | 'ms' | 'cost' | 'tokens' | 'entities';

/** A limit on one unit per window. */
export interface Quota {
  /** Identifies subjects and unit but not the amount, so that a count survives a change of the amount. */
  readonly key: string;
  readonly unit: QuotaUnit;
  readonly limit: number;
  readonly windowMs: number;
  /** The quota in the words of the policy, such as `limits.subject[0]: 1000 rows per day of user:scout`. */
  readonly label: string;
  /** True if the quota counts per task and the request names no task; such a request is refused. */
  readonly lacksTask: boolean;
  /** Names of the entities that unit `entities` counts; empty for other units. */
  readonly entities: ReadonlySet<string>;
}

/** A limit on one unit, from a `limits` entry of the policy. */
export interface QuotaRule extends Pick<Quota, 'unit' | 'limit' | 'windowMs' | 'entities'> {
  /** The name given in the policy, or otherwise the path of the entry, such as `limits.subject[0]`. */
  readonly name: string;
  readonly bucket: LimitBucket;
  readonly per: QuotaDocument['per'];
  /** The role whose members have the quota; null if it applies to all subjects. */
  readonly role: string | null;
  /** Counts each subject, or each chain of subjects, separately; null: all together. */
  readonly each: 'subject' | 'chain' | null;
  /**
   * The entities and labels as written in the policy; empty for other units. The count's key contains this text, so
   * that counts survive when another entity gets a label.
   */
  readonly declared: string;
}

/** The caller whose use is counted. */
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

const MAX_AMOUNT = Number.MAX_SAFE_INTEGER;

/** Compiles the quotas of a policy; adds faults to `problems`. */
export function compileQuotas(
  document: PolicyDocument,
  names: NameResolver,
  problems: ProblemList,
): readonly QuotaRule[] {
  const { limits, roles } = document;
  const lists: readonly (readonly [
    readonly QuotaDocument[],
    readonly string[],
    Pick<QuotaRule, 'role' | 'each'>,
  ])[] = [
    [limits?.subject ?? [], ['limits', 'subject'], { role: null, each: 'subject' }],
    [limits?.chain ?? [], ['limits', 'chain'], { role: null, each: 'chain' }],
    [limits?.tenant ?? [], ['limits', 'tenant'], { role: null, each: null }],
    ...Object.entries(roles).flatMap(([role, { limits: roleLimits = [] }]) => {
      const path = ['roles', role, 'limits'];
      return [[roleLimits, path, { role, each: null }] as const];
    }),
  ];
  return Object.freeze(
    lists.flatMap(([quotas, path, scope]) =>
      quotas.flatMap((quota, i) => rulesOf(quota, [...path, i], scope, names, problems)),
    ),
  );
}

function rulesOf(
  quota: QuotaDocument,
  path: readonly (string | number)[],
  scope: Pick<QuotaRule, 'role' | 'each'>,
  names: NameResolver,
  problems: ProblemList,
): readonly QuotaRule[] {
  const { bucket = 'query', each, name, per, requests, rows, bytes, seconds, cost, tokens } = quota;
  const countedEntities = entitiesOf(quota, path, names, problems);
  const byUnit: readonly (readonly [QuotaUnit, number | undefined])[] = [
    ['requests', requests],
    ['rows', rows],
    ['bytes', bytes],
    ['ms', seconds === undefined ? undefined : 1_000 * seconds],
    ['cost', cost],
    ['tokens', tokens],
    ['entities', quota.entities],
  ];
  const amounts = byUnit.filter((entry): entry is readonly [QuotaUnit, number] => entry[1] !== undefined);
  const fault = faultOf(amounts, bucket);
  if (fault !== null) problems.add('limit', path, fault);
  const rule = { ...scope, bucket, per, windowMs: WINDOWS[per], name: name ?? pathText(path) };
  return amounts.map(([unit, amount]) => {
    const counted = unit === 'entities' ? countedEntities : NO_ENTITIES;
    return Object.freeze({ ...rule, ...counted, ...(each !== undefined && { each }), unit, limit: amount });
  });
}

const NO_ENTITIES = Object.freeze({ entities: new Set<string>(), declared: '' });

/** Largest permitted limit on `entities`: each entity is kept in memory until the window ends. */
const MAX_ENTITIES = 100_000;

function entitiesOf(
  { entities: limit, of = [], labels = [] }: QuotaDocument,
  path: readonly (string | number)[],
  names: NameResolver,
  problems: ProblemList,
): Pick<QuotaRule, 'entities' | 'declared'> {
  const isCounted = limit !== undefined;
  if (isCounted !== of.length + labels.length > 0)
    problems.add('limit', path, {
      message: isCounted ? 'it is not said which entities count' : 'entities are named, and none are counted',
      hint: 'say `entities` together with `of` or `labels`',
    });
  if (isCounted && limit > MAX_ENTITIES)
    problems.add('limit', path, { message: `at most ${MAX_ENTITIES} entities can be counted`, hint: null });
  for (const [i, name] of of.entries()) names.relation(name, [...path, 'of', i]);
  const labelled = names.labels(labels, [...path, 'labels']);
  const entities = [...names.relations].flatMap(([name, relation]) =>
    of.includes(name) || [...relation.labels].some((label) => labelled.has(label)) ? [name] : [],
  );
  const declared = [...of, ...labels.map((label) => `labelled ${label}`)].join(', ');
  return { entities: new Set(entities), declared };
}

/** Formats a path in the policy, such as `limits.subject[0]`. @param path ends with the index in the list */
function pathText(path: readonly (string | number)[]): string {
  return `${path.slice(0, -1).join('.')}[${path.at(-1)}]`;
}

function faultOf(amounts: readonly (readonly [QuotaUnit, number])[], bucket: LimitBucket) {
  if (amounts.length === 0)
    return {
      message: 'this limit counts nothing',
      hint: 'say requests, rows, bytes, seconds, cost, tokens or entities',
    };
  if (amounts.some(([, amount]) => !Number.isInteger(amount) || amount < 1 || amount > MAX_AMOUNT))
    return { message: 'a limit is a whole number from 1', hint: null };
  if (bucket !== 'query' && amounts.some(([unit]) => unit !== 'requests'))
    return {
      message: `of \`${bucket}\` only requests are counted`,
      hint: 'all else is counted of questions: leave out `bucket`',
    };
  return null;
}

export function quotaOf(rule: QuotaRule, user: QuotaUser): Quota {
  const { unit, bucket, limit, windowMs, role, each, per, entities, declared } = rule;
  const owner = [user.tenant, unit, bucket, windowMs, role, ownerOf(each, user)];
  const task = per === 'task' ? [user.task] : [];
  const key = JSON.stringify(declared === '' ? [...owner, ...task] : [...owner, declared, ...task]);
  const label = `${rule.name}: ${ruleText(rule)} of ${ownersText(rule, user)}`;
  const lacksTask = per === 'task' && user.task === null;
  return Object.freeze({ key, unit, limit, windowMs, label, lacksTask, entities });
}

function ownerOf(each: QuotaRule['each'], { subject, chain }: QuotaUser): string | readonly string[] | null {
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

const UNITS: Readonly<Record<QuotaUnit, (limit: number, declared: string) => string>> = Object.freeze({
  requests: (limit) => `${limit} requests`,
  rows: (limit) => `${limit} rows`,
  bytes: (limit) => `${limit} bytes`,
  ms: (limit) => `${limit / 1_000} seconds`,
  cost: (limit) => `cost ${limit}`,
  tokens: (limit) => `${limit} model tokens`,
  entities: (limit, declared) => `${limit} different ${declared}`,
});

/** Describes the amount and window of a rule: `1000 rows per day`. */
function ruleText({ unit, limit, bucket, per, declared }: QuotaRule): string {
  const kind = bucket === 'query' ? '' : ` of kind ${bucket}`;
  return `${UNITS[unit](limit, declared)}${kind} per ${per}`;
}

/** Describes the owner of the count that includes `user`, such as `user:scout` or `all subjects`. */
export function ownersText({ each, role }: QuotaRule, { subject, chain }: QuotaUser): string {
  if (each === 'subject') return subject;
  if (each === 'chain') return `the chain ${chain.join(' > ')}`;
  return role === null ? 'all subjects' : `all members of role ${role}`;
}

/** The use that a quota counts: of requests in a bucket, or of `entities`, which are counted as rows are shown. */
type Counter = LimitBucket | 'entities';

type ByCounter = Readonly<Partial<Record<Counter, readonly Quota[]>>>;

interface CachedQuotas {
  readonly task: string | null;
  readonly all: ByCounter;
}

/** Quotas by policy rules and identity, cached for the identity's last task only. */
const QUOTA_CACHE = new WeakMap<readonly QuotaRule[], WeakMap<Identity, CachedQuotas>>();

/**
 * Returns the quotas that apply to requests by `identity` with these roles or, if `counter` is `entities`, to the
 * entities shown to it. Use per subject is counted for the leaf of the chain.
 */
export function quotasOf(
  rules: readonly QuotaRule[],
  identity: Identity,
  roles: ReadonlySet<string>,
  counter: Counter,
  task: string | null = null,
): readonly Quota[] {
  if (rules.length === 0) return NONE;
  let byIdentity = QUOTA_CACHE.get(rules);
  if (byIdentity === undefined) QUOTA_CACHE.set(rules, (byIdentity = new WeakMap()));
  let cached = byIdentity.get(identity);
  if (cached?.task !== task) {
    cached = { task, all: byCounter(rules, { ...identity, task }, roles) };
    byIdentity.set(identity, cached);
  }
  return cached.all[counter] ?? NONE;
}

const NONE: readonly Quota[] = Object.freeze([]);

function byCounter(rules: readonly QuotaRule[], user: QuotaUser, roles: ReadonlySet<string>): ByCounter {
  const applicable = rules.filter(({ role }) => role === null || roles.has(role));
  const counterOf = ({ unit, bucket }: QuotaRule): Counter => (unit === 'entities' ? unit : bucket);
  const quotas = (counter: Counter): readonly Quota[] =>
    applicable.filter((rule) => counterOf(rule) === counter).map((rule) => quotaOf(rule, user));
  const counters: readonly Counter[] = [...LIMIT_BUCKETS, 'entities'];
  return Object.fromEntries(counters.map((counter) => [counter, quotas(counter)]));
}

export { LIMIT_BUCKETS };

/** Maximum number of requests per second for one subject, by bucket. */
export type RateLimits = Readonly<Record<LimitBucket, number>>;

/**
 * The defaults from the contract. `authoring` (drafts and publications) and `catalog` (catalog queries of BI tools) are
 * not part of the contract.
 */
export const DEFAULT_LIMITS: RateLimits = Object.freeze({
  query: 60,
  sample: 30,
  schema: 5,
  authoring: 5,
  catalog: 200,
});

/** The limits of a policy, including defaults. */
export function limitsOf(document: LimitsDocument | undefined): RateLimits {
  return Object.freeze(perBucket((bucket) => document?.[bucket] ?? DEFAULT_LIMITS[bucket]));
}

/** Builds a value for each bucket. */
export function perBucket<T>(f: (bucket: LimitBucket) => T): Readonly<Record<LimitBucket, T>> {
  // cast: LIMIT_BUCKETS lists every bucket
  return Object.fromEntries(LIMIT_BUCKETS.map((bucket) => [bucket, f(bucket)])) as Record<LimitBucket, T>;
}
