import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { emit, type GovernedPlan, type GovernedStore, relationsRead, stored } from 'osl-compiler';
import type { PermittedCounts, RuntimeInput, WordCounter, WordCounts } from '../parts.js';
import { slotValues } from './slot-values.js';
import { step } from './step.js';

/**
 * Cache lifetime in ms. It is bounded because entities change without a new epoch, and a failover resets transaction
 * ids.
 */
const TRUST_MS = 60_000;
const MAX_SETS = 2_000;

interface CachedSetSize {
  readonly epoch: string;
  readonly until: number;
  readonly isMany: boolean;
}

/**
 * Decides whether a caller may see many passages of a store or only a few, by counting permitted passages up to a
 * limit. An outdated result costs time or some recall, never a row.
 */
export class PermittedSets implements PermittedCounts {
  readonly #limit: number;
  readonly #answers = new LRUCache<string, CachedSetSize>({ max: MAX_SETS });

  /** @param limit largest number of passages that are compared one by one */
  constructor(limit: number) {
    this.#limit = limit;
  }

  async areMany(countPlan: GovernedPlan, epoch: string, input: RuntimeInput): Promise<boolean> {
    const args = new Map([['limit', String(this.#limit + 1)]]);
    const key = keyOf(countPlan, args, input);
    const cached = this.#answers.get(key);
    if (cached !== undefined && cached.epoch === epoch && cached.until > Date.now()) return cached.isMany;
    const { rows } = await step(countPlan, args, input, 1);
    const isMany = Number(rows[0]?.get('count') ?? 0) > this.#limit;
    this.#answers.set(key, { epoch, until: Date.now() + TRUST_MS, isMany });
    return isMany;
  }
}

/** Returns a hash of the statement and all its values, including those of the policy. */
function keyOf(plan: GovernedPlan, args: ReadonlyMap<string, string>, input: RuntimeInput): string {
  const { sql, slots } = emit(plan);
  const hash = createHash('sha256').update(`${plan.connector} ${sql}`);
  for (const { format, bytes } of slotValues(slots, args, input)) {
    hash.update(bytes === null ? 'null' : `${format} ${bytes.length} `).update(bytes ?? '');
  }
  return hash.digest('base64');
}

type StoreCounts = NonNullable<GovernedStore['counts']>;

const MAX_WORDS = 500_000;

interface CachedCounts {
  readonly snapshot: string;
  readonly until: number;
  readonly documents: number;
  readonly frequencies: ReadonlyMap<number, number>;
}

/**
 * For each word of a query, counts the permitted passages that contain it. Cached counts are used if known to be
 * current: the statement, values and store epoch are the same, no transaction has begun or ended since, and only
 * transactions can change the tables. `confirm` checks again against the passages found. If a standby may answer,
 * nothing is cached: its `pg_snapshot` omits the transactions in progress, so two of its states may have the same
 * one.
 */
export class PermittedWords implements WordCounter {
  readonly #sets = new LRUCache<string, CachedCounts>({
    maxSize: MAX_WORDS,
    sizeCalculation: ({ frequencies }) => 1 + frequencies.size,
  });
  /** The newest `pg_snapshot` seen on the primary, by connector; null if unknown. */
  readonly #newest = new Map<string | null, string | null>();

  async count(
    counts: StoreCounts,
    terms: readonly number[],
    epoch: string,
    input: RuntimeInput,
  ): Promise<WordCounts> {
    const key = `${epoch} ${keyOf(counts.whole, NO_WORDS, input)}`;
    const cached = this.#usable(key, counts.whole, input);
    if (cached !== null && terms.every((term) => cached.frequencies.has(term)))
      return { ...cached, key, isCached: true };
    if (cached !== null) {
      const added = await countWords(counts.ofWords, terms, input);
      const frequencies = new Map([...cached.frequencies, ...added.frequencies]);
      if (added.snapshot === cached.snapshot) return { ...cached, frequencies, key, isCached: false };
    }
    const { documents, ...counted } = await countWords(counts.whole, terms, input);
    return { ...counted, documents, key, isCached: false };
  }

  confirm(
    facet: string,
    counts: StoreCounts,
    counted: WordCounts,
    foundSnapshot: string | null,
    input: RuntimeInput,
  ): boolean {
    const { snapshot, key } = counted;
    if (readsPrimary(input)) this.#newest.set(counts.whole.connector, foundSnapshot);
    if (counted.isCached) {
      if (foundSnapshot !== snapshot) this.#sets.delete(key);
      return foundSnapshot === snapshot;
    }
    if (snapshot !== null && foundSnapshot === snapshot && counts.timeless && readsPrimary(input))
      this.#store(facet, counts.whole, { ...counted, snapshot }, input);
    return true;
  }

  #usable(key: string, plan: GovernedPlan, input: RuntimeInput): CachedCounts | null {
    const cached = this.#sets.get(key);
    if (cached === undefined || !readsPrimary(input)) return null;
    return cached.until > Date.now() && cached.snapshot === this.#newest.get(plan.connector) ? cached : null;
  }

  /** Caches counts that are still current, in the background, so that the answer does not wait for the check. */
  #store(
    facet: string,
    plan: GovernedPlan,
    { key, snapshot, documents, frequencies }: WordCounts & { readonly snapshot: string },
    input: RuntimeInput,
  ): void {
    const store = (settledAt: string | null): void => {
      if (settledAt !== snapshot) return;
      this.#sets.set(key, { snapshot, documents, frequencies, until: Date.now() + TRUST_MS });
    };
    // If the check fails, nothing is cached.
    input.parts.content.settledAt(facet, relationsRead(plan.query)).then(store, () => undefined);
  }
}

/** True if every statement reads the newest state of the primary. */
function readsPrimary({ snapshots, standby }: RuntimeInput): boolean {
  return snapshots === null && standby.reads === null;
}

const NO_WORDS: ReadonlyMap<string, string> = new Map([
  ['words', ''],
  ['terms', ''],
]);

async function countWords(plan: GovernedPlan, terms: readonly number[], input: RuntimeInput) {
  const args = new Map([
    ['words', JSON.stringify(terms.map((term) => ({ word: term, term: [term] })))],
    ['terms', `{${terms.join(',')}}`],
  ]);
  const { rows } = await step(plan, args, input, terms.length);
  const frequencies = new Map(rows.map((r) => [Number(r.get('word')), Number(r.get('count'))]));
  const [first] = rows;
  return {
    documents: Number(first?.get('documents') ?? 0),
    frequencies,
    snapshot: first?.get(stored('snapshot')) ?? null,
  };
}
