import { queryError } from 'osl-compiler';
import { LIMIT_BUCKETS, type LimitBucket } from '../document.js';
import type { Identity } from '../identity.js';
import { EntitySetBook, type EntitySets, type SetAddition, type SetResult } from './entity-sets.js';
import { type AskLease, type Lease, LeaseBook, LeasedCounter } from './leases.js';
import {
  addressGroup,
  createPasswordGuesses,
  type LocalPasswordGuesses,
  type PasswordGuesses,
} from './password-guesses.js';
import { type Charge, createQuotas, type QuotaCount, type Quotas } from './quota-counts.js';
import { DEFAULT_LIMITS, perBucket, type RateLimits } from './rates.js';
import { SharedQuotas } from './shared-quotas.js';
import { type LimitResult, WindowCounter } from './window.js';

/** Maximum number of requests per second from one address without a valid token. */
export const PER_ADDRESS = 20;
const MAX_SUBJECTS = 100_000;
const MAX_ADDRESSES = 65_536;

export interface Limiter {
  /**
   * Counts one request of the leaf subject of `identity`; asynchronous if another process counts.
   *
   * @throws QueryError E5038 while the number of processes is unknown
   */
  take(bucket: LimitBucket, identity: Identity): LimitResult | Promise<LimitResult>;
  /** Like `take`, but counts nothing unless it can admit the request immediately. */
  takeIfLeft(bucket: LimitBucket, identity: Identity): boolean;
  /** Counts one unauthenticated request from an IP address, before it is logged. */
  takeAddress(address: string): LimitResult | Promise<LimitResult>;
  /** Quotas on rows, bytes and time, and those with windows longer than a second. */
  readonly quotas: Quotas;
  /** The different entities that callers have been shown. */
  readonly entities: EntitySets;
  /** Limits on password guessing. */
  readonly guesses: PasswordGuesses;
  /** Applies the limits of a new policy; existing counts are kept. */
  configure(limits: RateLimits): void;
}

/** A synchronous limiter for a process that counts by itself. */
export interface LocalLimiter extends Limiter {
  take(bucket: LimitBucket, identity: Identity): LimitResult;
  takeAddress(address: string): LimitResult;
  readonly guesses: LocalPasswordGuesses;
}

export interface LimiterOptions {
  readonly limits?: RateLimits;
  readonly perAddress?: number;
  /** Maximum number of keys counted separately; others share one count. */
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

export function createLimiter(options: LimiterOptions = {}): LocalLimiter {
  const initial = options.limits ?? DEFAULT_LIMITS;
  const counters = perBucket(
    (bucket) => new WindowCounter(initial[bucket], options.maxSubjects ?? MAX_SUBJECTS),
  );
  const addresses = new WindowCounter(
    options.perAddress ?? PER_ADDRESS,
    options.maxAddresses ?? MAX_ADDRESSES,
  );
  return Object.freeze({
    take: (bucket: LimitBucket, identity: Identity) => counters[bucket].take(keyOf(identity)),
    takeIfLeft: (bucket: LimitBucket, identity: Identity) => counters[bucket].takeIfLeft(keyOf(identity)),
    takeAddress: (address: string) => addresses.take(addressGroup(address)),
    quotas: createQuotas(),
    entities: localSets(new EntitySetBook()),
    guesses: createPasswordGuesses(),
    configure: (limits: RateLimits) => {
      for (const bucket of LIMIT_BUCKETS) counters[bucket].perWindow = limits[bucket];
    },
  });
}

function localSets(book: EntitySetBook): EntitySets {
  return Object.freeze({ add: async (additions: readonly SetAddition[]) => book.add(additions) });
}

/** A counter shared by several processes: one of the buckets, or addresses. */
export type LimitCounter = LimitBucket | 'address';

export const LIMIT_COUNTERS: readonly LimitCounter[] = Object.freeze([...LIMIT_BUCKETS, 'address']);

/** The channel to the process that counts for all processes. */
export interface LimitShare {
  lease(counter: LimitCounter, ...asked: Parameters<AskLease>): Promise<unknown>;
  handBack(counter: LimitCounter, key: string, lease: Lease): void;
  /** Adds to the shared quotas and returns their state. */
  charge(charges: readonly Charge[]): Promise<readonly QuotaCount[]>;
  /** Adds to the shared sets as `EntitySets.add` does. */
  addEntities(additions: readonly SetAddition[]): Promise<SetResult>;
  /** The number of processes that count together; null while unknown. */
  peers(): number | null;
  /** Announces new limits. */
  limits(limits: RateLimits): void;
  readonly guesses: PasswordGuesses;
}

/** The limiter in one of several processes, based on leases. */
export interface LeasedLimiter extends Limiter {
  /** Gives up the unused part of a lease. */
  reclaim(counter: LimitCounter, key: string, endsAt: number): number;
}

export function createLeasedLimiter(share: LimitShare, limits: RateLimits): LeasedLimiter {
  const counter = (name: LimitCounter): LeasedCounter =>
    new LeasedCounter((...asked) => share.lease(name, ...asked));
  const counters = { ...perBucket(counter), address: counter('address') };
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
    entities: Object.freeze({ add: (additions: readonly SetAddition[]) => share.addEntities(additions) }),
    guesses: share.guesses,
    configure: (next: RateLimits) => {
      share.limits(next);
      for (const name of LIMIT_BUCKETS)
        for (const [key, lease] of counters[name].giveUp()) share.handBack(name, key, lease);
    },
  });
}

/** Reclaims the unused part of a holder's lease. */
export type Reclaim = (holder: number, counter: LimitCounter, key: string, endsAt: number) => Promise<number>;

/** The lease books for `holders` processes. */
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
  return Object.freeze({
    ...perBucket((name) => book(name, DEFAULT_LIMITS[name], MAX_SUBJECTS)),
    address: book('address', PER_ADDRESS, MAX_ADDRESSES),
  });
}
