import type { Schema } from '../../../../../clients/typescript/types.js';
import type { Sight } from '../../../api/admin-types.js';

/** Kinds of objects, in display order. */
export const KINDS = ['entity', 'bridge', 'facet', 'metric'] as const;
export type MapObjectKind = (typeof KINDS)[number];

/** Visibility of a column that is not hidden from the caller. */
export type VisibleSight = Exclude<Sight, 'nothing'>;

export interface MapColumn {
  readonly name: string;
  readonly type: string;
  readonly description: string | null;
  readonly sight: VisibleSight;
  /** True if the column is part of the primary key. */
  readonly isKey: boolean;
  /** True if joins may use the column. */
  readonly joins: boolean;
  readonly nullable: boolean;
  readonly synonyms: readonly string[];
}

/** An attribute extracted from text. */
type DerivedField = Schema['entities'][number]['derived'][number];

export interface Fact {
  readonly what: string;
  readonly value: string;
}

/** An entity, bridge, facet or metric: a node of the graph. */
export interface MapObject {
  /** `entity:customer`: the kind and the name. */
  readonly id: string;
  readonly kind: MapObjectKind;
  readonly name: string;
  /** Full name in queries and `/osl/why`: `osl.entities.customer`. */
  readonly fqn: string;
  readonly description: string | null;
  /** Reason for the deprecation; null if the object is not deprecated. */
  readonly deprecated: string | null;
  readonly columns: readonly MapColumn[];
  readonly derived: readonly DerivedField[];
  readonly synonyms: readonly string[];
  /** Queries that this caller can run unchanged. */
  readonly examples: readonly string[];
  readonly facts: readonly Fact[];
}

/** Edge kinds: `to_one` and `one_to_one` joins, `across` to a bridge, `text` from a facet, `figure` from a metric. */
export type ConnectionKind = 'to_one' | 'one_to_one' | 'across' | 'text' | 'figure';

export interface Connection {
  readonly id: string;
  readonly kind: ConnectionKind;
  readonly source: string;
  readonly target: string;
  readonly label: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  /** Join condition, such as `customer_id = id`; empty if its columns are unknown. */
  readonly on: string;
}

export interface Graph {
  /** Version of the caller's schema; the same for callers with the same rights. */
  readonly version: string;
  readonly objects: ReadonlyMap<string, MapObject>;
  readonly connections: readonly Connection[];
  /** Connections by the id of an object at one of their ends; objects without connections are absent. */
  readonly around: ReadonlyMap<string, readonly Connection[]>;
}

export function idOf(kind: MapObjectKind, name: string): string {
  return `${kind}:${name}`;
}

export function otherEnd(connection: Connection, id: string): string {
  return connection.source === id ? connection.target : connection.source;
}

export function graphOf(version: string, objects: Iterable<MapObject>, all: readonly Connection[]): Graph {
  const byId = new Map([...objects].map((object) => [object.id, object]));
  const connections = all.filter((connection) => byId.has(connection.source) && byId.has(connection.target));
  const around = new Map<string, Connection[]>();
  for (const connection of connections) {
    for (const end of new Set([connection.source, connection.target])) {
      const known = around.get(end);
      if (known === undefined) around.set(end, [connection]);
      else known.push(connection);
    }
  }
  return { version, objects: byId, connections, around };
}

/** Size of a part of a picture that has no edges to other parts. */
interface Box {
  readonly width: number;
  readonly height: number;
}

const GAP = 60;

/**
 * Arranges boxes in rows, the tallest first, so that the result is about `ratio` times as wide as high. Returns the
 * top left corner of each box, in the order of `boxes`.
 */
export function packBoxes(
  boxes: readonly Box[],
  ratio: number,
): readonly (readonly [x: number, y: number])[] {
  const order = boxes.map((box, i) => ({ ...box, i })).sort((a, b) => b.height - a.height || a.i - b.i);
  const area = boxes.reduce((sum, { width, height }) => sum + (width + GAP) * (height + GAP), 0);
  const across = Math.max(Math.sqrt(area * ratio), ...boxes.map((b) => b.width));
  const corners = new Map<number, readonly [number, number]>();
  let [x, y, high] = [0, 0, 0];
  for (const { width, height, i } of order) {
    if (x > 0 && x + width > across) [x, y, high] = [0, y + high + GAP, 0];
    corners.set(i, [x, y]);
    [x, high] = [x + width + GAP, Math.max(high, height)];
  }
  return boxes.map((_, i) => corners.get(i) ?? [0, 0]);
}
