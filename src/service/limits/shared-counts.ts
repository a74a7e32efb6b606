import { createHash, randomUUID } from 'node:crypto';
import {
  type Charge,
  type Guesses,
  type Lease,
  type LimitCounter,
  type LimitShare,
  monotonicMs,
  PER_ADDRESS,
  type QuotaCount,
  type RateLimits,
} from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import { within } from '../../base/serial.js';
import { messageOf } from '../../base/thrown.js';

export interface SharedCountsOptions {
  readonly tenant: string;
  readonly log: ServiceLog;
}

/** How long a request may wait for the store, ms. */
const PATIENCE_MS = 1_000;
/** After it did not answer, requests do not wait for it for so long, ms. */
const REST_MS = 5_000;
/** Between two times that this process says that it is there, ms. */
const BEAT_MS = 2_000;
/** How long the store may take to note that, ms. */
const BEAT_PATIENCE_MS = 8_000;
/** A start waits for the store for so long. ms */
const START_MS = 3_000;
const MAX_KEYS = 100_000;

/**
 * One process among those that count in a store. Where that does not answer, this one counts for itself: of each limit it
 * lets through the part that falls to it of as many processes as there were when the store last answered.
 */
export class SharedCounts {
  readonly #store: CountStore;
  readonly #tenant: string;
  readonly #log: ServiceLog;
  readonly #id = randomUUID();
  readonly #beat: NodeJS.Timeout;
  #limits: RateLimits | null = null;
  #peers = 1;
  #failedAt = Number.NEGATIVE_INFINITY;
  #failing = false;
  #heard = false;
  #saying = false;
  /** Of windows that this process counts by itself. */
  readonly #own = new Map<string, Lease>();

  private constructor(store: CountStore, { tenant, log }: SharedCountsOptions) {
    this.#store = store;
    this.#tenant = tenant;
    this.#log = log;
    this.#beat = setInterval(() => void this.#sayHere(), BEAT_MS).unref();
  }

  /** Resolves once the store has answered, or has not in time: then `heard` is false until it does. */
  static async join(store: CountStore, options: SharedCountsOptions): Promise<SharedCounts> {
    const counts = new SharedCounts(store, options);
    await within(counts.#sayHere(), START_MS).catch(() => undefined);
    return counts;
  }

  /** True once the store has answered: from then on it is known of how many processes this is one. */
  get heard(): boolean {
    return this.#heard;
  }

  /** As a limiter asks it, with guesses that are counted elsewhere. */
  share(guesses: Guesses): LimitShare {
    return {
      guesses,
      lease: (counter, key, arrived) => this.#lease(counter, key, arrived),
      // What is left of a second ends with it.
      handBack: () => undefined,
      charge: (charges) => this.#charge(charges),
      peers: () => (this.#heard ? this.#peers : null),
      limits: (limits) => {
        this.#limits = limits;
      },
    };
  }

  async #lease(counter: LimitCounter, key: string, arrived: (lease: Lease) => void): Promise<void> {
    const most = counter === 'address' ? PER_ADDRESS : (this.#limits?.[counter] ?? 0);
    const asked = this.#keyOf(JSON.stringify([counter, key]));
    const portion = await this.#inTime(() => this.#store.lease(asked, most)).catch(() => null);
    if (portion === null) arrived(this.#ownLease(asked, most));
    else arrived({ tokens: portion.tokens, endsAt: monotonicMs() + portion.endsInMs });
  }

  async #charge(charges: readonly Charge[]): Promise<readonly QuotaCount[]> {
    const keyed = charges.map((charge) => ({ ...charge, key: this.#keyOf(charge.key) }));
    return this.#inTime(() => this.#store.add(keyed));
  }

  async close(): Promise<void> {
    clearInterval(this.#beat);
    await this.#store.close();
  }

  /** Counts say nothing of whom they count. */
  #keyOf(key: string): string {
    return createHash('sha256')
      .update(JSON.stringify([this.#tenant, key]))
      .digest('base64url');
  }

  #ownLease(key: string, most: number): Lease {
    const now = monotonicMs();
    const known = this.#own.get(key);
    // It was lent whole: what is asked for again is spent.
    if (known !== undefined && known.endsAt > now) return { tokens: 0, endsAt: known.endsAt };
    for (const [old, { endsAt }] of this.#own) {
      if (endsAt > now && this.#own.size < MAX_KEYS) break;
      this.#own.delete(old);
    }
    const lease = { tokens: Math.max(1, Math.floor(most / this.#peers)), endsAt: now + SECOND_MS };
    this.#own.delete(key);
    this.#own.set(key, lease);
    return lease;
  }

  /** What the store says, if it does so in time. */
  async #inTime<T>(work: () => Promise<T>): Promise<T> {
    if (monotonicMs() - this.#failedAt < REST_MS)
      throw new Error('the store of limits did not answer a moment ago');
    try {
      const found = await within(work(), PATIENCE_MS);
      this.#failedAt = Number.NEGATIVE_INFINITY;
      this.#tell(null);
      return found;
    } catch (error) {
      this.#failedAt = monotonicMs();
      this.#tell(error);
      throw error;
    }
  }

  async #sayHere(): Promise<void> {
    if (this.#saying) return;
    this.#saying = true;
    try {
      this.#peers = await within(this.#store.here(this.#id), BEAT_PATIENCE_MS);
      if (!this.#heard) this.#tell(null);
      this.#heard = true;
    } catch (error) {
      this.#tell(error);
    } finally {
      this.#saying = false;
    }
  }

  /** The operator hears when it begins and when it ends. */
  #tell(error: unknown): void {
    const failing = error !== null;
    if (failing === this.#failing) return;
    this.#failing = failing;
    if (!failing) this.#log.warn('the store of limits answers again');
    else if (!this.#heard)
      this.#log.error(
        'the store of limits has not answered yet: every request is refused (E5038) until it does',
        {
          error: messageOf(error),
        },
      );
    else
      this.#log.warn('the store of limits does not answer: each process counts its own part', {
        error: messageOf(error),
        processes: this.#peers,
      });
  }
}

/** Some uses of a limit of a second; none: nothing is left until its window ends. */
export interface Portion {
  readonly tokens: number;
  readonly endsInMs: number;
}

/**
 * Where gateways keep their counts together. Keys say nothing of whom they count. Every method rejects where the store
 * does not answer in time.
 */
export interface CountStore {
  /** Takes a part of what is left of `most` in the second of `key`, which begins with the first that asks. */
  lease(key: string, most: number): Promise<Portion>;
  /** Adds to counts; gives how each stands, in their order. */
  add(charges: readonly Charge[]): Promise<readonly QuotaCount[]>;
  /** Says that process `id` is there. Gives how many are, that one among them. */
  here(id: string): Promise<number>;
  close(): Promise<void>;
}

/** Of what is left one process takes such a part at a time that several others find some too. */
export const PART = 8;
/** The windows that are lent in portions, ms. */
export const SECOND_MS = 1_000;
/** Who has said nothing for so long has gone, ms. */
export const GONE_MS = 10_000;
