import { type Graph, type MapObject, otherEnd } from './model.js';

/** A group of related objects (such as entities), for maps that are too large to draw completely. */
export interface Cluster {
  /** `cluster:0`, … */
  readonly id: string;
  /** Name of the member that has the most connections (edges). */
  readonly label: string;
  /** Ids of the members, those with the most connections first. */
  readonly members: readonly string[];
}

const ROUNDS = 6;
/** Approximate number of clusters in a large map. Also the lowest limit on the number of objects in a cluster. */
const ABOUT = 60;

/**
 * Groups objects by label propagation: each object repeatedly takes the most frequent label among its neighbours, unless
 * that label's cluster is full. Objects with the fewest connections go first, so that they join the objects they depend on.
 * Deterministic; linear in the connections except for sorting. Small clusters are merged by name, to about twice `ABOUT`.
 */
export function clustersOf(graph: Graph): readonly Cluster[] {
  const ids = [...graph.objects.keys()];
  const room = Math.max(ABOUT, Math.ceil(ids.length / ABOUT));
  const groups = groupsBy(ids, labelsOf(ids, graph, room));
  const large = groups.filter((g) => g.length >= room / 2);
  const small = groups.filter((g) => g.length < room / 2);
  return [...large, ...mergeSmall(small, room, graph)].map((members, i) => clusterOf(members, i, graph));
}

function labelsOf(ids: readonly string[], graph: Graph, room: number): ReadonlyMap<string, string> {
  const labels = new Map(ids.map((id) => [id, id]));
  const sizes = new Map(ids.map((id) => [id, 1]));
  const leastConnectedFirst = byConnections(ids, graph).toReversed();
  for (let round = 0; round < ROUNDS; round++) {
    let changed = 0;
    for (const id of leastConnectedFirst) {
      const now = labels.get(id) ?? id;
      const best = mostAround(id, now, labels, sizes, graph, room);
      if (best === now) continue;
      labels.set(id, best);
      sizes.set(now, (sizes.get(now) ?? 1) - 1);
      sizes.set(best, (sizes.get(best) ?? 0) + 1);
      changed++;
    }
    if (changed === 0) break;
  }
  return labels;
}

/**
 * Returns the most frequent label among neighbours whose cluster has room. If counts are equal, the current label wins,
 * then the label of the object with the most connections.
 */
function mostAround(
  id: string,
  now: string,
  labels: ReadonlyMap<string, string>,
  sizes: ReadonlyMap<string, number>,
  graph: Graph,
  room: number,
): string {
  const counts = new Map<string, number>();
  for (const connection of graph.around.get(id) ?? []) {
    const label = labels.get(otherEnd(connection, id));
    if (label !== undefined) counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  const connections = (label: string): number => graph.around.get(label)?.length ?? 0;
  let best = now;
  let most = counts.get(now) ?? 0;
  for (const [label, count] of counts) {
    if (label === now || (sizes.get(label) ?? 0) >= room) continue;
    const isBetter =
      count > most || (count === most && best !== now && connections(label) > connections(best));
    if (isBetter) [best, most] = [label, count];
  }
  return best;
}

function groupsBy(
  ids: readonly string[],
  labels: ReadonlyMap<string, string>,
): readonly (readonly string[])[] {
  const groups = new Map<string, string[]>();
  for (const id of ids) {
    const label = labels.get(id) ?? id;
    const known = groups.get(label);
    if (known === undefined) groups.set(label, [id]);
    else known.push(id);
  }
  return [...groups.values()];
}

/** Merges small groups, in order of their names, into groups of at most `room` objects. */
function mergeSmall(
  groups: readonly (readonly string[])[],
  room: number,
  graph: Graph,
): readonly (readonly string[])[] {
  const named = groups.map((members) => ({ members, name: labelOf(members, graph) }));
  named.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const packs: string[][] = [];
  for (const { members } of named) {
    const last = packs.at(-1);
    if (last === undefined || last.length + members.length > room) packs.push([...members]);
    else last.push(...members);
  }
  return packs;
}

function clusterOf(members: readonly string[], index: number, graph: Graph): Cluster {
  return { id: `cluster:${index}`, label: labelOf(members, graph), members: byConnections(members, graph) };
}

function labelOf(members: readonly string[], graph: Graph): string {
  const [first] = byConnections(members, graph);
  return graph.objects.get(first ?? '')?.name ?? '';
}

/** Sorts ids by number of connections, highest first; if equal, entities come first, then the lower id. */
export function byConnections(ids: readonly string[], graph: Graph): readonly string[] {
  const weight = (id: string): number => {
    const object: MapObject | undefined = graph.objects.get(id);
    return (graph.around.get(id)?.length ?? 0) + (object?.kind === 'entity' ? 0.5 : 0);
  };
  const weights = new Map(ids.map((id) => [id, weight(id)]));
  return [...ids].sort((a, b) => (weights.get(b) ?? 0) - (weights.get(a) ?? 0) || (a < b ? -1 : 1));
}
