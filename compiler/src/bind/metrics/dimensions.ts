import type { Catalog, Relation } from '../../catalog/catalog.js';
import { type Grain, isDayOrLonger, parseGrain } from '../../catalog/grain.js';
import type { Expr } from '../../plan/plan.js';
import { nearest } from '../../text/text.js';
import type { BindContext } from '../context.js';
import { columnsOf as columnsWithComputed } from '../manifest/computed.js';
import type { ScopeColumn } from '../scope.js';
import { columnOf, type DimensionLink, type EntityRows, stepsFrom } from './entity-rows.js';
import { isTime, periodStart } from './time.js';

export interface DimensionKey {
  /** Name of the key's output column: `{name}` or `{name}__{grain}`. */
  readonly name: string;
  readonly dimension: MetricDimension;
  /** Grain to which times are truncated; null if the dimension is not a time, or if its values are not truncated. */
  readonly grain: Grain | null;
}

/**
 * Returns the grouping key for a dimension. Times are truncated to `grain` or the grain in the name, else to
 * `fallback`.
 *
 * @throws QueryError E0511 if a dimension that is not a time has a grain, or if the two grains differ
 */
export function keyOf(
  { dimension, grain: ofName }: NamedDimension,
  grain: Grain | null,
  fallback: Grain,
  ctx: BindContext,
): DimensionKey {
  const { shown } = dimension;
  if (ofName !== null && grain !== null && ofName !== grain)
    throw mismatch(`\`${shown}\` is asked for by ${ofName} and by ${grain}`, ctx);
  const wanted = grain ?? ofName;
  if (dimension.kind === 'column' && !isTime(dimension.column.type)) {
    if (wanted !== null) throw mismatch(`\`${shown}\` is not time, so it has no grain`, ctx);
    return { name: shown, dimension, grain: null };
  }
  const cut = wanted ?? fallback;
  return { name: `${shown}__${cut}`, dimension, grain: cut };
}

function mismatch(detail: string, ctx: BindContext) {
  return ctx.mismatch(detail, undefined);
}

/** True if both keys have the same value in every row. */
export function sameKey(a: DimensionKey, b: DimensionKey): boolean {
  return a.name === b.name && a.grain === b.grain;
}

/**
 * Returns the key's value for each row of `source`.
 *
 * @param metric the requested metric, for messages
 * @throws QueryError E1001 if there is no time dimension or not exactly one shortest to-one route, or if the grain is
 * too fine for a date; E2101 if policy denies a column
 */
export function valueOfKey(key: DimensionKey, source: EntityRows, metric: string, ctx: BindContext): Expr {
  const { dimension, grain } = key;
  const value =
    dimension.kind === 'metric_time'
      ? timeOf(source, metric, ctx)
      : source.column(dimension.links, dimension.column.name, metric);
  if (grain === null) return value;
  if (value.type === 'date' && !isDayOrLonger(grain)) {
    const detail = `\`${dimension.shown}\` of metric \`${metric}\` is a date, which has no ${grain}`;
    throw ctx.unresolvable(detail, undefined);
  }
  return periodStart(value, grain, ctx);
}

/**
 * Returns the time dimension of the metric's rows.
 *
 * @throws QueryError E1001 if the entity declares none, or if it is hidden from the caller
 */
export function timeOf(source: EntityRows, metric: string, ctx: BindContext): Expr {
  const { root } = source;
  const name = root.relation?.timeDimension;
  if (name === undefined || !root.columns.has(name)) {
    const detail = `metric \`${metric}\` has no \`metric_time\`: \`${root.alias}\` has no time dimension`;
    throw ctx.unresolvable(detail, undefined, 'group by a time of another name');
  }
  return columnOf(root, name, ctx);
}

type MetricDimension =
  | { readonly kind: 'metric_time'; readonly shown: string }
  | {
      readonly kind: 'column';
      /** The name as declared, without the grain. */
      readonly shown: string;
      readonly links: readonly DimensionLink[];
      readonly relation: Relation;
      readonly column: ScopeColumn;
    };

export interface NamedDimension {
  readonly dimension: MetricDimension;
  readonly grain: Grain | null;
}

const METRIC_TIME = 'metric_time';

/**
 * Resolves a dimension: `metric_time`, `entity__column`, an entity (meaning its key), or any of these with `__grain`. A
 * relationship may be used instead of an entity, and a path may have several elements. Names are case-insensitive.
 *
 * @throws QueryError E0512 if no such dimension is visible to this caller; E2101 if policy denies its entity
 */
export function dimensionNamed(name: string, ctx: BindContext): NamedDimension {
  const words = name.toLowerCase().split('__');
  if (words[0] === METRIC_TIME && words.length <= 2) {
    const grain = words[1] === undefined ? null : parseGrain(words[1]);
    if (words.length === 1 || grain !== null)
      return { dimension: { kind: 'metric_time', shown: METRIC_TIME }, grain };
  }
  const found = resolveWords(words, [], null, ctx);
  if (found === null) {
    refuseDenied(words, ctx);
    throw unknownDimension(name, words, ctx);
  }
  return found;
}

/** Resolves `words` as a column of `at`, else via a link. Tries all splits: names may contain `__`. */
function resolveWords(
  words: readonly string[],
  links: readonly DimensionLink[],
  at: Relation | null,
  ctx: BindContext,
): NamedDimension | null {
  if (links.length > MOST_LINKS) return null;
  const here = at === null ? null : asColumn(words, links, at, ctx);
  if (here !== null) return here;
  for (let cut = 1; cut <= words.length; cut++) {
    const head = words.slice(0, cut).join('__');
    const rest = words.slice(cut);
    for (const { link, relation } of linksNamed(head, at, ctx)) {
      const way = [...links, link];
      const found = rest.length === 0 ? asKey(way, relation, ctx) : resolveWords(rest, way, relation, ctx);
      if (found !== null) return found;
    }
  }
  return null;
}

const MOST_LINKS = 8;

function asColumn(
  words: readonly string[],
  links: readonly DimensionLink[],
  relation: Relation,
  ctx: BindContext,
): NamedDimension | null {
  const whole = columnNamed(words.join('__'), relation, ctx);
  if (whole !== null) return { dimension: dimensionOf(links, relation, whole), grain: null };
  const grain = parseGrain(words.at(-1) ?? '');
  const column = grain === null ? null : columnNamed(words.slice(0, -1).join('__'), relation, ctx);
  return column === null ? null : { dimension: dimensionOf(links, relation, column), grain };
}

/** Resolves a bare entity name to the entity's key; null if the key is composite or hidden. */
function asKey(links: readonly DimensionLink[], relation: Relation, ctx: BindContext): NamedDimension | null {
  const [key, ...more] = relation.primaryKey;
  const column = key === undefined || more.length > 0 ? null : columnNamed(key.toLowerCase(), relation, ctx);
  if (column === null) return null;
  const shown = links.map(nameOfLink).join('__');
  return { dimension: { kind: 'column', shown, links, relation, column }, grain: null };
}

function dimensionOf(
  links: readonly DimensionLink[],
  relation: Relation,
  column: ScopeColumn,
): MetricDimension {
  const shown = [...links.map(nameOfLink), column.name].join('__');
  return { kind: 'column', shown, links, relation, column };
}

function nameOfLink(link: DimensionLink): string {
  return link.kind === 'entity' ? link.entity : link.name;
}

function columnNamed(lower: string, relation: Relation, ctx: BindContext): ScopeColumn | null {
  for (const column of columnsOf(relation, ctx).values()) {
    if (column.name.toLowerCase() === lower) return column;
  }
  return null;
}

function columnsOf(relation: Relation, ctx: BindContext): ReadonlyMap<string, ScopeColumn> {
  const access = ctx.access.relations.get(relation.name);
  return access === undefined ? new Map() : columnsWithComputed(relation, access, ctx);
}

/** Returns the links named `lower`: a visible entity, or relationships that start at `at` (at any entity if null). */
function linksNamed(
  lower: string,
  at: Relation | null,
  ctx: BindContext,
): readonly { readonly link: DimensionLink; readonly relation: Relation }[] {
  const { entities, edges } = namesOf(ctx.catalog);
  const entity = entities.get(lower);
  const seen = entity !== undefined && ctx.access.relations.has(entity.name);
  const links = seen ? [{ link: { kind: 'entity', entity: entity.name } as const, relation: entity }] : [];
  const steps = (edges.get(lower) ?? [])
    .flatMap((from) => stepsFrom(from, ctx))
    .filter((s) => s.toOne && s.edge.toLowerCase() === lower && (at === null || s.from === at.name));
  return [
    ...links,
    ...steps.flatMap((s) => {
      const relation = ctx.catalog.relations.get(s.to);
      const link = { kind: 'relationship', name: s.edge, from: s.from, to: s.to } as const;
      return relation === undefined ? [] : [{ link, relation }];
    }),
  ];
}

interface MetricEndpoints {
  readonly entities: ReadonlyMap<string, Relation>;
  readonly edges: ReadonlyMap<string, readonly string[]>;
}

const byCatalog = new WeakMap<Catalog, MetricEndpoints>();

/** Indexes entities and links by lower-case name. No two names in a manifest differ only in case. */
function namesOf(catalog: Catalog): MetricEndpoints {
  const known = byCatalog.get(catalog);
  if (known !== undefined) return known;
  const entities = [...catalog.relations.values()].filter((r) => r.kind === 'entity');
  const edges = catalog.edges.filter((e) => e.bridge === null);
  const names = {
    entities: new Map(entities.map((r) => [r.name.toLowerCase(), r])),
    edges: new Map(edges.map((e) => [e.name.toLowerCase(), [...new Set([e.from, e.to])]])),
  };
  byCatalog.set(catalog, names);
  return names;
}

/** @throws QueryError E2101 if `words` start with the name of an entity that policy denies entirely */
function refuseDenied(words: readonly string[], ctx: BindContext): void {
  const { entities } = namesOf(ctx.catalog);
  for (let cut = words.length; cut > 0; cut--) {
    const entity = entities.get(words.slice(0, cut).join('__'));
    ctx.refuseDenied(entity?.name, entity?.name ?? '', undefined);
  }
}

/** Returns the error for an unknown dimension. It suggests only names visible to this caller. */
function unknownDimension(name: string, words: readonly string[], ctx: BindContext) {
  const { entities } = namesOf(ctx.catalog);
  const seen = [...entities.values()].filter((e) => ctx.access.relations.has(e.name));
  const columns = (e: Relation): readonly string[] =>
    [...columnsOf(e, ctx).values()].filter((c) => !c.denied).map((c) => `${e.name}__${c.name}`);
  const entity = seen.find((e) => e === entities.get(words[0] ?? ''));
  const known = entity === undefined ? [METRIC_TIME, ...seen.map((e) => e.name)] : columns(entity);
  const column = `__${words.join('__')}`; // perhaps without its entity
  const whole =
    entity === undefined ? seen.flatMap(columns).find((n) => n.toLowerCase().endsWith(column)) : undefined;
  const near = whole ?? nearest(name.slice(0, LONGEST), known);
  return ctx.error('unknownDimension', { dimension: name, near }, undefined);
}

const LONGEST = 200;
