/** Width of the vectors. */
export const DIMENSIONS = 256;
/** Number of chunks per entity. */
export const CHUNKS_PER_ENTITY = 50;
/** Number of values of `shard` and of `band`; each covers a thousandth of the corpus. */
export const PARTS = 1_000;

const CLUSTERS = 1_000;
/** Dimensions in which cluster members differ: far fewer than the width, as with the vectors of language models. */
const LATENT = 32;
const SPREAD = 0.9;
/** Factor that rounds vector components to four decimals. */
const SCALE = 10_000;

/** One chunk of the synthetic corpus. */
export interface SyntheticChunk {
  readonly id: number;
  /** Vector in pgvector's text format. */
  readonly vector: string;
  /** Number from 0 to 999, independent of the vector. */
  readonly shard: number;
  /** Number from 0 to 999: rank of the vector's cluster along one direction, so that a range of bands is a region. */
  readonly band: number;
}

/** A synthetic corpus, determined by its seed: clusters around random directions, in bands along one of them. */
export class Corpus {
  readonly #random: () => number;
  readonly #centres: readonly Float64Array[];
  readonly #basis: readonly Float64Array[];

  constructor(seed: number) {
    this.#random = mulberry32(seed);
    const along = this.#gaussian(DIMENSIONS);
    const centres = Array.from({ length: CLUSTERS }, () => unit(this.#gaussian(DIMENSIONS)));
    this.#centres = centres
      .map((centre) => ({ centre, rank: dot(centre, along) }))
      .sort((a, b) => b.rank - a.rank)
      .map((c) => c.centre);
    this.#basis = Array.from({ length: LATENT }, () => unit(this.#gaussian(DIMENSIONS)));
  }

  *chunks(count: number): Generator<SyntheticChunk> {
    for (let id = 0; id < count; id++) {
      const band = this.#below(PARTS);
      yield { id, band, shard: this.#below(PARTS), vector: this.near(band) };
    }
  }

  /** A new vector of a band's cluster, in pgvector's text format. */
  near(band: number): string {
    const vector = Float64Array.from(this.#centres[band % CLUSTERS] ?? []);
    for (const direction of this.#basis) {
      const far = (this.#normal() * SPREAD) / Math.sqrt(LATENT);
      for (let i = 0; i < vector.length; i++) vector[i] = (vector[i] ?? 0) + far * (direction[i] ?? 0);
    }
    return textOf(unit(vector));
  }

  #gaussian(length: number): Float64Array {
    return Float64Array.from({ length }, () => this.#normal());
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** Normally distributed random number (Box–Muller). */
  #normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.#random())) * Math.cos(2 * Math.PI * this.#random());
  }
}

/** Generates numbers in [0, 1) from a 32-bit seed. */
export function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function dot(a: Float64Array, b: Float64Array): number {
  return a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0);
}

function unit(vector: Float64Array): Float64Array {
  const norm = Math.sqrt(dot(vector, vector));
  return vector.map((x) => x / norm);
}

const TEXTS = Array.from({ length: 2 * SCALE + 1 }, (_, i) => String((i - SCALE) / SCALE));

function textOf(vector: Float64Array): string {
  let text = '';
  for (const x of vector) text += `,${TEXTS[Math.round(x * SCALE) + SCALE] ?? '0'}`;
  return `[${text.slice(1)}]`;
}
