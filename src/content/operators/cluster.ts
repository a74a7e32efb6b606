import { inIdOrder, type Passage } from './passage.js';

const SEED = 0x2545f491;
const MOST_ROUNDS = 50;

/**
 * Groups by k-means over unit vectors, begun by k-means++ from a fixed seed.
 *
 * @returns 1 … `k`, numbered by the lowest chunk id of each group; fewer where there are fewer different passages
 */
export function cluster(passages: readonly Passage[], k: number): readonly number[] {
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
  for (const x of vector) squares += x * x;
  const norm = squares === 0 ? 1 : Math.sqrt(squares);
  return Float64Array.from(vector, (x) => x / norm);
}

/** The first by the seed, each further one with a chance that grows with the distance to those before. */
function firstCentres(points: readonly Point[], k: number): readonly Point[] {
  const random = xorshift(SEED);
  const centres: Point[] = [];
  const distances = new Array<number>(points.length).fill(Number.POSITIVE_INFINITY);
  let next = Math.floor(random() * points.length);
  while (centres.length < Math.min(k, points.length)) {
    const centre = points[next];
    if (centre === undefined) break;
    centres.push(centre);
    for (const [i, point] of points.entries())
      distances[i] = Math.min(distances[i] ?? 0, squared(point, centre));
    const total = distances.reduce((sum, d) => sum + d, 0);
    if (total <= 1e-12) break; // all that are left equal a centre
    next = drawn(distances, random() * total);
  }
  return centres;
}

function drawn(weights: readonly number[], at: number): number {
  let sum = 0;
  for (const [i, weight] of weights.entries()) {
    sum += weight;
    if (sum > at) return i;
  }
  return weights.length - 1;
}

function assign(points: readonly Point[], centres: readonly Point[]): readonly number[] {
  return points.map((point) => {
    let [best, at] = [Number.POSITIVE_INFINITY, 0];
    for (const [i, centre] of centres.entries()) {
      const d = squared(point, centre);
      if (d < best) [best, at] = [d, i];
    }
    return at;
  });
}

/** An empty group keeps its centre. */
function means(
  points: readonly Point[],
  groups: readonly number[],
  centres: readonly Point[],
): readonly Point[] {
  return centres.map((centre, g) => {
    const sums = new Float64Array(centre.length);
    let count = 0;
    for (const [i, point] of points.entries()) {
      if (groups[i] !== g) continue;
      count++;
      for (let d = 0; d < sums.length; d++) sums[d] = (sums[d] ?? 0) + (point[d] ?? 0);
    }
    return count === 0 ? centre : sums.map((sum) => sum / count);
  });
}

function squared(a: Point, b: Point): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += ((a[i] ?? 0) - (b[i] ?? 0)) ** 2;
  return sum;
}

function renumbered(groups: readonly number[]): readonly number[] {
  const numbers = new Map<number, number>();
  return groups.map((group) => {
    const known = numbers.get(group) ?? numbers.size + 1;
    numbers.set(group, known);
    return known;
  });
}

/** [0, 1) from Marsaglia's xorshift of 32 bits. */
function xorshift(seed: number): () => number {
  let x = seed;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) / 2 ** 32;
  };
}
