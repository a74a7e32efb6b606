import { byTies, type Cluster } from './clusters.js';
import type { ViewerMark } from './difference.js';
import { type Graph, otherEnd, type Thing, type ThingKind, type Tie, type TieKind } from './model.js';

/** Maximum number of nodes drawn at a time, so that they are readable and laid out without a noticeable pause. */
export const MOST_DRAWN = 140;

/** Part of the graph to show: everything, a cluster, or one thing (such as an entity) and its neighbours. */
export type PictureScope =
  | { readonly kind: 'all' }
  | { readonly kind: 'cluster'; readonly id: string }
  | { readonly kind: 'around'; readonly id: string };

export interface PictureNode {
  readonly id: string;
  readonly kind: ThingKind | 'cluster';
  readonly label: string;
  readonly width: number;
  readonly height: number;
  readonly mark: ViewerMark;
  readonly deprecated: boolean;
}

interface PictureEdge {
  readonly id: string;
  readonly kind: TieKind | 'between';
  readonly source: string;
  readonly target: string;
  readonly label: string;
  readonly mark: ViewerMark;
}

/** Nodes and edges to draw. */
export interface Picture {
  readonly nodes: readonly PictureNode[];
  readonly edges: readonly PictureEdge[];
  /** Number of things in scope that are of the selected kinds; in the overview of clusters, of all things. */
  readonly inScope: number;
  readonly total: number;
}

export interface MapToDraw {
  readonly graph: Graph;
  readonly clusters: readonly Cluster[];
  readonly marks: ReadonlyMap<string, Exclude<ViewerMark, 'same'>>;
}

/** Returns the picture of `drawing` for `scope`, with at most `MOST_DRAWN` nodes. */
export function pictureOf(drawing: MapToDraw, scope: PictureScope, kinds: ReadonlySet<ThingKind>): Picture {
  const { graph, clusters } = drawing;
  const total = graph.things.size;
  switch (scope.kind) {
    case 'all': {
      const all = ofKinds(graph.things.keys(), graph, kinds);
      return all.length <= MOST_DRAWN
        ? pictureOfThings(all, all.length, drawing, kinds)
        : { ...overview(drawing), inScope: total, total };
    }
    case 'cluster': {
      const members = clusters.find((c) => c.id === scope.id)?.members ?? [];
      const all = ofKinds(members, graph, kinds);
      return pictureOfThings(all.slice(0, MOST_DRAWN), all.length, drawing, kinds);
    }
    case 'around': {
      const { ids, reached } = neighbourhood(scope.id, graph, kinds);
      return pictureOfThings(ids, reached, drawing, kinds);
    }
  }
}

function ofKinds(ids: Iterable<string>, graph: Graph, kinds: ReadonlySet<ThingKind>): readonly string[] {
  return [...ids].filter((id) => {
    const thing = graph.things.get(id);
    return thing !== undefined && kinds.has(thing.kind);
  });
}

/** Number of drawn things up to which neighbours of neighbours are added. */
const FURTHER = 40;

/** Returns a thing and its neighbours and, up to `FURTHER` things in all, the neighbours' own neighbours. */
function neighbourhood(
  start: string,
  graph: Graph,
  kinds: ReadonlySet<ThingKind>,
): { readonly ids: readonly string[]; readonly reached: number } {
  const near = steps(start, graph, kinds);
  const ids = new Set([start, ...near.slice(0, MOST_DRAWN - 1)]);
  for (const id of near) {
    if (ids.size >= FURTHER) break;
    for (const further of steps(id, graph, kinds).slice(0, FURTHER - ids.size)) ids.add(further);
  }
  return { ids: [...ids], reached: Math.max(ids.size, 1 + near.length) };
}

/** Returns the neighbours of the selected kinds; if bridges are hidden, also the things beyond a bridge. */
function steps(id: string, graph: Graph, kinds: ReadonlySet<ThingKind>): readonly string[] {
  const neighbours = (of: string) => (graph.around.get(of) ?? []).map((tie) => otherEnd(tie, of));
  const found = neighbours(id).flatMap((other) =>
    graph.things.get(other)?.kind === 'bridge' && !kinds.has('bridge') ? neighbours(other) : [other],
  );
  const others = new Set(found.filter((other) => other !== id));
  return byTies(ofKinds(others, graph, kinds), graph);
}

function pictureOfThings(
  ids: readonly string[],
  inScope: number,
  { graph, marks }: MapToDraw,
  kinds: ReadonlySet<ThingKind>,
): Picture {
  const drawn = new Set(ids);
  const things = ids.flatMap((id) => graph.things.get(id) ?? []);
  const ties = new Map<string, Tie>();
  for (const id of ids) for (const tie of graph.around.get(id) ?? []) ties.set(tie.id, tie);
  const markOf = (id: string): ViewerMark => marks.get(id) ?? 'same';
  const edges = [...ties.values()]
    .filter((tie) => drawn.has(tie.source) && drawn.has(tie.target))
    .map((tie): PictureEdge => {
      const { id, kind, source, target, label } = tie;
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
    nodes: things.map((thing) => nodeOf(thing, markOf(thing.id))),
    edges: [...edges, ...across],
    inScope,
    total: graph.things.size,
  };
}

/** If bridges are hidden, returns one many-to-many edge for each bridge whose two sides are drawn. */
function overBridges(
  ids: readonly string[],
  drawn: ReadonlySet<string>,
  graph: Graph,
  markOf: (id: string) => ViewerMark,
): readonly PictureEdge[] {
  const bridges = new Set(ids.flatMap((id) => (graph.around.get(id) ?? []).map((tie) => otherEnd(tie, id))));
  return [...bridges].flatMap((bridge): readonly PictureEdge[] => {
    const thing = graph.things.get(bridge);
    const [left, right] = graph.around.get(bridge) ?? [];
    if (thing?.kind !== 'bridge' || left === undefined) return [];
    const [source, target] = [otherEnd(left, bridge), otherEnd(right ?? left, bridge)];
    if (!drawn.has(source) || !drawn.has(target)) return [];
    return [{ id: bridge, kind: 'across', source, target, label: thing.name, mark: markOf(bridge) }];
  });
}

/** Returns the clusters as nodes. An edge between two clusters shows the number of ties, if there are several. */
function overview({ graph, clusters, marks }: MapToDraw): Pick<Picture, 'nodes' | 'edges'> {
  const shown = clusters.slice(0, MOST_DRAWN);
  const home = new Map(shown.flatMap(({ id, members }) => members.map((member) => [member, id] as const)));
  const counts = new Map<string, { readonly source: string; readonly target: string; count: number }>();
  for (const tie of graph.ties) {
    const [source, target] = [home.get(tie.source), home.get(tie.target)].sort();
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

function nodeOf({ id, kind, name, deprecated }: Thing, mark: ViewerMark): PictureNode {
  const label = name.length > LONGEST_LABEL ? `${name.slice(0, LONGEST_LABEL - 1)}…` : name;
  const sign = mark === 'same' ? '' : '≠ ';
  return { id, kind, label, ...sizeOf(kind, `${sign}${label}`), mark, deprecated: deprecated !== null };
}

/** Returns the size of a node in pixels, for a label in 13-pixel type. */
function sizeOf(kind: ThingKind, label: string): { readonly width: number; readonly height: number } {
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
