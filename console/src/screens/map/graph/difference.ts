import {
  type Connection,
  type Graph,
  graphOf,
  type MapColumn,
  type MapObject,
  type VisibleSight,
} from './model.js';

/** Comparison of an object or a connection for two callers: same, different, or visible to only one of them. */
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
  readonly kind: MapObject['kind'];
  readonly mark: Exclude<ViewerMark, 'same'>;
  /** Columns that the two callers see differently, if both can see the object. */
  readonly columns: readonly ColumnChange[];
}

/** The maps of two callers merged into one, with their differences. */
export interface MapDifference {
  readonly union: Graph;
  /** Marks of the objects (nodes) and connections (edges) that differ between the callers, by id. */
  readonly marks: ReadonlyMap<string, Exclude<ViewerMark, 'same'>>;
  /** Objects in the first map that differ or are missing in the second, then those only in the second. */
  readonly changes: readonly MapChange[];
}

export function differenceOf(first: Graph, second: Graph): MapDifference {
  const changes = [...first.objects.values()].flatMap((one) => changeOf(one, second.objects.get(one.id)));
  const added = [...second.objects.values()].filter((other) => !first.objects.has(other.id));
  const all = [...changes, ...added.map((other) => only(other, 'second'))];
  const marks = new Map<string, Exclude<ViewerMark, 'same'>>(all.map((change) => [change.id, change.mark]));
  const [ours, theirs] = [connectionsById(first), connectionsById(second)];
  // The connection of a metric or facet has the same id as the object itself and shares its mark.
  for (const id of ours.keys()) if (!theirs.has(id) && !marks.has(id)) marks.set(id, 'first');
  for (const id of theirs.keys()) if (!ours.has(id) && !marks.has(id)) marks.set(id, 'second');
  const connections = [
    ...ours.values(),
    ...[...theirs.values()].filter((connection) => !ours.has(connection.id)),
  ];
  const objects = [...first.objects.values()].map((one) => mergedObject(one, second.objects.get(one.id)));
  return {
    union: graphOf(`${first.version} ${second.version}`, [...objects, ...added], connections),
    marks,
    changes: all,
  };
}

function connectionsById({ connections }: Graph): ReadonlyMap<string, Connection> {
  return new Map(connections.map((connection) => [connection.id, connection]));
}

function only({ id, name, kind }: MapObject, mark: 'first' | 'second'): MapChange {
  return { id, name, kind, mark, columns: [] };
}

function changeOf(one: MapObject, other: MapObject | undefined): readonly MapChange[] {
  if (other === undefined) return [only(one, 'first')];
  const columns = columnChanges(attributesOf(one), attributesOf(other));
  return columns.length === 0
    ? []
    : [{ id: one.id, name: one.name, kind: one.kind, mark: 'differs', columns }];
}

type ColumnSight = Pick<MapColumn, 'name' | 'sight'>;

/** Returns the columns of an object and its attributes extracted from text, by name. */
function attributesOf({ columns, derived }: MapObject): ReadonlyMap<string, ColumnSight> {
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

/** Merges two callers' views of the same object: the columns and attributes that either of them sees. */
function mergedObject(one: MapObject, other: MapObject | undefined): MapObject {
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
