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
  readonly most: number;
  readonly windowMs: number;
  /** The quota in the words of the policy, such as `limits.subject[0]: 1000 rows per day of user:scout`. */
  readonly label: string;
  /** True if the quota counts per task and the request names no task; such a request is refused. */
  readonly lacksTask: boolean;
  /** Names of the entities that unit `entities` counts; empty for other units. */
  readonly entities: ReadonlySet<string>;
}

/** A limit on one unit, from a `limits` entry of the policy. */
export interface QuotaRule extends Pick<Quota, 'unit' | 'most' | 'windowMs' | 'entities'> {
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

const MOST = Number.MAX_SAFE_INTEGER;

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
    ...Object.entries(roles).flatMap(([role, { limits: own = [] }]) => {
      const path = ['roles', role, 'limits'];
      return [[own, path, { role, each: null }] as const];
    }),
  ];
  return Object.freeze(
    lists.flatMap(([quotas, path, whose]) =>
      quotas.flatMap((quota, i) => rulesOf(quota, [...path, i], whose, names, problems)),
    ),
  );
}

function rulesOf(
  quota: QuotaDocument,
  path: readonly (string | number)[],
  whose: Pick<QuotaRule, 'role' | 'each'>,
  names: NameResolver,
  problems: ProblemList,
): readonly QuotaRule[] {
  const { bucket = 'query', each, name, per, requests, rows, bytes, seconds, cost, tokens } = quota;
  const counted = entitiesOf(quota, path, names, problems);
  const most: readonly (readonly [QuotaUnit, number | undefined])[] = [
    ['requests', requests],
    ['rows', rows],
    ['bytes', bytes],
    ['ms', seconds === undefined ? undefined : 1_000 * seconds],
    ['cost', cost],
    ['tokens', tokens],
    ['entities', quota.entities],
  ];
  const said = most.filter((entry): entry is readonly [QuotaUnit, number] => entry[1] !== undefined);
  const wrong = faultOf(said, bucket);
  if (wrong !== null) problems.add('limit', path, wrong);
  const rule = { ...whose, bucket, per, windowMs: WINDOWS[per], name: name ?? pathText(path) };
  return said.map(([unit, amount]) => {
    const which = unit === 'entities' ? counted : NO_ENTITIES;
    return Object.freeze({ ...rule, ...which, ...(each !== undefined && { each }), unit, most: amount });
  });
}

const NO_ENTITIES = Object.freeze({ entities: new Set<string>(), declared: '' });

/** Largest permitted limit on `entities`: each entity is kept in memory until the window ends. */
const MOST_ENTITIES = 100_000;

function entitiesOf(
  { entities: most, of = [], labels = [] }: QuotaDocument,
  path: readonly (string | number)[],
  names: NameResolver,
  problems: ProblemList,
): Pick<QuotaRule, 'entities' | 'declared'> {
  const isCounted = most !== undefined;
  if (isCounted !== of.length + labels.length > 0)
    problems.add('limit', path, {
      message: isCounted ? 'it is not said which entities count' : 'entities are named, and none are counted',
      hint: 'say `entities` together with `of` or `labels`',
    });
  if (isCounted && most > MOST_ENTITIES)
    problems.add('limit', path, { message: `at most ${MOST_ENTITIES} entities can be counted`, hint: null });
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

function faultOf(said: readonly (readonly [QuotaUnit, number])[], bucket: LimitBucket) {
  if (said.length === 0)
    return {
      message: 'this limit counts nothing',
      hint: 'say requests, rows, bytes, seconds, cost, tokens or entities',
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
  const { unit, bucket, most, windowMs, role, each, per, entities, declared } = rule;
  const who = [user.tenant, unit, bucket, windowMs, role, countedIn(each, user)];
  const task = per === 'task' ? [user.task] : [];
  const key = JSON.stringify(declared === '' ? [...who, ...task] : [...who, declared, ...task]);
  const label = `${rule.name}: ${ruleText(rule)} of ${ownersText(rule, user)}`;
  const lacksTask = per === 'task' && user.task === null;
  return Object.freeze({ key, unit, most, windowMs, label, lacksTask, entities });
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

const UNITS: Readonly<Record<QuotaUnit, (most: number, declared: string) => string>> = Object.freeze({
  requests: (most) => `${most} requests`,
  rows: (most) => `${most} rows`,
  bytes: (most) => `${most} bytes`,
  ms: (most) => `${most / 1_000} seconds`,
  cost: (most) => `cost ${most}`,
  tokens: (most) => `${most} model tokens`,
  entities: (most, declared) => `${most} different ${declared}`,
});

/** Describes the amount and window of a rule: `1000 rows per day`. */
function ruleText({ unit, most, bucket, per, declared }: QuotaRule): string {
  const kind = bucket === 'query' ? '' : ` of kind ${bucket}`;
  return `${UNITS[unit](most, declared)}${kind} per ${per}`;
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

interface KnownQuotas {
  readonly task: string | null;
  readonly all: ByCounter;
}

/** Quotas by policy rules and identity, cached for the identity's last task only. */
const KNOWN = new WeakMap<readonly QuotaRule[], WeakMap<Identity, KnownQuotas>>();

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
  let known = KNOWN.get(rules);
  if (known === undefined) KNOWN.set(rules, (known = new WeakMap()));
  let mine = known.get(identity);
  if (mine?.task !== task) {
    mine = { task, all: byCounter(rules, { ...identity, task }, roles) };
    known.set(identity, mine);
  }
  return mine.all[counter] ?? NONE;
}

const NONE: readonly Quota[] = Object.freeze([]);

function byCounter(rules: readonly QuotaRule[], user: QuotaUser, roles: ReadonlySet<string>): ByCounter {
  const mine = rules.filter(({ role }) => role === null || roles.has(role));
  const counterOf = ({ unit, bucket }: QuotaRule): Counter => (unit === 'entities' ? unit : bucket);
  const quotas = (counter: Counter): readonly Quota[] =>
    mine.filter((rule) => counterOf(rule) === counter).map((rule) => quotaOf(rule, user));
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
