import { type Graph, otherEnd, type Thing } from './model.js';

/** Things that belong together, for a map that is too large to be drawn whole. */
export interface Cluster {
  /** `cluster:0` … */
  readonly id: string;
  /** Of the member that most ties lead to. */
  readonly label: string;
  /** Ids, the most tied first. */
  readonly members: readonly string[];
}

const ROUNDS = 8;
/** Clusters that a picture has room for. */
const MOST = 80;

/**
 * Parts of the graph with many ties within and few between them: each thing takes, again and again, the label that
 * most of its neighbours have. Linear in the ties, and the same for the same graph. What is tied to nothing, and small
 * parts, are put together by name, so that there are never more than about 80 beyond those that are large by themselves.
 */
export function clustersOf(graph: Graph): readonly Cluster[] {
  const ids = [...graph.things.keys()];
  const room = Math.max(60, Math.ceil(ids.length / MOST));
  const groups = groupsBy(ids, labelsOf(ids, graph));
  const large = groups.filter((g) => g.length >= room / 2);
  const small = groups.filter((g) => g.length < room / 2);
  return [...large, ...packed(small, room, graph)].map((members, i) => clusterOf(members, i, graph));
}

function labelsOf(ids: readonly string[], graph: Graph): ReadonlyMap<string, string> {
  const labels = new Map(ids.map((id) => [id, id]));
  for (let round = 0; round < ROUNDS; round++) {
    let changed = 0;
    for (const id of ids) {
      const best = mostAround(id, labels, graph);
      if (best === null || best === labels.get(id)) continue;
      labels.set(id, best);
      changed++;
    }
    if (changed === 0) break;
  }
  return labels;
}

/** The label that most neighbours have; of equally many the first by name, so that it does not hang on an order. */
function mostAround(id: string, labels: ReadonlyMap<string, string>, graph: Graph): string | null {
  const counts = new Map<string, number>();
  for (const tie of graph.around.get(id) ?? []) {
    const label = labels.get(otherEnd(tie, id));
    if (label !== undefined) counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  let best: string | null = null;
  for (const [label, count] of counts) {
    const most = best === null ? 0 : (counts.get(best) ?? 0);
    if (count > most || (count === most && best !== null && label < best)) best = label;
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

/** Small groups side by side, in the order of their names, as many as there is room for in one. */
function packed(
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
  return { id: `cluster:${index}`, label: labelOf(members, graph), members: byTies(members, graph) };
}

function labelOf(members: readonly string[], graph: Graph): string {
  const [first] = byTies(members, graph);
  return graph.things.get(first ?? '')?.name ?? '';
}

/** The most tied first, entities before what belongs to them. */
export function byTies(ids: readonly string[], graph: Graph): readonly string[] {
  const weight = (id: string): number => {
    const thing: Thing | undefined = graph.things.get(id);
    return (graph.around.get(id)?.length ?? 0) + (thing?.kind === 'entity' ? 0.5 : 0);
  };
  const weights = new Map(ids.map((id) => [id, weight(id)]));
  return [...ids].sort((a, b) => (weights.get(b) ?? 0) - (weights.get(a) ?? 0) || (a < b ? -1 : 1));
}
