import { createHash, randomUUID } from 'node:crypto';
import { queryError } from 'osl-compiler';
import {
  type Charge,
  type Lease,
  type LimitCounter,
  type LimitShare,
  monotonicMs,
  type PasswordGuesses,
  PER_ADDRESS,
  type QuotaCount,
  type RateLimits,
  type SetAddition,
  type SetResult,
} from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import { within } from '../../base/serial.js';
import { messageOf } from '../../base/thrown.js';

interface SharedCountsOptions {
  readonly tenant: string;
  readonly log: ServiceLog;
}

/** Time limit in ms for the store to answer a request. */
const PATIENCE_MS = 1_000;
/** Pause in ms after a failure, during which requests do not wait for the store. */
const REST_MS = 5_000;
const BEAT_MS = 2_000;
const BEAT_PATIENCE_MS = 8_000;
const START_MS = 3_000;
const MAX_KEYS = 100_000;

/**
 * Rate limits counted in a store shared by several processes. While it does not answer, each process enforces its own
 * share: the limit divided by the last known number of processes.
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
  /** The rest of this process's own share, by key. */
  readonly #own = new Map<string, Lease>();

  private constructor(store: CountStore, { tenant, log }: SharedCountsOptions) {
    this.#store = store;
    this.#tenant = tenant;
    this.#log = log;
    this.#beat = setInterval(() => void this.#sayHere(), BEAT_MS).unref();
  }

  /** Resolves after the store's first answer or a timeout; after a timeout, `heard` is false until it answers. */
  static async join(store: CountStore, options: SharedCountsOptions): Promise<SharedCounts> {
    const counts = new SharedCounts(store, options);
    await within(counts.#sayHere(), START_MS).catch(() => undefined);
    return counts;
  }

  /** True once the store has answered, so that the number of processes is known. */
  get heard(): boolean {
    return this.#heard;
  }

  /** Returns the adapter through which a limiter uses the shared store; `guesses` are not counted in the store. */
  share(guesses: PasswordGuesses): LimitShare {
    return {
      guesses,
      lease: (counter, key, arrived) => this.#lease(counter, key, arrived),
      // Unused tokens of the store expire within a second; those of the own share would be missing until then.
      handBack: (counter, key, lease) => this.#takeBack(this.#keyOf(JSON.stringify([counter, key])), lease),
      charge: (charges) => this.#charge(charges),
      addEntities: (additions) => this.#addEntities(additions),
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

  /** A part for each process would not do: sets of several processes may overlap. @throws QueryError E5038 */
  async #addEntities(additions: readonly SetAddition[]): Promise<SetResult> {
    const keyed = additions.map((addition) => ({ ...addition, key: this.#keyOf(addition.key) }));
    try {
      return await this.#inTime(() => this.#store.addEntities(keyed));
    } catch {
      throw queryError('entitiesUnknown', {}); // `#inTime` has logged the cause
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#beat);
    await this.#store.close();
  }

  /** A hashed key, so that the store does not reveal subjects. */
  #keyOf(key: string): string {
    return createHash('sha256')
      .update(JSON.stringify([this.#tenant, key]))
      .digest('base64url');
  }

  #ownLease(key: string, most: number): Lease {
    const now = monotonicMs();
    const known = this.#own.get(key);
    if (known !== undefined && known.endsAt > now) {
      this.#own.set(key, { tokens: 0, endsAt: known.endsAt });
      return known;
    }
    for (const [old, { endsAt }] of this.#own) {
      if (endsAt > now && this.#own.size < MAX_KEYS) break;
      this.#own.delete(old);
    }
    const lease = { tokens: Math.max(1, Math.floor(most / this.#peers)), endsAt: now + SECOND_MS };
    this.#own.delete(key);
    this.#own.set(key, { tokens: 0, endsAt: lease.endsAt }); // the whole share is granted at once
    return lease;
  }

  #takeBack(key: string, { tokens, endsAt }: Lease): void {
    if (this.#own.get(key)?.endsAt === endsAt) this.#own.set(key, { tokens, endsAt });
  }

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

  /** Logs only when the store starts to fail or answers again. */
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

/** A batch of leased quota; 0 means that nothing is left until the window ends. */
export interface Portion {
  readonly tokens: number;
  readonly endsInMs: number;
}

/** A store of counts by hashed key. Methods reject if it does not answer in time. */
export interface CountStore {
  /** Leases part of what is left of `most` in the one-second window of `key`, which starts at its first use. */
  lease(key: string, most: number): Promise<Portion>;
  /** Adds to counts and returns their new values in order. */
  add(charges: readonly Charge[]): Promise<readonly QuotaCount[]>;
  /** Adds to sets as `EntitySets.add` does. */
  addEntities(additions: readonly SetAddition[]): Promise<SetResult>;
  /** Sends a heartbeat of process `id`. Returns the number of live processes. */
  here(id: string): Promise<number>;
  close(): Promise<void>;
}

/** A lease takes 1/`PART` of the remaining quota, so that some is left for other processes. */
export const PART = 8;
/** Window of leased limits in ms. */
export const SECOND_MS = 1_000;
/** Time in ms without a heartbeat after which a process is considered gone. */
export const GONE_MS = 10_000;
