import type { TypeName } from 'osl-compiler';
import { type Manifest, modelNameFrom, tableName, withSuffix } from '../manifest/index.js';
import {
  modelType,
  type UpstreamForeignKey,
  type UpstreamRelation,
  type UpstreamRelationKind,
  type UpstreamSchema,
} from './upstream.js';

/** Allocates names that are unique regardless of case. */
export class NameAllocator {
  readonly #taken: Set<string>;

  constructor(taken: Iterable<string>) {
    this.#taken = new Set([...taken].map((name) => name.toLowerCase()));
  }

  static of({ catalog }: Manifest): NameAllocator {
    return new NameAllocator([...catalog.relations.keys(), ...catalog.metrics.keys()]);
  }

  /** Derives a free name from `upstream`. If the name is taken, it is prefixed with `before`, then numbered. */
  free(upstream: string, before: string): string {
    const name = modelNameFrom(upstream);
    if (this.#take(name)) return name;
    const longer = modelNameFrom(`${before}_${upstream}`);
    if (this.#take(longer)) return longer;
    for (let n = 2; ; n++) {
      const numbered = withSuffix(longer, `_${n}`);
      if (this.#take(numbered)) return numbered;
    }
  }

  #take(name: string): boolean {
    const key = name.toLowerCase();
    if (this.#taken.has(key)) return false;
    this.#taken.add(key);
    return true;
  }
}

/** A relation in a connector's database that no entity, bridge or facet uses, and a proposal for adopting it. */
export interface AdoptionCandidate {
  /** `connector.schema.table` */
  readonly id: string;
  readonly connector: string;
  readonly schema: string;
  readonly table: string;
  readonly kind: UpstreamRelationKind;
  readonly comment: string | null;
  readonly proposal: 'entity' | 'bridge' | 'association';
  readonly name: string;
  readonly columns: readonly CandidateColumn[];
  /** Proposed key: the primary key, or else the smallest unique key without nulls; empty if there is neither. */
  readonly key: readonly string[];
  readonly unique_keys: readonly (readonly string[])[];
  readonly foreign_keys: readonly CandidateLink[];
  /** The planner's estimate of the row count; null for a view, or if the relation was never analyzed. */
  readonly row_estimate: number | null;
  /** Degree, from 0 to 1, to which the declarations in the database support the proposal. No rows are read. */
  readonly confidence: number;
  readonly evidence: readonly string[];
}

export interface CandidateColumn {
  readonly name: string;
  readonly upstream_type: string;
  /** The column's model type; null if the model has no equivalent, so that the column cannot be exposed. */
  readonly type: TypeName | null;
  /** The type as a manifest spells it, such as `varchar(20)`; null if the model has no equivalent. */
  readonly declared: string | null;
  /** Value of the manifest's `stored`, for a type that is read as text; otherwise null. */
  readonly stored: string | null;
  readonly labels: readonly string[] | null;
  readonly nullable: boolean;
  /** True if the governed role may read the column. */
  readonly readable: boolean;
  readonly comment: string | null;
}

export interface CandidateLink {
  readonly name: string;
  readonly comment: string | null;
  readonly columns: readonly string[];
  readonly references: {
    readonly schema: string;
    readonly table: string;
    readonly columns: readonly string[];
    readonly entity: string | null;
  };
}

/**
 * Returns the two foreign keys in the key of a bridge candidate. Foreign keys outside the key, such as `created_by`, are
 * left out.
 */
export function bridgeSides({ key, foreign_keys }: AdoptionCandidate): readonly CandidateLink[] {
  const links = foreign_keys.filter((link) => link.columns.every((c) => key.includes(c)));
  const [left] = links;
  // The same foreign key may be declared twice.
  const right = links.find((link) => !link.columns.every((c) => left?.columns.includes(c)));
  return [left, right].filter((link) => link !== undefined);
}

/** Returns candidates for the relations of all databases, by connector. No two have the same name. Pure. */
export function candidatesInAll(
  upstreams: Iterable<readonly [connector: string, UpstreamSchema]>,
  manifest: Manifest,
): readonly AdoptionCandidate[] {
  const names = NameAllocator.of(manifest);
  return [...upstreams].flatMap(([connector, upstream]) =>
    candidatesIn(upstream, connector, manifest, names),
  );
}

/** Returns candidates for the relations that the manifest does not use, in the order of `upstream`. */
export function candidatesIn(
  upstream: UpstreamSchema,
  connector: string,
  manifest: Manifest,
  names: NameAllocator = NameAllocator.of(manifest),
): readonly AdoptionCandidate[] {
  const adopted = adoptedTables(manifest, connector);
  const referring = referrers(upstream);
  return upstream.relations
    .filter((r) => !adopted.has(tableKey(r)))
    .map((relation) => {
      const name = names.free(relation.name, relation.schema);
      return candidateOf(relation, {
        connector,
        name,
        adopted,
        referring: referring.get(tableKey(relation)) ?? 0,
      });
    });
}

/** Proposes the adoption of one relation, even if the manifest already uses it. */
export function candidateFor(
  relation: UpstreamRelation,
  upstream: UpstreamSchema,
  connector: string,
  manifest: Manifest,
): AdoptionCandidate {
  return candidateOf(relation, {
    connector,
    name: NameAllocator.of(manifest).free(relation.name, relation.schema),
    adopted: adoptedTables(manifest, connector),
    referring: referrers(upstream).get(tableKey(relation)) ?? 0,
  });
}

interface DiscoveryContext {
  readonly connector: string;
  readonly name: string;
  readonly adopted: ReadonlyMap<string, string | null>;
  readonly referring: number;
}

function candidateOf(relation: UpstreamRelation, around: DiscoveryContext): AdoptionCandidate {
  const { connector, name, adopted, referring } = around;
  const key = keyOf(relation);
  const link = linkTableOf(relation);
  const judged = link === null ? judgeEntity(relation, key, referring) : judgeLink(link);
  return Object.freeze({
    id: `${connector}.${tableKey(relation)}`,
    connector,
    schema: relation.schema,
    table: relation.name,
    kind: relation.kind,
    comment: relation.comment,
    proposal: link?.proposal ?? 'entity',
    name,
    columns: relation.columns.map((c) => ({
      name: c.name,
      upstream_type: c.type,
      type: modelType(c)?.type ?? null,
      declared: modelType(c)?.spelled ?? null,
      stored: modelType(c)?.stored ?? null,
      labels: modelType(c)?.labels ?? null,
      nullable: c.nullable,
      readable: c.readable,
      comment: c.comment,
    })),
    key: link?.key ?? key.columns,
    unique_keys: relation.uniqueKeys,
    foreign_keys: relation.foreignKeys.map(({ name, comment, columns, target }): CandidateLink => {
      const references = { schema: target.schema, table: target.name, columns: target.columns };
      const entity = adopted.get(tableKey(target)) ?? null;
      return { name, comment, columns, references: { ...references, entity } };
    }),
    row_estimate: relation.rowEstimate,
    ...judged,
  });
}

type CandidateRating = Pick<AdoptionCandidate, 'confidence' | 'evidence'>;

interface CandidateKey {
  readonly columns: readonly string[];
  readonly from: 'primary' | 'unique' | 'none';
}

function keyOf(relation: UpstreamRelation): CandidateKey {
  if (relation.primaryKey !== null) return { columns: relation.primaryKey, from: 'primary' };
  const required = new Set(relation.columns.filter((c) => !c.nullable).map((c) => c.name));
  const [smallest] = relation.uniqueKeys
    .filter((k) => k.every((c) => required.has(c)))
    .sort((a, b) => a.length - b.length);
  return smallest === undefined ? { columns: [], from: 'none' } : { columns: smallest, from: 'unique' };
}

/** Confidence points for each kind of declaration, in hundredths. */
const POINTS = { primary: 85, unique: 70, none: 25, referred: 10, viewNone: 15 } as const;

function judgeEntity(relation: UpstreamRelation, key: CandidateKey, referring: number): CandidateRating {
  const isView = relation.kind === 'view' || relation.kind === 'materialized_view';
  const evidence = [KEY_EVIDENCE[key.from](key.columns.join(', '))];
  let worth: number = key.from === 'none' && isView ? POINTS.viewNone : POINTS[key.from];
  if (referring > 0) {
    worth += POINTS.referred;
    evidence.push(`${referring} foreign key${referring === 1 ? ' refers' : 's refer'} to it`);
  }
  if (relation.inherited) evidence.push('tables inherit from it, and their rows are outside its keys');
  if (isView) evidence.push('it is a view: the database declares no keys of it');
  return { confidence: Math.min(worth, 95) / 100, evidence };
}

const KEY_EVIDENCE = {
  primary: (columns: string) => `its primary key is ${columns}`,
  unique: (columns: string) => `it has no primary key, but ${columns} is unique and never null`,
  none: () => 'no key is declared: whether its rows are things of their own cannot be told',
} as const;

function judgeLink(link: LinkTable): CandidateRating {
  const evidence = [
    `${link.sides.length} foreign keys make up its key: ${link.sides.map((s) => s.columns.join(', ')).join(' and ')}`,
  ];
  if (link.sides.length > 2)
    evidence.push('it links more than two tables, which a bridge does not: an entity does');
  if (link.payload.length > 0) evidence.push(`it says more of each link: ${link.payload.join(', ')}`);
  else if (link.filled.length > 0)
    evidence.push(`all else in it the database fills in: ${link.filled.join(', ')}`);
  else evidence.push('it has no other columns');
  return { confidence: link.filled.length > 0 ? 0.85 : 0.95, evidence };
}

/** Returns `schema.table`, for use as a map key. */
export function tableKey({ schema, name }: { readonly schema: string; readonly name: string }): string {
  return tableName({ schema, table: name });
}

/** Returns the tables that the manifest uses, with the name of their entity; null if only a bridge or facet uses it. */
function adoptedTables(manifest: Manifest, connector: string): ReadonlyMap<string, string | null> {
  const tables = new Map<string, string | null>();
  const facets = [...manifest.facets.values()].map((f) => ({ ...f, kind: 'facet' as const }));
  // A facet's relation in the catalog is its store; the source is stated in the facet itself.
  const relations = [...manifest.catalog.relations.values()].filter((r) => r.kind !== 'facet');
  for (const { kind, name, connector: of, schema, table } of [...relations, ...facets]) {
    if (of !== connector) continue;
    const key = tableName({ schema, table });
    if (kind === 'entity') tables.set(key, name);
    else if (!tables.has(key)) tables.set(key, null);
  }
  return tables;
}

function referrers({ relations }: UpstreamSchema): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const relation of relations) {
    for (const { target } of relation.foreignKeys) {
      const key = tableKey(target);
      if (key !== tableKey(relation)) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  return counts;
}

interface LinkTable {
  /** `bridge`: links two tables; its few other columns are filled in by the database. `association`: any other link. */
  readonly proposal: 'bridge' | 'association';
  readonly key: readonly string[];
  /** The foreign keys that make up `key`; at least two. */
  readonly sides: readonly UpstreamForeignKey[];
  /** Columns outside the key whose values the database fills in. */
  readonly filled: readonly string[];
  /** Columns outside the key whose values must be given. */
  readonly payload: readonly string[];
}

/** Maximum number of additional columns in a bridge, all filled in by the database (a row number, a time). */
const MAX_FILLED = 2;

/**
 * Describes a relation as a link table if at least two of its foreign keys together form one of its keys; otherwise
 * returns null. Names are not considered.
 */
function linkTableOf(relation: UpstreamRelation): LinkTable | null {
  const required = new Set(relation.columns.filter((c) => !c.nullable).map((c) => c.name));
  const keys = [
    ...(relation.primaryKey === null ? [] : [relation.primaryKey]),
    ...relation.uniqueKeys.filter((key) => key.every((c) => required.has(c))),
  ];
  for (const key of keys) {
    const sides = sidesOf(key, relation.foreignKeys);
    if (sides === null) continue;
    // A foreign key outside the key is payload, like any other column.
    const others = relation.columns.filter((c) => !key.includes(c.name));
    const filled = others.filter((c) => c.filled).map((c) => c.name);
    const payload = others.filter((c) => !c.filled).map((c) => c.name);
    const bare = sides.length === 2 && payload.length === 0 && filled.length <= MAX_FILLED;
    return { proposal: bare ? 'bridge' : 'association', key, sides, filled, payload };
  }
  return null;
}

/** Returns the foreign keys that together cover `key`; null if they do not cover it, or if there are fewer than two. */
function sidesOf(
  key: readonly string[],
  links: readonly UpstreamForeignKey[],
): readonly UpstreamForeignKey[] | null {
  const sides: UpstreamForeignKey[] = [];
  const covered = new Set<string>();
  for (const link of links) {
    if (!link.columns.every((c) => key.includes(c))) continue;
    // Two foreign keys on the same columns are one link, declared twice.
    if (link.columns.every((c) => covered.has(c))) continue;
    sides.push(link);
    for (const column of link.columns) covered.add(column);
  }
  return sides.length >= 2 && covered.size === key.length ? sides : null;
}
