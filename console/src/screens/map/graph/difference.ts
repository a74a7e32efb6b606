import { type Graph, graphOf, type Thing, type ThingColumn, type Tie, type VisibleSight } from './model.js';

/** Comparison of a thing or tie of the map for two callers: same, different, or visible to the first or second only. */
export type ViewerMark = 'same' | 'differs' | 'first' | 'second';

/** Visibility of a column for each of the two callers; null if the column is hidden from that caller. */
export interface ColumnChange {
  readonly name: string;
  readonly first: VisibleSight | null;
  readonly second: VisibleSight | null;
}

export interface MapChange {
  readonly id: string;
  readonly name: string;
  readonly kind: Thing['kind'];
  readonly mark: Exclude<ViewerMark, 'same'>;
  /** Columns that the two callers see differently, if both can see the thing. */
  readonly columns: readonly ColumnChange[];
}

/** The maps of two callers merged into one, with their differences. */
export interface MapDifference {
  readonly union: Graph;
  /** Marks of the things (nodes) and ties (edges) that differ between the callers, by id. */
  readonly marks: ReadonlyMap<string, Exclude<ViewerMark, 'same'>>;
  /** Things in the first map that differ or are missing in the second, then those only in the second. */
  readonly changes: readonly MapChange[];
}

export function differenceOf(first: Graph, second: Graph): MapDifference {
  const changes = [...first.things.values()].flatMap((one) => changeOf(one, second.things.get(one.id)));
  const added = [...second.things.values()].filter((other) => !first.things.has(other.id));
  const all = [...changes, ...added.map((other) => only(other, 'second'))];
  const marks = new Map<string, Exclude<ViewerMark, 'same'>>(all.map((change) => [change.id, change.mark]));
  const [ours, theirs] = [tiesById(first), tiesById(second)];
  // The tie of a metric or facet has the same id as the thing itself and shares its mark.
  for (const id of ours.keys()) if (!theirs.has(id) && !marks.has(id)) marks.set(id, 'first');
  for (const id of theirs.keys()) if (!ours.has(id) && !marks.has(id)) marks.set(id, 'second');
  const ties = [...ours.values(), ...[...theirs.values()].filter((tie) => !ours.has(tie.id))];
  const things = [...first.things.values()].map((one) => mergedThing(one, second.things.get(one.id)));
  return {
    union: graphOf(`${first.version} ${second.version}`, [...things, ...added], ties),
    marks,
    changes: all,
  };
}

function tiesById({ ties }: Graph): ReadonlyMap<string, Tie> {
  return new Map(ties.map((tie) => [tie.id, tie]));
}

function only({ id, name, kind }: Thing, mark: 'first' | 'second'): MapChange {
  return { id, name, kind, mark, columns: [] };
}

function changeOf(one: Thing, other: Thing | undefined): readonly MapChange[] {
  if (other === undefined) return [only(one, 'first')];
  const columns = columnChanges(attributesOf(one), attributesOf(other));
  return columns.length === 0
    ? []
    : [{ id: one.id, name: one.name, kind: one.kind, mark: 'differs', columns }];
}

type ColumnSight = Pick<ThingColumn, 'name' | 'sight'>;

/** Returns the columns of a thing and its attributes extracted from text, by name. */
function attributesOf({ columns, derived }: Thing): ReadonlyMap<string, ColumnSight> {
  const taken = derived.map(({ name }): ColumnSight => ({ name, sight: 'clear' }));
  return new Map([...columns, ...taken].map((c) => [c.name, c]));
}

function columnChanges(
  ours: ReadonlyMap<string, ColumnSight>,
  theirs: ReadonlyMap<string, ColumnSight>,
): readonly ColumnChange[] {
  return [...new Set([...ours.keys(), ...theirs.keys()])]
    .map((name) => ({ name, first: ours.get(name)?.sight ?? null, second: theirs.get(name)?.sight ?? null }))
    .filter(({ first, second }) => first !== second);
}

/** Merges two callers' views of the same thing: the columns and attributes that either of them sees. */
function mergedThing(one: Thing, other: Thing | undefined): Thing {
  if (other === undefined) return one;
  return {
    ...one,
    columns: unionByName(one.columns, other.columns),
    derived: unionByName(one.derived, other.derived),
  };
}

function unionByName<T extends { readonly name: string }>(
  ours: readonly T[],
  theirs: readonly T[],
): readonly T[] {
  const known = new Set(ours.map(({ name }) => name));
  return [...ours, ...theirs.filter(({ name }) => !known.has(name))];
}
