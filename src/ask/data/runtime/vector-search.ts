import { type GovernedPlan, type GovernedStore, type StoredName, stored } from 'osl-compiler';
import type { RuntimeInput } from '../parts.js';
import type { PageValues } from './page.js';
import type { TextRow } from './step.js';
import { step } from './step.js';

/** Number of candidates in a search by signs (binary quantization): minimum, per wanted passage, and maximum. */
const BY_SIGNS = { least: 1_000, each: 40, most: 40_000 };
/** Number of candidates in an index search. If fewer are found, hidden passages used up the index's scan budget. */
const BY_INDEX = { least: 100, each: 4 };

/**
 * The passages nearest to `vector` (in pgvector's text format), best first: exactly min(`topK`, permitted − `skip`).
 * The search method depends only on the number of permitted passages.
 */
export async function nearest(
  store: GovernedStore,
  vector: string,
  page: PageValues,
  epoch: string,
  input: RuntimeInput,
): Promise<readonly TextRow[]> {
  const search = new NearestSearch(vector, page, input);
  const steps = store.nearest;
  if (steps !== null && (await input.parts.permitted.areMany(steps.some, epoch, input))) {
    const found = (await search.byIndex(steps.byIndex)) ?? (await search.bySigns(steps.bySigns));
    if (found !== null) return found;
  }
  return search.run(store.passages);
}

class NearestSearch {
  readonly #vector: string;
  readonly #page: PageValues;
  /** `skip` + `topK`. */
  readonly #k: number;
  readonly #input: RuntimeInput;

  constructor(vector: string, page: PageValues, input: RuntimeInput) {
    this.#vector = vector;
    this.#page = page;
    this.#k = page.skip + page.topK;
    this.#input = input;
  }

  async run(plan: GovernedPlan, candidates = 0): Promise<readonly TextRow[]> {
    const given = new Map([
      ['vector', this.#vector],
      ['limit', String(this.#page.topK)],
      ['offset', String(this.#page.skip)],
      ['candidates', String(candidates)],
    ]);
    return (await step(plan, given, this.#input, this.#page.topK)).rows;
  }

  /** Searches with the index; null if it returned too few candidates, since permitted passages would be missing. */
  async byIndex(plan: GovernedPlan | null): Promise<readonly TextRow[] | null> {
    if (plan === null) return null;
    const wanted = Math.max(BY_INDEX.least, BY_INDEX.each * this.#k);
    const best = await this.run(plan, wanted);
    return numberIn(best[0], 'candidates') >= wanted && !this.#lacks(best) ? best : null;
  }

  /** True if the candidates belong to fewer documents than wanted. */
  #lacks(best: readonly TextRow[]): boolean {
    return this.#page.ofDocuments && best.length < this.#page.topK;
  }

  /** Searches by the signs of the vectors; null if a passage outside the candidates could be among the best. */
  async bySigns(plan: GovernedPlan): Promise<readonly TextRow[] | null> {
    const { least, each, most } = BY_SIGNS;
    const wanted = Math.max(least, Math.min(each * this.#k, most), this.#k);
    const best = await this.run(plan, wanted);
    const [first] = best;
    // Without rows there are no candidates, so nothing can be missing.
    if (first === undefined && !this.#page.ofDocuments) return best;
    if (first !== undefined && numberIn(first, 'candidates') < wanted) return best;
    if (this.#lacks(best)) return null;
    const far = farSigns(numberIn(best.at(-1), 'distance'), this.#vector.split(',').length);
    return far <= numberIn(first, 'farthest') ? best : null;
  }
}

function numberIn(row: TextRow | undefined, name: StoredName): number {
  return Number(row?.get(stored(name)) ?? Number.NaN);
}

/** Tolerance in standard deviations; see `farSigns`. */
const STRAY = 2.5;

/**
 * Upper bound (99 %) for the number of signs that differ between two vectors with this cosine distance. Each sign
 * differs with probability angle / π.
 */
function farSigns(distance: number, width: number): number {
  const p = Math.acos(Math.min(1, Math.max(-1, 1 - distance))) / Math.PI;
  return width * p + STRAY * Math.sqrt(width * p * (1 - p));
}
