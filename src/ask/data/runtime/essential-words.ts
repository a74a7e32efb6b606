/** A word of a query in the lexical lane. */
export interface WeighedWord {
  readonly term: number;
  /** How many permitted passages hold it. */
  readonly frequency: number;
  /** What it adds to the score of a passage at most. */
  readonly most: number;
}

/** The words that the best passages have one of, if `rest` bears it out. */
export interface EssentialWords {
  readonly terms: readonly number[];
  /** A passage with none of them scores this at most: where as many as are wanted score more, those are the best. */
  readonly rest: number;
}

/** Words that are together in more than this share of the passages lead to so many that an index only costs. */
export const COMMON = 0.2;

/** A word that stands once in a passage of usual length adds this share of its most. */
const USUAL = 1 / 2.2;

/** Scores are sums of floats of 32 bits, in the order of the words' numbers. */
const ROUNDING = 1 + 1e-4;

/**
 * The rarest words of a query, as few as are likely to decide its best `wanted` passages; null where looking for these
 * alone spares little. What follows is from permitted passages alone, as their counts are.
 */
export function essentialWords(
  words: readonly WeighedWord[],
  documents: number,
  wanted: number,
): EssentialWords | null {
  const rarest = [...words].sort((a, b) => a.frequency - b.frequency || a.term - b.term);
  const all = rarest.reduce((sum, word) => sum + word.frequency, 0);
  let rest = rarest.reduce((sum, word) => sum + word.most, 0);
  let held = 0;
  // The last of the wanted passages likely holds a word that is this rare.
  let likely: number | null = null;
  for (const [i, { frequency, most }] of rarest.entries()) {
    held += frequency;
    rest -= most;
    if (held > Math.min(all / 2, documents * COMMON)) return null;
    if (held >= wanted) likely ??= most * USUAL;
    if (likely !== null && rest * ROUNDING < likely)
      return { terms: rarest.slice(0, i + 1).map((word) => word.term), rest: Math.max(0, rest) * ROUNDING };
  }
  return null;
}
