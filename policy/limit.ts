import { addressGroup } from './address.js';
import type { LimitsDocument } from './document.js';
import { createGuesses, type Guesses } from './guesses.js';
import type { Identity } from './identity.js';
import { type Limited, WindowCounter } from './window.js';

/** Requests a second of one subject of a tenant. */
export type Limits = Readonly<Record<LimitBucket, number>>;

export type LimitBucket = 'query' | 'sample' | 'schema' | 'authoring' | 'catalog';

export const LIMIT_BUCKETS: readonly LimitBucket[] = Object.freeze([
  'query',
  'sample',
  'schema',
  'authoring',
  'catalog',
]);

/**
 * The contract's intended defaults; `authoring` (drafts and what is published) and `catalog` (statements of BI tools
 * about the catalog) are ours.
 */
export const DEFAULT_LIMITS: Limits = Object.freeze({
  query: 60,
  sample: 30,
  schema: 5,
  authoring: 5,
  catalog: 200,
});

/** Requests a second of one address that sends no valid token. */
const PER_ADDRESS = 20;
const MAX_SUBJECTS = 100_000;
const MAX_ADDRESSES = 65_536;

export interface Limiter {
  /** Counts one request of the leaf subject of `identity` against `bucket`. */
  take(bucket: LimitBucket, identity: Identity): Limited;
  /** Counts one unauthenticated request of a peer (an IP address as text), before it reaches the log. */
  takeAddress(address: string): Limited;
  /** Of the passwords of service accounts. */
  readonly guesses: Guesses;
  /** Takes over the limits of a newly loaded policy; counts go on. */
  configure(limits: Limits): void;
}

export interface LimiterOptions {
  readonly limits?: Limits;
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

/** Limits within this process. Several gateways need a shared store behind the same interface. */
export function createLimiter(options: LimiterOptions = {}): Limiter {
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
    takeAddress: (address: string) => addresses.take(addressGroup(address)),
    guesses: createGuesses(),
    configure: (limits: Limits) => {
      for (const bucket of LIMIT_BUCKETS) counters[bucket].perWindow = limits[bucket];
    },
  });
}

/** The defaults with what a policy sets instead. */
export function limitsOf(document: LimitsDocument | undefined): Limits {
  return Object.freeze({ ...DEFAULT_LIMITS, ...document });
}
