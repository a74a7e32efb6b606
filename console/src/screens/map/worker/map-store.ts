import type { Schema } from '../../../../../clients/typescript/types.js';
import { type Cluster, clustersOf } from '../graph/clusters.js';
import { differenceOf, type MapDifference } from '../graph/difference.js';
import { graphOfSchema } from '../graph/graph-of-schema.js';
import { type Graph, KINDS, type MapObjectKind, otherEnd } from '../graph/model.js';
import { type MapToDraw, MOST_DRAWN, type Picture, type PictureScope, pictureOf } from '../graph/picture.js';
import { searchIn } from '../graph/search.js';
import type { Details, LoadedMap, MapChanges, MapCounts, MapSide, Neighbour } from './protocol.js';

/** Holds the maps of one or two callers and answers the screen's requests. Runs in the worker thread. */
export class MapStore {
  readonly #graphs = new Map<MapSide, Graph>();
  #difference: MapDifference | null = null;
  #clusters: readonly Cluster[] | null = null;

  load(side: MapSide, schema: Schema): LoadedMap {
    const graph = graphOfSchema(schema);
    this.#graphs.set(side, graph);
    this.#changed();
    return { version: graph.version, counts: countsOf(graph) };
  }

  forget(): null {
    this.#graphs.delete('second');
    this.#changed();
    return null;
  }

  picture(scope: PictureScope, kinds: readonly MapObjectKind[]): Picture {
    return pictureOf(this.#drawing(), scope, new Set(kinds));
  }

  /** Returns those of `ids` that the caller of `side` sees. A cluster is visible if any of its members is. */
  seenBy(side: MapSide, ids: readonly string[]): readonly string[] {
    const graph = this.#graphs.get(side);
    if (graph === undefined) return side === 'first' ? [] : ids;
    const clusters = new Map((this.#clusters ?? []).map((c) => [c.id, c.members]));
    return ids.filter((id) => {
      const members = clusters.get(id);
      return members === undefined
        ? graph.objects.has(id)
        : members.some((member) => graph.objects.has(member));
    });
  }

  search(term: string, most: number): ReturnType<typeof searchIn> {
    return searchIn(this.#graph(), term, most);
  }

  details(id: string): Details | null {
    const graph = this.#graph();
    const object = graph.objects.get(id);
    if (object === undefined) return null;
    const neighbours = (graph.around.get(id) ?? []).flatMap((connection): readonly Neighbour[] => {
      const other = graph.objects.get(otherEnd(connection, id));
      return other === undefined ? [] : [{ connection, id: other.id, name: other.name, kind: other.kind }];
    });
    const change = this.#difference?.changes.find((c) => c.id === id);
    return { object, mark: change?.mark ?? 'same', columns: change?.columns ?? [], neighbours };
  }

  changes(most: number): MapChanges {
    const all = this.#difference?.changes ?? [];
    return { total: all.length, first: all.slice(0, most) };
  }

  #changed(): void {
    const [first, second] = [this.#graphs.get('first'), this.#graphs.get('second')];
    this.#difference = first === undefined || second === undefined ? null : differenceOf(first, second);
    this.#clusters = null;
  }

  #graph(): Graph {
    const graph = this.#difference?.union ?? this.#graphs.get('first');
    if (graph === undefined) throw new Error('no map was loaded');
    return graph;
  }

  #drawing(): MapToDraw {
    const graph = this.#graph();
    if (this.#clusters === null) this.#clusters = graph.objects.size > MOST_DRAWN ? clustersOf(graph) : [];
    return { graph, clusters: this.#clusters, marks: this.#difference?.marks ?? new Map() };
  }
}

function countsOf(graph: Graph): MapCounts {
  const counts = new Map<MapObjectKind, number>(KINDS.map((kind) => [kind, 0]));
  for (const { kind } of graph.objects.values()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const of = (kind: MapObjectKind): number => counts.get(kind) ?? 0;
  return { entity: of('entity'), bridge: of('bridge'), facet: of('facet'), metric: of('metric') };
}
