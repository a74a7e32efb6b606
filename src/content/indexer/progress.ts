/** Where one facet version's indexing stands. */
export interface IndexProgress {
  readonly facet: string;
  readonly version: string;
  /** Documents looked at, of how many. */
  readonly done: number;
  readonly total: number;
  /** Chunks written so far. */
  readonly chunks: number;
  readonly documentsPerSecond: number;
  /** Null until there is a rate. */
  readonly secondsLeft: number | null;
}

export type OnIndexProgress = (progress: IndexProgress) => void;

/** A clock of milliseconds from `start`; the rate is over the whole run, so that it is steady. */
export function progressOf(
  place: Pick<IndexProgress, 'facet' | 'version' | 'total'>,
  done: number,
  chunks: number,
  elapsedMs: number,
): IndexProgress {
  const rate = elapsedMs > 0 ? (done * 1_000) / elapsedMs : 0;
  const total = Math.max(place.total, done);
  return {
    ...place,
    total,
    done,
    chunks,
    documentsPerSecond: Math.round(rate * 10) / 10,
    secondsLeft: rate > 0 ? Math.round((total - done) / rate) : null,
  };
}
