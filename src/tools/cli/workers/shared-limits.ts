import {
  createGuesses,
  createLimitBooks,
  LIMIT_BUCKETS,
  LIMIT_COUNTERS,
  QuotaBook,
} from '../../../../policy/index.js';
import type { OfSupervisor } from './messages.js';
import type { Handlers } from './peer.js';
import type { ToWorker } from './slot.js';

type Asked = 'lease' | 'charge' | 'handBack' | 'limits' | 'wrongPassword' | 'rightPassword';

/** The limits and the guesses of all workers, counted here. */
export class SharedLimits {
  readonly #books;
  readonly #quotas = new QuotaBook();
  readonly #guesses = createGuesses();
  #known = false;

  /** @param peerOf the channel to a worker that serves; null where none does */
  constructor(workers: number, peerOf: (worker: number) => ToWorker | null) {
    this.#books = createLimitBooks(workers, async (holder, counter, key, endsAt) => {
      // One that ends now takes with it what it has not used.
      const unused = peerOf(holder)?.ask('reclaim', { counter, key, endsAt });
      return (await unused?.catch(() => 0)) ?? 0;
    });
  }

  /** What a worker may ask. One that does not serve yet may have read files that nobody else has taken up. */
  handlers(worker: number, serves: () => boolean): Pick<Handlers<OfSupervisor>, Asked> {
    return {
      lease: ({ counter, key }) => this.#books[counter].lease(key, worker),
      charge: ({ charges }) => charges.map((charge) => this.#quotas.add(charge)),
      handBack: ({ counter, key, tokens, endsAt }) => {
        this.#books[counter].handBack(key, { tokens, endsAt });
        return null;
      },
      limits: (limits) => {
        if (serves() || !this.#known)
          for (const bucket of LIMIT_BUCKETS) this.#books[bucket].perWindow = limits[bucket];
        this.#known = true;
        return null;
      },
      wrongPassword: ({ account, address }) => {
        this.#guesses.wrong(account, address);
        return null;
      },
      rightPassword: ({ account, address }) => this.#guesses.right(account, address),
    };
  }

  /** A worker has ended. */
  forget(worker: number): void {
    for (const counter of LIMIT_COUNTERS) this.#books[counter].forget(worker);
  }
}
