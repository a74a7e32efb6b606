import { queryError } from 'osl-compiler';
import type { LimitsDocument } from '../document.js';
import { LIMIT_BUCKETS, type LimitBucket } from '../document.js';
import type { Identity } from '../identity.js';
import { addressGroup, createGuesses, type Guesses, type OwnGuesses } from './guesses.js';
import { type AskLease, type Lease, LeaseBook, LeasedCounter } from './leases.js';
import { type Charge, createQuotas, type QuotaCount, type Quotas } from './quota-counts.js';
import { SharedQuotas } from './shared-quotas.js';
import { type LimitResult, WindowCounter } from './window.js';

export { LIMIT_BUCKETS };

/** Requests a second of one subject of a tenant. */
export type RateLimits = Readonly<Record<LimitBucket, number>>;

/**
 * The contract's intended defaults; `authoring` (drafts and what is published) and `catalog` (statements of BI tools
 * about the catalog) are ours.
 */
export const DEFAULT_LIMITS: RateLimits = Object.freeze({
  query: 60,
  sample: 30,
  schema: 5,
  authoring: 5,
  catalog: 200,
});

/** Requests a second of one address that sends no valid token. */
export const PER_ADDRESS = 20;
const MAX_SUBJECTS = 100_000;
const MAX_ADDRESSES = 65_536;

export interface Limiter {
  /**
   * Counts one request of the leaf subject of `identity` against `bucket`. A promise where others count too.
   *
   * @throws QueryError E5038 while it is not known how many do
   */
  take(bucket: LimitBucket, identity: Identity): LimitResult | Promise<LimitResult>;
  /** As `take`, where that lets the request through at once. Where it would not, nothing is counted. */
  takeIfLeft(bucket: LimitBucket, identity: Identity): boolean;
  /** Counts one unauthenticated request of a peer (an IP address as text), before it reaches the log. */
  takeAddress(address: string): LimitResult | Promise<LimitResult>;
  /** Quotas beside the rate: rows, bytes and time, and windows of more than a second. */
  readonly quotas: Quotas;
  /** Of the passwords of service accounts. */
  readonly guesses: Guesses;
  /** Takes over the limits of a newly loaded policy; counts go on. */
  configure(limits: RateLimits): void;
}

/** The limiter of a process that counts alone: it answers at once. */
export interface OwnLimiter extends Limiter {
  take(bucket: LimitBucket, identity: Identity): LimitResult;
  takeAddress(address: string): LimitResult;
  readonly guesses: OwnGuesses;
}

export interface LimiterOptions {
  readonly limits?: RateLimits;
  readonly perAddress?: number;
  /** Bounds on what is counted at a time; the surplus shares one count. */
  readonly maxSubjects?: number;
  readonly maxAddresses?: number;
}

const KEYS = new WeakMap<Identity, string>();

function keyOf(identity: Identity): string {
  let key = KEYS.get(identity);
  if (key === undefined) {
    key = JSON.stringify([identity.tenant, identity.subject]);
    KEYS.set(identity, key);
  }
  return key;
}

/** Limits within this process. */
export function createLimiter(options: LimiterOptions = {}): OwnLimiter {
  const initial = options.limits ?? DEFAULT_LIMITS;
  const counter = (perSecond: number): WindowCounter =>
    new WindowCounter(perSecond, options.maxSubjects ?? MAX_SUBJECTS);
  const counters: Readonly<Record<LimitBucket, WindowCounter>> = {
    query: counter(initial.query),
    sample: counter(initial.sample),
    schema: counter(initial.schema),
    authoring: counter(initial.authoring),
    catalog: counter(initial.catalog),
  };
  const addresses = new WindowCounter(
    options.perAddress ?? PER_ADDRESS,
    options.maxAddresses ?? MAX_ADDRESSES,
  );
  return Object.freeze({
    take: (bucket: LimitBucket, identity: Identity) => counters[bucket].take(keyOf(identity)),
    takeIfLeft: (bucket: LimitBucket, identity: Identity) => counters[bucket].takeIfLeft(keyOf(identity)),
    takeAddress: (address: string) => addresses.take(addressGroup(address)),
    quotas: createQuotas(),
    guesses: createGuesses(),
    configure: (limits: RateLimits) => {
      for (const bucket of LIMIT_BUCKETS) counters[bucket].perWindow = limits[bucket];
    },
  });
}

/** Counters shared by several processes: a bucket of subjects, or addresses. */
export type LimitCounter = LimitBucket | 'address';

export const LIMIT_COUNTERS: readonly LimitCounter[] = Object.freeze([...LIMIT_BUCKETS, 'address']);

/** Channel from a process to the one that counts for all. */
export interface LimitShare {
  lease(counter: LimitCounter, ...asked: Parameters<AskLease>): Promise<unknown>;
  handBack(counter: LimitCounter, key: string, lease: Lease): void;
  /** Adds to the quotas of all; gives how each stands. */
  charge(charges: readonly Charge[]): Promise<readonly QuotaCount[]>;
  /** Number of processes that count together; null until it is known. */
  peers(): number | null;
  /** The limits that serve from now on. */
  limits(limits: RateLimits): void;
  readonly guesses: Guesses;
}

/** A limiter of one process of several, which lives on leases. */
export interface LeasedLimiter extends Limiter {
  /** Gives up what is not used of a lease. */
  reclaim(counter: LimitCounter, key: string, endsAt: number): number;
}

/** The limits of one process of several that share them. */
export function createLeasedLimiter(share: LimitShare, limits: RateLimits): LeasedLimiter {
  const counter = (name: LimitCounter): LeasedCounter =>
    new LeasedCounter((...asked) => share.lease(name, ...asked));
  const counters: Readonly<Record<LimitCounter, LeasedCounter>> = {
    query: counter('query'),
    sample: counter('sample'),
    schema: counter('schema'),
    authoring: counter('authoring'),
    catalog: counter('catalog'),
    address: counter('address'),
  };
  share.limits(limits);
  return Object.freeze({
    take: (bucket: LimitBucket, identity: Identity) => {
      if (share.peers() === null) throw queryError('limitsUnknown', {});
      return counters[bucket].take(keyOf(identity));
    },
    takeIfLeft: (bucket: LimitBucket, identity: Identity) =>
      share.peers() !== null && counters[bucket].takeIfLeft(keyOf(identity)),
    takeAddress: (address: string) => counters.address.take(addressGroup(address)),
    reclaim: (name: LimitCounter, key: string, endsAt: number) => counters[name].reclaim(key, endsAt),
    quotas: new SharedQuotas({ add: (charges) => share.charge(charges), peers: () => share.peers() ?? 1 }),
    guesses: share.guesses,
    configure: (next: RateLimits) => {
      share.limits(next);
      for (const name of LIMIT_BUCKETS)
        for (const [key, lease] of counters[name].giveUp()) share.handBack(name, key, lease);
    },
  });
}

/** Asks a holder for what it has not used of a lease. */
export type Reclaim = (holder: number, counter: LimitCounter, key: string, endsAt: number) => Promise<number>;

/** Counts for `holders` processes together. */
export function createLimitBooks(
  holders: number,
  reclaim: Reclaim,
): Readonly<Record<LimitCounter, LeaseBook>> {
  const book = (name: LimitCounter, perWindow: number, maxKeys: number): LeaseBook =>
    new LeaseBook({
      perWindow,
      maxKeys,
      holders,
      reclaim: (holder, key, endsAt) => reclaim(holder, name, key, endsAt),
    });
  const bucket = (name: LimitBucket): LeaseBook => book(name, DEFAULT_LIMITS[name], MAX_SUBJECTS);
  return Object.freeze({
    query: bucket('query'),
    sample: bucket('sample'),
    schema: bucket('schema'),
    authoring: bucket('authoring'),
    catalog: bucket('catalog'),
    address: book('address', PER_ADDRESS, MAX_ADDRESSES),
  });
}

/** The defaults with what a policy sets instead. */
export function limitsOf(document: LimitsDocument | undefined): RateLimits {
  const limit = (bucket: LimitBucket): number => document?.[bucket] ?? DEFAULT_LIMITS[bucket];
  return Object.freeze({
    query: limit('query'),
    sample: limit('sample'),
    schema: limit('schema'),
    authoring: limit('authoring'),
    catalog: limit('catalog'),
  });
}
