import { isIPv4, isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { queryError } from 'osl-compiler';
import { LIMIT_BUCKETS, type LimitBucket } from '../document.js';
import type { Identity } from '../identity.js';
import { type Lease, LeaseBook, LeasedCounter, type RequestLease } from './leases.js';
import {
  type Charge,
  createQuotas,
  EntitySetBook,
  type EntitySets,
  type QuotaCount,
  type Quotas,
  type SetAddition,
  type SetResult,
} from './quota-counts.js';
import { DEFAULT_LIMITS, perBucket, type RateLimits } from './quotas.js';
import { SharedQuotas } from './shared-quotas.js';
import { type LimitResult, WindowCounter } from './window.js';

/** Maximum number of requests per second from one address without a valid token. */
export const PER_ADDRESS = 20;
const MAX_SUBJECTS = 100_000;
const MAX_ADDRESSES = 65_536;

export interface Limiter {
  /**
   * Counts one request by the leaf subject of `identity`; asynchronous if another process does the counting.
   *
   * @throws QueryError E5038 while the number of processes is unknown
   */
  take(bucket: LimitBucket, identity: Identity): LimitResult | Promise<LimitResult>;
  /** Like `take`, but counts nothing and returns false unless it can admit the request immediately. */
  takeIfLeft(bucket: LimitBucket, identity: Identity): boolean;
  /** Counts one unauthenticated request from an IP address, before it is logged. */
  takeAddress(address: string): LimitResult | Promise<LimitResult>;
  /** Quotas of the policy: on rows, bytes, time and other units, and those with windows longer than a second. */
  readonly quotas: Quotas;
  /** Sets of the distinct entities shown to callers, for limits on their number. */
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

/** A counter shared by several processes: a bucket, or `address`, which counts unauthenticated requests by address. */
export type LimitCounter = LimitBucket | 'address';

export const LIMIT_COUNTERS: readonly LimitCounter[] = Object.freeze([...LIMIT_BUCKETS, 'address']);

/** The channel to the process that counts for all processes. */
export interface LimitShare {
  lease(counter: LimitCounter, ...args: Parameters<RequestLease>): Promise<unknown>;
  handBack(counter: LimitCounter, key: string, lease: Lease): void;
  /** Adds to the shared quotas and returns their state. */
  charge(charges: readonly Charge[]): Promise<readonly QuotaCount[]>;
  /** Adds to the shared sets as `EntitySets.add` does. */
  addEntities(additions: readonly SetAddition[]): Promise<SetResult>;
  /** The number of processes that count together; null while unknown. */
  peers(): number | null;
  /** Passes new limits to the process that counts. */
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
    new LeasedCounter((...args) => share.lease(name, ...args));
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

/** Reclaims the unused part of a holder's lease; returns 0 if the holder is gone. */
export type Reclaim = (holder: number, counter: LimitCounter, key: string, endsAt: number) => Promise<number>;

/** Creates the lease books for `holders` processes. */
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

/** Maximum number of wrong passwords per account and address in `ADDRESS_SECONDS`; then the right one fails too. */
const GUESSES_PER_ADDRESS = 10;
const ADDRESS_SECONDS = 300;
/** Maximum number of wrong passwords per account in `ACCOUNT_SECONDS` from addresses that have not logged in before. */
const GUESSES_PER_ACCOUNT = 1_000;
const ACCOUNT_SECONDS = 3_600;
const MAX_COUNTED = 65_536;
const MAX_KNOWN = 10_000;

/**
 * Limits password guessing for service accounts. Beyond the limit, the right password is refused exactly like a wrong
 * one, so further guessing reveals nothing.
 *
 * An account cannot be locked out from elsewhere: for an address from which it has logged in since the start, only the
 * limit of that address applies. One process counts for all processes.
 */
export interface PasswordGuesses {
  /** Counts a wrong password; asynchronous if another process counts. */
  countWrong(account: string, address: string): void | Promise<void>;
  /** True if a right password is accepted; the address is then remembered for this account. */
  acceptsRight(account: string, address: string): boolean | Promise<boolean>;
}

interface LocalPasswordGuesses extends PasswordGuesses {
  countWrong(account: string, address: string): void;
  acceptsRight(account: string, address: string): boolean;
}

export interface GuessOptions {
  readonly perAddress?: number;
  readonly perAccount?: number;
  /** Maximum number of account and address pairs counted separately; others share one count. */
  readonly maxCounted?: number;
}

export function createPasswordGuesses(options: GuessOptions = {}): LocalPasswordGuesses {
  const {
    perAddress = GUESSES_PER_ADDRESS,
    perAccount = GUESSES_PER_ACCOUNT,
    maxCounted = MAX_COUNTED,
  } = options;
  const verifiedPairs = new LRUCache<string, true>({ max: MAX_KNOWN });
  const verifiedCounts = new WindowCounter(perAddress, MAX_KNOWN, ADDRESS_SECONDS);
  const otherCounts = new WindowCounter(perAddress, maxCounted, ADDRESS_SECONDS);
  const accountCounts = new WindowCounter(perAccount, MAX_COUNTED, ACCOUNT_SECONDS);
  const pairOf = (account: string, address: string): string =>
    JSON.stringify([account, addressGroup(address)]);
  return Object.freeze({
    countWrong(account: string, address: string) {
      const pair = pairOf(account, address);
      if (verifiedPairs.get(pair) === true) verifiedCounts.take(pair);
      // A guess beyond the pair's limit could not succeed, so it does not count against the account.
      else if (otherCounts.take(pair).ok) accountCounts.take(account);
    },
    acceptsRight(account: string, address: string) {
      const pair = pairOf(account, address);
      if (verifiedPairs.get(pair) === true) return !verifiedCounts.isSpent(pair);
      if (otherCounts.isSpent(pair) || accountCounts.isSpent(account)) return false;
      verifiedPairs.set(pair, true);
      return true;
    },
  });
}

/**
 * Groups addresses for rate limits: IPv4 addresses individually, IPv6 by /64, because a single household has 2⁶⁴
 * addresses. An IPv4-mapped IPv6 address is treated as IPv4. Anything else (a Unix socket) is treated as one peer.
 */
export function addressGroup(address: string): string {
  const bare = address.split('%', 1)[0] ?? '';
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return 'local';
  const groups = expand(bare);
  const [g0, g1, g2, g3, g4, g5, g6 = 0, g7 = 0] = groups;
  const zeros = [g0, g1, g2, g3, g4].every((g) => g === 0);
  if (zeros && g5 === 0xffff) return [g6 >> 8, g6 & 0xff, g7 >> 8, g7 & 0xff].join('.');
  return `${groups
    .slice(0, 4)
    .map((g) => g.toString(16))
    .join(':')}::/64`;
}

/** The eight 16-bit groups of a valid IPv6 address. The URL parser normalises it, including dotted tails. */
function expand(address: string): readonly number[] {
  const normal = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = normal.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].map((g) => Number.parseInt(g, 16));
}
