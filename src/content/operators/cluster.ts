import { inIdOrder, type OperatorPassage } from './vectors.js';

const SEED = 0x2545f491;
const MOST_ROUNDS = 50;

/**
 * Groups passages by k-means over unit vectors, initialized by k-means++ with a fixed seed.
 *
 * @returns group numbers 1 … `k`, ordered by the lowest chunk id in each group; fewer if there are fewer distinct
 * passages
 */
export function cluster(passages: readonly OperatorPassage[], k: number): readonly number[] {
  return inIdOrder(passages, (sorted) => {
    const points = sorted.map((p) => unit(p.vector));
    let centres = firstCentres(points, k);
    let groups = assign(points, centres);
    for (let round = 0; round < MOST_ROUNDS; round++) {
      centres = means(points, groups, centres);
      const next = assign(points, centres);
      if (next.every((g, i) => g === groups[i])) break;
      groups = next;
    }
    return renumbered(groups);
  });
}

type Point = Float64Array;

function unit(vector: Float32Array): Point {
  let squares = 0;
  for (let i = 0; i < vector.length; i++) {
    const x = vector[i] ?? 0;
    squares += x * x;
  }
  const norm = squares === 0 ? 1 : Math.sqrt(squares);
  const point = new Float64Array(vector);
  for (let i = 0; i < point.length; i++) point[i] = (point[i] ?? 0) / norm;
  return point;
}

/**
 * Chooses the first centre by the seed alone, and each further centre with a probability proportional to the square of
 * its distance from the nearest centre already chosen.
 */
function firstCentres(points: readonly Point[], k: number): readonly Point[] {
  const random = xorshift(SEED);
  const centres: Point[] = [];
  const distances = new Float64Array(points.length).fill(Number.POSITIVE_INFINITY);
  const sums = new Float64Array(SIDE_BY_SIDE);
  let next = Math.floor(random() * points.length);
  while (centres.length < Math.min(k, points.length)) {
    const centre = points[next];
    if (centre === undefined) break;
    centres.push(centre);
    for (let i = 0; i < points.length; i += SIDE_BY_SIDE) {
      squaredUpTo(Number.POSITIVE_INFINITY, centre, points, i, sums);
      for (let j = 0; j < SIDE_BY_SIDE && i + j < points.length; j++)
        distances[i + j] = Math.min(distances[i + j] ?? 0, sums[j] ?? 0);
    }
    const total = distances.reduce((sum, d) => sum + d, 0);
    if (total <= 1e-12) break; // all remaining points coincide with centres
    next = drawn(distances, random() * total);
  }
  return centres;
}

function drawn(weights: Float64Array, at: number): number {
  let sum = 0;
  for (const [i, weight] of weights.entries()) {
    sum += weight;
    if (sum > at) return i;
  }
  return weights.length - 1;
}

/** Returns the index of the nearest centre for each point; in a tie, the lowest index. */
function assign(points: readonly Point[], centres: readonly Point[]): readonly number[] {
  const sums = new Float64Array(SIDE_BY_SIDE);
  return points.map((point) => {
    let [best, at] = [Number.POSITIVE_INFINITY, 0];
    for (let first = 0; first < centres.length; first += SIDE_BY_SIDE) {
      squaredUpTo(best, point, centres, first, sums);
      for (let i = 0; i < SIDE_BY_SIDE && first + i < centres.length; i++) {
        const d = sums[i] ?? 0;
        if (d < best) {
          best = d;
          at = first + i;
        }
      }
    }
    return at;
  });
}

/** The mean of each group; an empty group keeps its centre. */
function means(
  points: readonly Point[],
  groups: readonly number[],
  centres: readonly Point[],
): readonly Point[] {
  const sums = centres.map((centre) => new Float64Array(centre.length));
  const counts = new Float64Array(centres.length);
  for (const [i, point] of points.entries()) {
    const g = groups[i] ?? 0;
    const sum = sums[g] ?? point;
    counts[g] = (counts[g] ?? 0) + 1;
    for (let d = 0; d < point.length; d++) sum[d] = (sum[d] ?? 0) + (point[d] ?? 0);
  }
  return centres.map((centre, g) => {
    const count = counts[g] ?? 0;
    return count === 0 ? centre : (sums[g]?.map((sum) => sum / count) ?? centre);
  });
}

/** Number of sums that are interleaved, so that the processor can overlap additions; hard-coded in `squaredUpTo`. */
const SIDE_BY_SIDE = 4;
/** Number of additions between comparisons with the limit. */
const STRIDE = 64;

/**
 * Writes to `sums` the squared distances from `point` to four of `others`, starting at index `first`. Once all four
 * exceed `limit`, it stops; the sums are then lower bounds. If fewer than four points remain, the last is repeated.
 */
function squaredUpTo(
  limit: number,
  point: Point,
  others: readonly Point[],
  first: number,
  sums: Float64Array,
): void {
  const last = others.length - 1;
  const a = others[Math.min(first, last)] ?? point;
  const b = others[Math.min(first + 1, last)] ?? point;
  const c = others[Math.min(first + 2, last)] ?? point;
  const d = others[Math.min(first + 3, last)] ?? point;
  let sumA = 0;
  let sumB = 0;
  let sumC = 0;
  let sumD = 0;
  for (let from = 0; from < point.length; from += STRIDE) {
    if (sumA > limit && sumB > limit && sumC > limit && sumD > limit) break;
    const to = Math.min(point.length, from + STRIDE);
    for (let i = from; i < to; i++) {
      const x = point[i] ?? 0;
      const apartA = x - (a[i] ?? 0);
      const apartB = x - (b[i] ?? 0);
      const apartC = x - (c[i] ?? 0);
      const apartD = x - (d[i] ?? 0);
      sumA += apartA * apartA;
      sumB += apartB * apartB;
      sumC += apartC * apartC;
      sumD += apartD * apartD;
    }
  }
  sums[0] = sumA;
  sums[1] = sumB;
  sums[2] = sumC;
  sums[3] = sumD;
}

function renumbered(groups: readonly number[]): readonly number[] {
  const numbers = new Map<number, number>();
  return groups.map((group) => {
    const known = numbers.get(group) ?? numbers.size + 1;
    numbers.set(group, known);
    return known;
  });
}

/** Returns a generator of numbers in [0, 1): Marsaglia's 32-bit xorshift. */
function xorshift(seed: number): () => number {
  let x = seed;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) / 2 ** 32;
  };
}
