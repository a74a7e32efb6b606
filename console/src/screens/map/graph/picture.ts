import { byConnections, type Cluster } from './clusters.js';
import type { ViewerMark } from './difference.js';
import {
  type Connection,
  type ConnectionKind,
  type Graph,
  type MapObject,
  type MapObjectKind,
  otherEnd,
} from './model.js';

/** Maximum number of nodes drawn at a time, so that they are readable and laid out without a noticeable pause. */
export const MOST_DRAWN = 140;

/** Part of the graph to show: everything, a cluster, or one object (such as an entity) and its neighbours. */
export type PictureScope =
  | { readonly kind: 'all' }
  | { readonly kind: 'cluster'; readonly id: string }
  | { readonly kind: 'around'; readonly id: string };

export interface PictureNode {
  readonly id: string;
  readonly kind: MapObjectKind | 'cluster';
  readonly label: string;
  readonly width: number;
  readonly height: number;
  readonly mark: ViewerMark;
  readonly deprecated: boolean;
}

interface PictureEdge {
  readonly id: string;
  readonly kind: ConnectionKind | 'between';
  readonly source: string;
  readonly target: string;
  readonly label: string;
  readonly mark: ViewerMark;
}

/** Nodes and edges to draw. */
export interface Picture {
  readonly nodes: readonly PictureNode[];
  readonly edges: readonly PictureEdge[];
  /** Number of objects in scope that are of the selected kinds; in the overview of clusters, of all objects. */
  readonly inScope: number;
  readonly total: number;
}

export interface MapToDraw {
  readonly graph: Graph;
  readonly clusters: readonly Cluster[];
  readonly marks: ReadonlyMap<string, Exclude<ViewerMark, 'same'>>;
}

/** Returns the picture of `drawing` for `scope`, with at most `MOST_DRAWN` nodes. */
export function pictureOf(
  drawing: MapToDraw,
  scope: PictureScope,
  kinds: ReadonlySet<MapObjectKind>,
): Picture {
  const { graph, clusters } = drawing;
  const total = graph.objects.size;
  switch (scope.kind) {
    case 'all': {
      const all = ofKinds(graph.objects.keys(), graph, kinds);
      return all.length <= MOST_DRAWN
        ? pictureOfObjects(all, all.length, drawing, kinds)
        : { ...overview(drawing), inScope: total, total };
    }
    case 'cluster': {
      const members = clusters.find((c) => c.id === scope.id)?.members ?? [];
      const all = ofKinds(members, graph, kinds);
      return pictureOfObjects(all.slice(0, MOST_DRAWN), all.length, drawing, kinds);
    }
    case 'around': {
      const { ids, reached } = neighbourhood(scope.id, graph, kinds);
      return pictureOfObjects(ids, reached, drawing, kinds);
    }
  }
}

function ofKinds(ids: Iterable<string>, graph: Graph, kinds: ReadonlySet<MapObjectKind>): readonly string[] {
  return [...ids].filter((id) => {
    const object = graph.objects.get(id);
    return object !== undefined && kinds.has(object.kind);
  });
}

/** Number of drawn objects up to which neighbours of neighbours are added. */
const FURTHER = 40;

/** Returns an object and its neighbours and, up to `FURTHER` objects in all, the neighbours' own neighbours. */
function neighbourhood(
  start: string,
  graph: Graph,
  kinds: ReadonlySet<MapObjectKind>,
): { readonly ids: readonly string[]; readonly reached: number } {
  const near = steps(start, graph, kinds);
  const ids = new Set([start, ...near.slice(0, MOST_DRAWN - 1)]);
  for (const id of near) {
    if (ids.size >= FURTHER) break;
    for (const further of steps(id, graph, kinds).slice(0, FURTHER - ids.size)) ids.add(further);
  }
  return { ids: [...ids], reached: Math.max(ids.size, 1 + near.length) };
}

/** Returns the neighbours of the selected kinds; if bridges are hidden, also the objects beyond a bridge. */
function steps(id: string, graph: Graph, kinds: ReadonlySet<MapObjectKind>): readonly string[] {
  const neighbours = (of: string) =>
    (graph.around.get(of) ?? []).map((connection) => otherEnd(connection, of));
  const found = neighbours(id).flatMap((other) =>
    graph.objects.get(other)?.kind === 'bridge' && !kinds.has('bridge') ? neighbours(other) : [other],
  );
  const others = new Set(found.filter((other) => other !== id));
  return byConnections(ofKinds(others, graph, kinds), graph);
}

function pictureOfObjects(
  ids: readonly string[],
  inScope: number,
  { graph, marks }: MapToDraw,
  kinds: ReadonlySet<MapObjectKind>,
): Picture {
  const drawn = new Set(ids);
  const objects = ids.flatMap((id) => graph.objects.get(id) ?? []);
  const connections = new Map<string, Connection>();
  for (const id of ids)
    for (const connection of graph.around.get(id) ?? []) connections.set(connection.id, connection);
  const markOf = (id: string): ViewerMark => marks.get(id) ?? 'same';
  const edges = [...connections.values()]
    .filter((connection) => drawn.has(connection.source) && drawn.has(connection.target))
    .map((connection): PictureEdge => {
      const { id, kind, source, target, label } = connection;
      return {
        id,
        kind,
        source,
        target,
        label: kind === 'text' || kind === 'figure' ? '' : label,
        mark: markOf(id),
      };
    });
  const across = kinds.has('bridge') ? [] : overBridges(ids, drawn, graph, markOf);
  return {
    nodes: objects.map((object) => nodeOf(object, markOf(object.id))),
    edges: [...edges, ...across],
    inScope,
    total: graph.objects.size,
  };
}

/** If bridges are hidden, returns one many-to-many edge for each bridge whose two sides are drawn. */
function overBridges(
  ids: readonly string[],
  drawn: ReadonlySet<string>,
  graph: Graph,
  markOf: (id: string) => ViewerMark,
): readonly PictureEdge[] {
  const bridges = new Set(
    ids.flatMap((id) => (graph.around.get(id) ?? []).map((connection) => otherEnd(connection, id))),
  );
  return [...bridges].flatMap((bridge): readonly PictureEdge[] => {
    const object = graph.objects.get(bridge);
    const [left, right] = graph.around.get(bridge) ?? [];
    if (object?.kind !== 'bridge' || left === undefined) return [];
    const [source, target] = [otherEnd(left, bridge), otherEnd(right ?? left, bridge)];
    if (!drawn.has(source) || !drawn.has(target)) return [];
    return [{ id: bridge, kind: 'across', source, target, label: object.name, mark: markOf(bridge) }];
  });
}

/** Returns the clusters as nodes. An edge between two clusters shows the number of connections, if there are several. */
function overview({ graph, clusters, marks }: MapToDraw): Pick<Picture, 'nodes' | 'edges'> {
  const shown = clusters.slice(0, MOST_DRAWN);
  const home = new Map(shown.flatMap(({ id, members }) => members.map((member) => [member, id] as const)));
  const counts = new Map<string, { readonly source: string; readonly target: string; count: number }>();
  for (const connection of graph.connections) {
    const [source, target] = [home.get(connection.source), home.get(connection.target)].sort();
    if (source === undefined || target === undefined || source === target) continue;
    const id = `${source}~${target}`;
    const known = counts.get(id);
    if (known === undefined) counts.set(id, { source, target, count: 1 });
    else known.count++;
  }
  return {
    nodes: shown.map((cluster) => clusterNode(cluster, marks)),
    edges: [...counts].map(([id, { source, target, count }]): PictureEdge => {
      return { id, kind: 'between', source, target, label: count === 1 ? '' : String(count), mark: 'same' };
    }),
  };
}

function clusterNode({ id, label, members }: Cluster, marks: MapToDraw['marks']): PictureNode {
  const text = members.length === 1 ? label : `${label} + ${(members.length - 1).toLocaleString('en')}`;
  const differs = members.some((member) => marks.has(member));
  return {
    id,
    kind: 'cluster',
    label: text,
    ...clusterSize(members.length),
    mark: differs ? 'differs' : 'same',
    deprecated: false,
  };
}

function clusterSize(members: number): { readonly width: number; readonly height: number } {
  const across = Math.round(44 + 14 * Math.log2(members));
  return { width: across, height: across };
}

/** Maximum length of a drawn name; the list next to the picture shows it in full. */
const LONGEST_LABEL = 26;

function nodeOf({ id, kind, name, deprecated }: MapObject, mark: ViewerMark): PictureNode {
  const label = name.length > LONGEST_LABEL ? `${name.slice(0, LONGEST_LABEL - 1)}…` : name;
  const sign = mark === 'same' ? '' : '≠ ';
  return { id, kind, label, ...sizeOf(kind, `${sign}${label}`), mark, deprecated: deprecated !== null };
}

/** Returns the size of a node in pixels, for a label in 13-pixel type. */
function sizeOf(kind: MapObjectKind, label: string): { readonly width: number; readonly height: number } {
  const text = label.length * 7.4;
  switch (kind) {
    case 'entity':
      return { width: Math.round(text + 32), height: 40 };
    case 'facet':
      return { width: Math.round(text + 34), height: 32 };
    case 'metric':
      return { width: Math.round(text + 44), height: 30 };
    // The diamond is small, so its name is drawn below it.
    case 'bridge':
      return { width: 26, height: 26 };
  }
}
