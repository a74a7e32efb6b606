import type { AdoptionCandidate, CandidateLink } from '../discovery/index.js';
import type { Manifest } from '../manifest/index.js';
import { tableName } from '../manifest/index.js';
import type { MapAttribute, MapEdge, MapNode } from './domain-map.js';

export interface DiscoveredGraph {
  readonly nodes: readonly MapNode[];
  readonly edges: readonly MapEdge[];
  readonly bridges: readonly string[];
}

/**
 * Candidates as parts of the graph: entities and associations are nodes, a bridge is an edge between what it links.
 * Links follow declared foreign keys to entities and to other candidates. Pure: equal arguments give equal parts in
 * equal order.
 */
export function discoveredIn(candidates: readonly AdoptionCandidate[], manifest: Manifest): DiscoveredGraph {
  const links = candidates.filter((c) => c.proposal === 'bridge');
  const nodes = candidates.filter((c) => c.proposal !== 'bridge');
  const places = new ForeignKeyTargets(nodes, manifest);
  const bridges = links.flatMap((c): readonly MapEdge[] => bridgeEdge(c, places));
  return {
    nodes: nodes.map(candidateNode),
    edges: [...bridges, ...nodes.flatMap((c) => c.foreign_keys.flatMap((link) => keyEdge(c, link, places)))],
    bridges: bridges.map((edge) => edge.label),
  };
}

/** Omits the planner's row estimate, which changes by itself. */
function candidateNode(candidate: AdoptionCandidate): MapNode {
  const { id, name, comment, key, columns, proposal, confidence } = candidate;
  return {
    id: `entity:${name}`,
    kind: 'candidate',
    name,
    plane: 'structured',
    state: 'discovered',
    composition: 'structured',
    description: comment,
    attributes: columns.map((c): MapAttribute => {
      const role = key.includes(c.name) ? 'pk' : 'column';
      return { name: c.name, role, type: c.type, description: c.comment };
    }),
    meta: { pk: key.join(','), source: id, proposal, confidence },
  };
}

function keyEdge(
  candidate: AdoptionCandidate,
  link: CandidateLink,
  places: ForeignKeyTargets,
): readonly MapEdge[] {
  const target = places.endOf(candidate.connector, link);
  if (target === null) return [];
  const { name, key } = candidate;
  const unique = key.length === link.columns.length && link.columns.every((c) => key.includes(c));
  return [
    {
      id: `${link.name}~${name}:${target.name}`,
      source: `entity:${name}`,
      target: `entity:${target.name}`,
      kind: unique ? '11' : 'n1',
      label: link.name,
      declared: false,
      source_attr: link.columns.join(','),
      target_attr: target.columns.join(','),
    },
  ];
}

function bridgeEdge(
  { connector, name, foreign_keys }: AdoptionCandidate,
  places: ForeignKeyTargets,
): readonly MapEdge[] {
  const [first] = foreign_keys;
  // A foreign key may be declared twice.
  const second = foreign_keys.find((link) => !link.columns.every((c) => first?.columns.includes(c)));
  if (first === undefined || second === undefined) return [];
  const [left, right] = [places.endOf(connector, first), places.endOf(connector, second)];
  if (left === null || right === null) return [];
  return [
    {
      id: `${name}~${left.name}:${right.name}`,
      source: `entity:${left.name}`,
      target: `entity:${right.name}`,
      kind: 'nn',
      label: name,
      declared: false,
      source_attr: left.columns.join(','),
      target_attr: right.columns.join(','),
    },
  ];
}

class ForeignKeyTargets {
  readonly #manifest: Manifest;
  /** By `connector.schema.table`. */
  readonly #candidates: ReadonlyMap<string, AdoptionCandidate>;

  constructor(candidates: readonly AdoptionCandidate[], manifest: Manifest) {
    this.#manifest = manifest;
    this.#candidates = new Map(candidates.map((c) => [c.id, c]));
  }

  /** Node and attributes that a foreign key refers to; null if the map lacks one of them. */
  endOf(
    connector: string,
    { references }: CandidateLink,
  ): { readonly name: string; readonly columns: readonly string[] } | null {
    const { schema, table, entity, columns } = references;
    if (entity === null) {
      const candidate = this.#candidates.get(`${connector}.${tableName({ schema, table })}`);
      return candidate === undefined ? null : { name: candidate.name, columns };
    }
    if (!this.#manifest.entities.has(entity)) return null;
    const shown = this.#manifest.catalog.relations.get(entity)?.columns ?? [];
    const named = columns.flatMap((c) => shown.find((s) => s.physical === c)?.name ?? []);
    return named.length === columns.length ? { name: entity, columns: named } : null;
  }
}
