/** Rows that belong to the same sets. */
export interface MemberClass {
  readonly sets: readonly number[];
  /** Hashes of the rows' privacy units; null if there are enough of them for a figure. */
  readonly units: ReadonlySet<number> | null;
}

/**
 * Maximum number of operations, about a second of work. Beyond it, an answer is refused, since it might isolate an
 * individual.
 */
const MAX_WORK = 300_000_000;
/** A prime whose square a `number` holds exactly; larger than any determinant of a small 0/1 matrix. */
const PRIME = 67_108_859;

/**
 * Returns true if a figure over fewer than `minimum` units can be computed from sums over the sets: as the difference
 * of two sets, or as a combination of any number of sets that leaves only one or two classes of rows. Sums can only be
 * combined with sums of the same column, and counts with counts.
 *
 * @param sets the figures computed from each set
 * @param changed sets that are new, or have new figures
 * @returns `unknown` if deciding takes too long
 */
export function isolates(
  classes: readonly MemberClass[],
  sets: readonly (readonly string[])[],
  changed: ReadonlySet<number>,
  minimum: number,
): boolean | 'unknown' {
  const work = new WorkBudget();
  for (const space of spacesOf(sets)) {
    if (![...changed].some((set) => space.has(set))) continue;
    const columns = columnsIn(space, classes, minimum);
    const result = spaceIsolates(columns, [...space], changed, minimum, work);
    if (result !== false) return result;
  }
  return false;
}

/** Counts operations and compares them with `MAX_WORK`. */
class WorkBudget {
  #operations = 0;

  get isExceeded(): boolean {
    return this.#operations > MAX_WORK;
  }

  add(operations: number): void {
    this.#operations += operations;
  }
}

/**
 * Groups the sets whose figures can be combined into spaces: those with counts, and for each column those with its sums
 * and means. A sum and a mean of one column give its count, so its means then act as counts as well.
 */
function spacesOf(sets: readonly (readonly string[])[]): readonly ReadonlySet<number>[] {
  const summed = new Set(sets.flat().flatMap((f) => (f.startsWith('sum ') ? [f.slice(4)] : [])));
  const spaces = new Map<string, Set<number>>();
  for (const [set, figures] of sets.entries()) {
    const add = (space: string): void => {
      spaces.set(space, (spaces.get(space) ?? new Set<number>()).add(set));
    };
    for (const figure of figures) {
      const column = figure === 'count' ? null : figure.slice(figure.indexOf(' ') + 1);
      if (column !== null) add(`of ${column}`);
      if (column === null || (figure.startsWith('mean ') && summed.has(column))) add('count');
    }
  }
  return [...spaces.values()];
}

/** Returns the classes into which the sets of a space divide the rows, omitting rows that are in none of these sets. */
function columnsIn(
  space: ReadonlySet<number>,
  classes: readonly MemberClass[],
  minimum: number,
): readonly MemberClass[] {
  const byKey = new Map<string, MemberClass>();
  for (const memberClass of classes) {
    const sets = memberClass.sets.filter((s) => space.has(s));
    if (sets.length === 0) continue;
    const key = sets.join();
    const existing = byKey.get(key);
    const units =
      existing === undefined ? memberClass.units : unite(existing.units, memberClass.units, minimum);
    byKey.set(key, { sets, units });
  }
  return [...byKey.values()];
}

/** Returns the union of two sets of units; null if it has at least `minimum` units. */
function unite(
  a: ReadonlySet<number> | null,
  b: ReadonlySet<number> | null,
  minimum: number,
): ReadonlySet<number> | null {
  if (a === null || b === null) return null;
  const all = new Set([...a, ...b]);
  return all.size >= minimum ? null : all;
}

function spaceIsolates(
  columns: readonly MemberClass[],
  sets: readonly number[],
  changed: ReadonlySet<number>,
  minimum: number,
  work: WorkBudget,
): boolean | 'unknown' {
  const small = columns.filter((c) => c.units !== null);
  const isFew = (group: readonly MemberClass[]): boolean =>
    group.length > 0 &&
    group.reduce<ReadonlySet<number> | null>((u, c) => unite(u, c.units, minimum), new Set()) !== null;
  if (small.length === 0) return false;
  const large = columns.filter((c) => c.units === null);
  if (differInTooFew(large, small, sets, changed, isFew, work)) return true;
  const remainder = eliminateColumns(matrixOf(sets, [...large, ...small]), large.length, work);
  if (remainder === null) return 'unknown';
  // Eliminating the columns in another order yields other combinations.
  for (const order of [small, [...small].reverse()]) {
    const rows = order === small ? remainder : remainder.map((row) => row.slice().reverse());
    const reduced = reducedRows(rows, order.length, work);
    if (reduced === null) return 'unknown';
    if (reduced.some(({ row }) => isFew(order.filter((_, i) => row[i] !== 0)))) return true;
    if (pairsOf(reduced).some((pair) => isFew(order.filter((_, i) => pair.includes(i))))) return true;
  }
  return false;
}

/** True if two sets, at least one changed, have the same large classes and differ in too few units for a figure. */
function differInTooFew(
  large: readonly MemberClass[],
  small: readonly MemberClass[],
  sets: readonly number[],
  changed: ReadonlySet<number>,
  isFew: (group: readonly MemberClass[]) => boolean,
  work: WorkBudget,
): boolean {
  const classesIn = (columns: readonly MemberClass[], set: number): readonly MemberClass[] =>
    columns.filter((c) => c.sets.includes(set));
  const positions = new Map(large.map((c, i) => [c, i]));
  const parts = sets.map((set) => ({
    set,
    key: classesIn(large, set)
      .map((c) => positions.get(c))
      .join(),
    small: new Set(classesIn(small, set)),
  }));
  for (const a of parts.filter((p) => changed.has(p.set)))
    for (const b of parts) {
      if (a === b || a.key !== b.key) continue;
      const differing = [...a.small, ...b.small].filter((c) => a.small.has(c) !== b.small.has(c));
      if (isFew(differing)) return true;
      work.add(a.small.size + b.small.size);
    }
  return false;
}

/** Row of a matrix over the integers modulo `PRIME`. */
type PrimeRow = Float64Array;

function matrixOf(sets: readonly number[], columns: readonly MemberClass[]): PrimeRow[] {
  const rowOf = new Map(sets.map((set) => [set, new Float64Array(columns.length)]));
  for (const [i, column] of columns.entries())
    for (const set of column.sets) {
      const row = rowOf.get(set);
      if (row !== undefined) row[i] = 1;
    }
  return [...rowOf.values()];
}

/** Returns rows spanning the combinations with `count` leading zeros, without the zeros; null if it takes too long. */
function eliminateColumns(rows: PrimeRow[], count: number, work: WorkBudget): PrimeRow[] | null {
  let rest = rows;
  for (let column = 0; column < count; column++) {
    const pivot = rest.find((row) => row[column] !== 0);
    if (pivot === undefined) continue;
    rest = rest.filter((row) => row !== pivot);
    for (const row of rest) {
      if (row[column] === 0) continue;
      subtract(row, pivot, column);
      work.add(row.length - column);
    }
    if (work.isExceeded) return null;
  }
  return rest.map((row) => row.slice(count));
}

interface ReducedRow {
  readonly row: PrimeRow;
  readonly pivot: number;
}

/** Returns the reduced row echelon form without zero rows; null if it takes too long. */
function reducedRows(rows: readonly PrimeRow[], width: number, work: WorkBudget): ReducedRow[] | null {
  let rest = [...rows];
  const reduced: ReducedRow[] = [];
  for (let column = 0; column < width; column++) {
    const pivot = rest.find((row) => row[column] !== 0);
    if (pivot === undefined) continue;
    rest = rest.filter((row) => row !== pivot);
    scale(pivot, inverse(pivot[column] ?? 1));
    for (const row of [...rest, ...reduced.map((r) => r.row)]) {
      if (row[column] === 0) continue;
      subtract(row, pivot, column);
      work.add(width);
    }
    if (work.isExceeded) return null;
    reduced.push({ row: pivot, pivot: column });
  }
  return reduced;
}

/** Returns the pivots of each pair of rows that are proportional elsewhere, so that all other columns cancel out. */
function pairsOf(reduced: readonly ReducedRow[]): readonly (readonly [number, number])[] {
  const byPattern = new Map<string, number[]>();
  for (const { row, pivot } of reduced) {
    const other = row.slice();
    other[pivot] = 0;
    const first = other.find((v) => v !== 0);
    if (first === undefined) continue;
    scale(other, inverse(first));
    const key = other.join();
    byPattern.set(key, [...(byPattern.get(key) ?? []), pivot]);
  }
  return [...byPattern.values()].flatMap((pivots) =>
    pivots.flatMap((a, i) => pivots.slice(i + 1).map((b) => [a, b] as const)),
  );
}

/** Subtracts a multiple of `pivot` from `row`, so that `row` becomes zero in `column`. */
function subtract(row: PrimeRow, pivot: PrimeRow, column: number): void {
  const factor = modulo((row[column] ?? 0) * inverse(pivot[column] ?? 1));
  for (let i = 0; i < row.length; i++) {
    const value = pivot[i] ?? 0;
    if (value !== 0) row[i] = modulo((row[i] ?? 0) + modulo(factor * (PRIME - value)));
  }
}

function scale(row: PrimeRow, factor: number): void {
  for (let i = 0; i < row.length; i++) row[i] = modulo((row[i] ?? 0) * factor);
}

/** Returns `value` modulo `PRIME`, for values from 0 to PRIME²; faster than `%`, which the engine does not inline. */
function modulo(value: number): number {
  const rest = value - PRIME * Math.floor(value / PRIME);
  if (rest < 0) return rest + PRIME;
  return rest >= PRIME ? rest - PRIME : rest;
}

/** Returns the inverse of `value`, which must not be zero, modulo `PRIME`. */
function inverse(value: number): number {
  let [power, base] = [1, value];
  for (let exponent = PRIME - 2; exponent > 0; exponent = Math.floor(exponent / 2)) {
    if (exponent % 2 === 1) power = modulo(power * base);
    base = modulo(base * base);
  }
  return power;
}
