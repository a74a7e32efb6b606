import type { Catalog, Edge, Relation } from '../../catalog/catalog.js';
import type { BindContext } from '../context.js';
import { columnsFor } from '../scope.js';

/** A declared link in one direction: `fromColumns[i]` equals `toColumns[i]`. */
export interface LinkStep {
  readonly edge: string;
  readonly from: string;
  readonly to: string;
  readonly fromColumns: readonly string[];
  readonly toColumns: readonly string[];
  readonly bridge: string | null;
  /** True if a row of `from` links to at most one of `to`. */
  readonly toOne: boolean;
}

/** Links from one entity to another; empty if they are the same. */
export type LinkRoute = readonly LinkStep[];

const byCatalog = new WeakMap<Catalog, ReadonlyMap<string, readonly LinkStep[]>>();

/** Links out of `entity` that this caller may see and join on, in declared order. */
export function stepsFrom(entity: string, ctx: BindContext): readonly LinkStep[] {
  const known = byCatalog.get(ctx.catalog) ?? stepsOf(ctx.catalog);
  byCatalog.set(ctx.catalog, known);
  return (known.get(entity) ?? []).filter(
    (s) =>
      mayJoin(s.from, s.fromColumns, ctx) &&
      mayJoin(s.to, s.toColumns, ctx) &&
      (s.bridge === null || ctx.access.relations.has(s.bridge)),
  );
}

function mayJoin(entity: string, columns: readonly string[], ctx: BindContext): boolean {
  const relation = ctx.catalog.relations.get(entity);
  const access = ctx.access.relations.get(entity);
  if (relation === undefined || access === undefined) return false;
  const visible = columnsFor(relation, access);
  return columns.every((c) => visible.get(c)?.denied === false);
}

function stepsOf(catalog: Catalog): ReadonlyMap<string, readonly LinkStep[]> {
  const steps = new Map<string, LinkStep[]>();
  for (const edge of catalog.edges) {
    for (const step of [forward(edge, catalog), backward(edge, catalog)]) {
      const known = steps.get(step.from);
      if (known === undefined) steps.set(step.from, [step]);
      else known.push(step);
    }
  }
  return steps;
}

function forward(edge: Edge, catalog: Catalog): LinkStep {
  const { name, from, to, fromColumns, toColumns, bridge } = edge;
  const toOne = bridge === null && isKey(catalog.relations.get(to), toColumns);
  return Object.freeze({ edge: name, from, to, fromColumns, toColumns, bridge: bridge?.name ?? null, toOne });
}

function backward(edge: Edge, catalog: Catalog): LinkStep {
  const { name, from, to, fromColumns, toColumns, bridge } = edge;
  return Object.freeze({
    edge: name,
    from: to,
    to: from,
    fromColumns: toColumns,
    toColumns: fromColumns,
    bridge: bridge?.name ?? null,
    toOne: bridge === null && isKey(catalog.relations.get(from), fromColumns),
  });
}

/** True if `columns` include the primary key. */
function isKey(relation: Relation | undefined, columns: readonly string[]): boolean {
  const key = relation?.primaryKey ?? [];
  return key.length > 0 && key.every((k) => columns.includes(k));
}

/** All shortest routes over steps accepted by `may`. */
export function shortestRoutes(
  from: string,
  to: string,
  ctx: BindContext,
  may: (step: LinkStep) => boolean,
): readonly LinkRoute[] {
  let reached: readonly LinkRoute[] = [[]];
  const seen = new Set([from]);
  if (from === to) return reached;
  while (reached.length > 0) {
    const further = reached.flatMap((route) =>
      stepsFrom(route.at(-1)?.to ?? from, ctx)
        .filter((s) => may(s) && !seen.has(s.to))
        .map((s): LinkRoute => [...route, s]),
    );
    const arrived = further.filter((r) => r.at(-1)?.to === to);
    if (arrived.length > 0) return arrived;
    for (const route of further) seen.add(route.at(-1)?.to ?? from);
    reached = further.slice(0, MOST_ROUTES);
  }
  return [];
}

/** Bounds the work; beyond it only alternative routes to the same entities are lost. */
const MOST_ROUTES = 10_000;
