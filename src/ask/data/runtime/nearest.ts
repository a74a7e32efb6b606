import { arrayText, type GovernedPlan, type GovernedStore, stored } from 'osl-compiler';
import type { TextRow } from '../collect.js';
import type { RuntimeInput } from '../parts.js';
import { step } from './step.js';

/** Candidates of a search by signs, at least and for each passage that is wanted. */
const BY_SIGNS = { least: 1_000, each: 40 };
/** Candidates of a search by index, likewise. If it finds fewer, its visit budget was spent on what may not be seen. */
const BY_INDEX = { least: 100, each: 4 };

/**
 * The passages nearest to `vector` (pgvector's text), best first: exactly min(k, permitted) of them, by the lane for
 * so many permitted passages. Which lane that is depends on permitted passages alone.
 */
export async function nearest(
  store: GovernedStore,
  vector: string,
  k: number,
  epoch: string,
  input: RuntimeInput,
): Promise<readonly TextRow[]> {
  const search = new Search(vector, input);
  const steps = store.nearest;
  if (steps !== null && (await input.parts.permitted.areMany(steps.some, epoch, input))) {
    const found =
      (await search.byIndex(steps.byIndex, steps.among, k)) ??
      (await search.bySigns(steps.bySigns, steps.among, k));
    if (found !== null) return found;
  }
  return search.run(store.passages, k);
}

class Search {
  readonly #vector: string;
  readonly #input: RuntimeInput;

  constructor(vector: string, input: RuntimeInput) {
    this.#vector = vector;
    this.#input = input;
  }

  async run(plan: GovernedPlan, limit: number, chunks = '{}'): Promise<readonly TextRow[]> {
    const given = new Map([
      ['vector', this.#vector],
      ['limit', String(limit)],
      ['chunks', chunks],
    ]);
    return (await step(plan, given, this.#input, limit)).rows;
  }

  /** Null where the index brought too few: its answer would miss passages that may be seen. */
  async byIndex(
    plan: GovernedPlan | null,
    among: GovernedPlan,
    k: number,
  ): Promise<readonly TextRow[] | null> {
    if (plan === null) return null;
    const wanted = Math.max(BY_INDEX.least, BY_INDEX.each * k);
    const candidates = await this.run(plan, wanted);
    return candidates.length < wanted ? null : this.#best(among, candidates, k);
  }

  /** Null where a passage that is no candidate could well be among the best. */
  async bySigns(plan: GovernedPlan, among: GovernedPlan, k: number): Promise<readonly TextRow[] | null> {
    const wanted = Math.max(BY_SIGNS.least, BY_SIGNS.each * k);
    const candidates = await this.run(plan, wanted);
    const best = await this.#best(among, candidates, k);
    if (best === null || candidates.length < wanted) return best;
    const farthest = distanceOf(best.at(-1));
    return farSigns(farthest, this.#vector.split(',').length) <= distanceOf(candidates.at(-1)) ? best : null;
  }

  /** The best of the candidates by their exact distance. Null where some of them have gone since they were found. */
  async #best(
    among: GovernedPlan,
    candidates: readonly TextRow[],
    k: number,
  ): Promise<readonly TextRow[] | null> {
    const ids = candidates.map((row) => row.get(stored('chunk_id')) ?? '');
    const best = await this.run(among, k, arrayText(ids));
    return best.length < Math.min(k, ids.length) ? null : best;
  }
}

function distanceOf(row: TextRow | undefined): number {
  return Number(row?.get(stored('distance')) ?? Number.NaN);
}

/** How far a vector's signs may stray from the number that its angle lets expect, in standard deviations. */
const STRAY = 2.5;

/**
 * In how many of `width` signs two vectors of this cosine distance differ at most, with a chance of .99: each sign
 * differs with a probability of their angle over π.
 */
function farSigns(distance: number, width: number): number {
  const p = Math.acos(Math.min(1, Math.max(-1, 1 - distance))) / Math.PI;
  return width * p + STRAY * Math.sqrt(width * p * (1 - p));
}
