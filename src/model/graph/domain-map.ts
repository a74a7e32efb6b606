import { mapInSteps } from '../../base/in-turns.js';
import { type AdoptionCandidate, bridgeSides, type CandidateLink } from '../discovery/index.js';
import { type Manifest, tableName } from '../manifest/index.js';
import {
  type EntityView,
  type GraphView,
  groupedBy,
  type LinkView,
  type MetricView,
  type VisibleLinkEnd,
} from './view.js';

/** Response of `GET /osl/domain-map`. Source: contract, Domain graph. */
export interface DomainMap {
  readonly nodes: readonly MapNode[];
  readonly edges: readonly MapEdge[];
  /** Names of junction tables that became edges. */
  readonly bridges: readonly string[];
}

interface MapNode {
  /** `entity:<name>` or `metric:<name>`; a candidate's id is that of the entity it would become. */
  readonly id: string;
  readonly kind: 'entity' | 'metric' | 'candidate';
  readonly name: string;
  readonly plane: 'mixed' | 'structured';
  readonly state: 'existing' | 'deprecated' | 'discovered';
  readonly composition: EntityView['composition'] | null;
  readonly description: string | null;
  readonly attributes: readonly MapAttribute[];
  readonly meta: EntityMeta | CandidateMeta | Record<never, never>;
}

interface EntityMeta {
  /** Columns of the primary key, separated by commas; empty if the reader cannot see all of them. */
  readonly pk: string;
  readonly model: string;
  readonly legs: readonly string[];
}

interface CandidateMeta {
  /** Columns of the proposed key, separated by commas. */
  readonly pk: string;
  /** `connector.schema.table` */
  readonly source: string;
  readonly proposal: string;
  readonly confidence: number;
}

interface MapAttribute {
  readonly name: string;
  readonly role: 'pk' | 'column' | 'derived' | 'metric';
  readonly type: string | null;
  readonly description: string | null;
}

interface MapEdge {
  /** `<bridge>~<from>:<to>`; for a link without a bridge, `<link>~<from>:<to>`. */
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** `nn`: through a bridge. `n1`, `11`: along a foreign key, from source to target. */
  readonly kind: 'nn' | 'n1' | '11';
  readonly label: string;
  /** True if the manifest declares the link; false if it was discovered in the database. */
  readonly declared: boolean;
  /** Columns of the link at the source, separated by commas. */
  readonly source_attr: string;
  readonly target_attr: string;
}

export function* domainMapSteps(view: GraphView): Generator<void, DomainMap> {
  const metrics = groupedBy(view.metrics, (m) => m.entity ?? '');
  return {
    nodes: [
      ...(yield* mapInSteps(view.entities, (e) => entityNode(e, metrics.get(e.name) ?? []))),
      ...(yield* mapInSteps(view.metrics, metricNode)),
    ],
    edges: yield* mapInSteps(view.links, edgeOf),
    bridges: [...new Set(view.links.flatMap((l) => (l.bridge === null ? [] : [l.bridge.name])))],
  };
}

function entityNode(entity: EntityView, metrics: readonly MetricView[]): MapNode {
  const { name, composition, description, deprecated, primaryKey, legs } = entity;
  const columns = entity.columns.map((c): MapAttribute => {
    const role = primaryKey.includes(c.name) ? 'pk' : 'column';
    return { name: c.name, role, type: c.type, description: c.description };
  });
  const derived = entity.derived.map((d): MapAttribute => {
    return { name: d.name, role: 'derived', type: d.type, description: d.description };
  });
  return {
    id: `entity:${name}`,
    kind: 'entity',
    name,
    plane: composition === 'structured' ? 'structured' : 'mixed',
    state: deprecated === null ? 'existing' : 'deprecated',
    composition,
    description,
    attributes: [...columns, ...derived, ...metrics.map(measureOf)],
    meta: { pk: primaryKey.join(','), model: name, legs },
  };
}

function metricNode(metric: MetricView): MapNode {
  return {
    id: `metric:${metric.name}`,
    kind: 'metric',
    name: metric.name,
    plane: 'structured',
    state: metric.deprecated === null ? 'existing' : 'deprecated',
    composition: null,
    description: metric.description,
    attributes: [measureOf(metric)],
    meta: {},
  };
}

function measureOf({ name, type, description }: MetricView): MapAttribute {
  return { name, role: 'metric', type, description };
}

const KINDS = { many_to_many: 'nn', many_to_one: 'n1', one_to_one: '11' } as const;

function edgeOf(link: LinkView): MapEdge {
  const { name, kind, from, to, bridge } = link;
  const attribute = (end: VisibleLinkEnd): string => end.columns.join(',');
  return {
    id: `${bridge?.name ?? name}~${from.entity}:${to.entity}`,
    source: `entity:${from.entity}`,
    target: `entity:${to.entity}`,
    kind: KINDS[kind],
    label: name,
    declared: true,
    source_attr: attribute(from),
    target_attr: attribute(to),
  };
}

interface DiscoveredGraph {
  readonly nodes: readonly MapNode[];
  readonly edges: readonly MapEdge[];
  readonly bridges: readonly string[];
}

/**
 * Converts candidates to parts of the graph: entities and associations become nodes, a bridge becomes an edge between
 * the relations it links. Links follow declared foreign keys to entities and to other candidates. Pure: equal
 * arguments give equal parts in equal order.
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

/** Creates the node of a candidate. Omits the planner's row estimate, which changes without any edit of the schema. */
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

function bridgeEdge(candidate: AdoptionCandidate, places: ForeignKeyTargets): readonly MapEdge[] {
  const { connector, name } = candidate;
  const [first, second] = bridgeSides(candidate);
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
  /** Candidates by `connector.schema.table`. */
  readonly #candidates: ReadonlyMap<string, AdoptionCandidate>;

  constructor(candidates: readonly AdoptionCandidate[], manifest: Manifest) {
    this.#manifest = manifest;
    this.#candidates = new Map(candidates.map((c) => [c.id, c]));
  }

  /** Returns the name and columns of the node that a foreign key refers to; null if one of them is not on the map. */
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
