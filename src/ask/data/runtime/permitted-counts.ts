import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { emit, type GovernedPlan, type GovernedStore, relationsRead, stored } from 'osl-compiler';
import type { CountedWords, PermittedCounts, RuntimeInput, WordCounter } from '../parts.js';
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
  readonly many: boolean;
}

/**
 * Decides whether a caller may see many passages of a store or only a few, by counting permitted passages up to a
 * limit. An outdated result costs time or some recall, never a row.
 */
export class PermittedSets implements PermittedCounts {
  readonly #few: number;
  readonly #answers = new LRUCache<string, CachedSetSize>({ max: MAX_SETS });

  /** @param few largest number of passages that are compared one by one */
  constructor(few: number) {
    this.#few = few;
  }

  async areMany(some: GovernedPlan, epoch: string, input: RuntimeInput): Promise<boolean> {
    const given = new Map([['limit', String(this.#few + 1)]]);
    const key = keyOf(some, given, input);
    const known = this.#answers.get(key);
    if (known !== undefined && known.epoch === epoch && known.until > Date.now()) return known.many;
    const { rows } = await step(some, given, input, 1);
    const many = Number(rows[0]?.get('count') ?? 0) > this.#few;
    this.#answers.set(key, { epoch, until: Date.now() + TRUST_MS, many });
    return many;
  }
}

/** Returns a hash of the statement and all its values, including those of the policy. */
function keyOf(plan: GovernedPlan, given: ReadonlyMap<string, string>, input: RuntimeInput): string {
  const { sql, slots } = emit(plan);
  const hash = createHash('sha256').update(`${plan.connector} ${sql}`);
  for (const { format, bytes } of slotValues(slots, given, input)) {
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
 * transactions can change the tables. `holds` checks again against the passages found. If a standby may answer, nothing
 * is cached: its `pg_snapshot` omits the transactions in progress, so two of its states may have the same one.
 */
export class PermittedWords implements WordCounter {
  readonly #sets = new LRUCache<string, CachedCounts>({
    maxSize: MAX_WORDS,
    sizeCalculation: ({ frequencies }) => 1 + frequencies.size,
  });
  /** The newest `pg_snapshot` seen on the primary, by connector; null if unknown. */
  readonly #seen = new Map<string | null, string | null>();

  async of(
    counts: StoreCounts,
    terms: readonly number[],
    epoch: string,
    input: RuntimeInput,
  ): Promise<CountedWords> {
    const key = `${epoch} ${keyOf(counts.whole, NO_WORDS, input)}`;
    const kept = this.#usable(key, counts.whole, input);
    if (kept !== null && terms.every((term) => kept.frequencies.has(term)))
      return { ...kept, key, isKept: true };
    if (kept !== null) {
      const more = await counted(counts.ofWords, terms, input);
      const frequencies = new Map([...kept.frequencies, ...more.frequencies]);
      if (more.snapshot === kept.snapshot) return { ...kept, frequencies, key, isKept: false };
    }
    const { documents, ...found } = await counted(counts.whole, terms, input);
    return { ...found, documents, key, isKept: false };
  }

  holds(
    facet: string,
    counts: StoreCounts,
    found: CountedWords,
    seen: string | null,
    input: RuntimeInput,
  ): boolean {
    const { snapshot, key } = found;
    if (isOfPrimary(input)) this.#seen.set(counts.whole.connector, seen);
    if (found.isKept) {
      if (seen !== snapshot) this.#sets.delete(key);
      return seen === snapshot;
    }
    if (snapshot !== null && seen === snapshot && counts.timeless && isOfPrimary(input))
      this.#keep(facet, counts.whole, { ...found, snapshot }, input);
    return true;
  }

  #usable(key: string, plan: GovernedPlan, input: RuntimeInput): CachedCounts | null {
    const kept = this.#sets.get(key);
    if (kept === undefined || !isOfPrimary(input)) return null;
    return kept.until > Date.now() && kept.snapshot === this.#seen.get(plan.connector) ? kept : null;
  }

  /** Caches counts that are still current, in the background, so that the answer does not wait for the check. */
  #keep(
    facet: string,
    plan: GovernedPlan,
    { key, snapshot, documents, frequencies }: CountedWords & { readonly snapshot: string },
    input: RuntimeInput,
  ): void {
    const keep = (settledAt: string | null): void => {
      if (settledAt !== snapshot) return;
      this.#sets.set(key, { snapshot, documents, frequencies, until: Date.now() + TRUST_MS });
    };
    // If the check fails, nothing is cached.
    input.parts.content.settledAt(facet, relationsRead(plan.query)).then(keep, () => undefined);
  }
}

/** True if every statement reads the newest state of the primary. */
function isOfPrimary({ snapshots, standby }: RuntimeInput): boolean {
  return snapshots === null && standby.reads === null;
}

const NO_WORDS: ReadonlyMap<string, string> = new Map([
  ['words', ''],
  ['terms', ''],
]);

async function counted(plan: GovernedPlan, terms: readonly number[], input: RuntimeInput) {
  const given = new Map([
    ['words', JSON.stringify(terms.map((term) => ({ word: term, term: [term] })))],
    ['terms', `{${terms.join(',')}}`],
  ]);
  const { rows } = await step(plan, given, input, terms.length);
  const frequencies = new Map(rows.map((r) => [Number(r.get('word')), Number(r.get('count'))]));
  const [first] = rows;
  return {
    documents: Number(first?.get('documents') ?? 0),
    frequencies,
    snapshot: first?.get(stored('snapshot')) ?? null,
  };
}
