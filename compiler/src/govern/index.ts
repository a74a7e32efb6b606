import { type Access, rowAccess } from '../access.js';
import type { BoundPlan } from '../bind/index.js';
import type { Catalog } from '../catalog.js';
import { InternalError } from '../errors.js';
import type { Expr, FromItem, GovernedScan, Operation, Query, Select, SourceId } from '../plan.js';
import { allQueries, leavesOf, mapChildren, mapQuery, visitExpr } from '../walk.js';
import { type Barrier, isLeakproof, scansToFence } from './barrier.js';
import { GovernedPlan, type GovernedRuntime, type GovernedStore, mint } from './governed-plan.js';
import { type ScanAccesses, scanAccesses } from './groups.js';
import { isKeyCondition, isKeyEquality, joinKeys, onKeys } from './keys.js';
import { Lineage } from './lineage.js';
import { columnRule, maskComputes } from './mask.js';
import { keepMinima } from './minimum.js';
import { breakTies } from './order.js';
import { describeOutputs } from './outputs.js';
import { governRuntime } from './runtime.js';
import { governScan } from './scan.js';
import { GovernedSlots } from './slots.js';
import { verify } from './verify.js';

export { GovernedPlan };

/**
 * Applies policy to a bound plan: each scan becomes row filter, then masked projection, before anything else sees
 * it. Plans that read the store of a facet are made beside it, in `stores.ts`; nowhere else is a `GovernedPlan` made.
 *
 * @param compileHop compiles the steps of a traversal, which are OSL-SQL, under the same access
 * @throws QueryError E0515 for a join on a key that is not clear, E2103 for rows that may only be aggregated
 */
export function govern(
  plan: BoundPlan,
  access: Access,
  catalog: Catalog,
  compileHop: (text: string) => GovernedPlan,
): GovernedPlan {
  const slots = new GovernedSlots(plan.slots);
  const accesses = scanAccesses(plan.query, access, plan.literals);
  const bound = breakTies(plan.query, accesses);
  const lineage = new Lineage(bound);
  const barrier: Barrier = {
    lineage,
    literals: plan.literals,
    maskTells: (scan, name) => maskComputes(columnRule(scan.relation, name, accesses.of(scan).access)),
  };
  const fenced = scansToFence(bound, barrier);
  const keys = joinKeys(bound, lineage, accesses, plan);
  const scanned = mapQuery(bound, {
    item: (i) =>
      i.kind === 'entity' ? governScan(i, accesses.of(i), keys.get(i.id), fenced.has(i.id), slots) : i,
  });
  const keyed = keys.size === 0 ? scanned : joinedOnKeys(scanned, keys);
  const pushed = fenced.size === 0 ? keyed : mapSelects(keyed, (q) => pushPredicates(q, barrier));
  const query = keepMinima(pushed, slots);
  const runtime = governRuntime(plan.runtime, slots, access, catalog, compileHop);
  const grounded = slots.finish();
  verify(query, grounded, plan.form);
  return mint({
    form: plan.form,
    query,
    runtime,
    slots: grounded,
    clientOids: plan.clientOids,
    ...describeOutputs(plan, query, runtime),
    accessSignature: access.signature,
    catalogVersion: catalog.version,
    policyVersion: access.policyVersion,
    grants: grantsUsed(query, runtime, access, accesses),
  });
}

function mapSelects(query: Query, f: (q: Select) => Select): Query {
  return mapQuery(query, { query: (q) => (q.kind === 'select' ? f(q) : q) });
}

function joinedOnKeys(query: Query, keys: ReadonlyMap<SourceId, ReadonlySet<string>>): Query {
  return mapQuery(query, {
    expr: (e) => inOnKeys(e, keys),
    query: (q) => (q.kind === 'select' ? withKeys(q, keys) : q),
  });
}

/** Joins and correlations on the key variants of masked keys. */
function withKeys(query: Select, keys: ReadonlyMap<SourceId, ReadonlySet<string>>): Select {
  const on = (e: Operation): Operation =>
    Object.freeze({
      ...e,
      left: e.left === null ? null : onKeys(e.left, keys),
      right: onKeys(e.right, keys),
    });
  const from = (item: FromItem): FromItem => {
    if (item.kind !== 'join') return item;
    const [left, right] = [from(item.left), from(item.right)];
    return item.sealed
      ? Object.freeze({ ...item, left, right, on: Object.freeze(item.on.map(on)) })
      : Object.freeze({
          ...item,
          left,
          right,
          on: Object.freeze(item.on.map((e) => (isKeyEquality(e) ? on(e) : e))),
        });
  };
  return Object.freeze({
    ...query,
    from: query.from === null ? null : from(query.from),
    where: Object.freeze(query.where.map((c) => (isKeyCondition(c, query) ? on(c) : c))),
  });
}

/** An IN over a subquery on the key variants of both its sides. */
function inOnKeys(expr: Expr, keys: ReadonlyMap<SourceId, ReadonlySet<string>>): Expr {
  if (expr.kind !== 'in_query' || expr.query.kind !== 'select') return expr;
  const outputs = expr.query.outputs.map((o) => Object.freeze({ ...o, expr: onKeys(o.expr, keys) }));
  const query = Object.freeze({ ...expr.query, outputs: Object.freeze(outputs) });
  return Object.freeze({ ...expr, arg: onKeys(expr.arg, keys), query });
}

/**
 * Moves leakproof conjuncts over one fenced scan inside its fence, beside the filter, where they can use an index.
 * A conjunct over a side that an outer join may null stays where it is: there it would mean something else.
 */
function pushPredicates(query: Select, barrier: Barrier): Select {
  const fenced = new Map(
    strictScans(query.from)
      .filter((s) => s.fenced)
      .map((s) => [s.id, s]),
  );
  if (fenced.size === 0) return query;
  const pushed = new Map<SourceId, Expr[]>();
  const kept = query.where.filter((c) => {
    const scan = soleScan(c, fenced);
    if (scan === null || !isLeakproof(c, barrier)) return true;
    pushed.set(scan.id, [...(pushed.get(scan.id) ?? []), overBase(c, scan)]);
    return false;
  });
  const from = (item: FromItem): FromItem => {
    if (item.kind === 'join')
      return Object.freeze({ ...item, left: from(item.left), right: from(item.right) });
    const mine = item.kind === 'governed' ? pushed.get(item.id) : undefined;
    return item.kind === 'governed' && mine !== undefined
      ? Object.freeze({ ...item, pushed: Object.freeze([...item.pushed, ...mine]) })
      : item;
  };
  return Object.freeze({
    ...query,
    where: Object.freeze(kept),
    from: query.from === null ? null : from(query.from),
  });
}

/** The governed scans of a FROM whose rows WHERE filters directly: not those that an outer join may null. */
function strictScans(item: FromItem | null): readonly GovernedScan[] {
  if (item === null) return [];
  if (item.kind === 'join') {
    if (item.type === 'full') return [];
    return [...strictScans(item.left), ...(item.type === 'inner' ? strictScans(item.right) : [])];
  }
  return item.kind === 'governed' ? [item] : [];
}

function soleScan(expr: Expr, scans: ReadonlyMap<SourceId, GovernedScan>): GovernedScan | null {
  const sources = new Set<SourceId>();
  let plain = true;
  visitExpr(expr, (e) => {
    if (e.kind === 'column') sources.add(e.source);
    if (e.kind === 'scalar_query' || e.kind === 'exists' || e.kind === 'in_query') plain = false;
  });
  const [only] = sources;
  return plain && sources.size === 1 && only !== undefined ? (scans.get(only) ?? null) : null;
}

/** `expr` over the scan's own columns, each in the form that this caller sees. */
function overBase(expr: Expr, scan: GovernedScan): Expr {
  if (expr.kind !== 'column')
    return mapChildren(
      expr,
      (e) => overBase(e, scan),
      (q) => q,
    );
  const column = scan.columns.find((c) => c.name === expr.name);
  if (column === undefined)
    throw new InternalError(`scan of ${scan.relation.name} has no column ${expr.name}`);
  return column.expr;
}

function grantsUsed(
  query: Query,
  runtime: readonly GovernedRuntime[],
  access: Access,
  accesses: ScanAccesses,
): readonly string[] {
  const ids = new Set(runtime.flatMap((r) => grantsOfSteps(r, access)));
  for (const level of allQueries(query)) {
    if (level.kind !== 'select') continue;
    for (const leaf of leavesOf(level.from)) {
      if (leaf.kind === 'governed') for (const g of accesses.of(leaf).access.grants) ids.add(g.id);
    }
  }
  return Object.freeze([...ids].sort());
}

/** A passage rests on the grants of its facet and of the entity that it is about; a walk on those of its hops. */
function grantsOfSteps(runtime: GovernedRuntime, access: Access): readonly string[] {
  const ofStore = ({ facet }: GovernedStore): readonly string[] =>
    [facet.name, facet.entity].flatMap((n) => rowAccess(n, access)?.grants.map((g) => g.id) ?? []);
  switch (runtime.kind) {
    case 'retrieval':
      return runtime.store === null ? [] : ofStore(runtime.store);
    case 'traversal':
      return runtime.hops.flatMap((h) => h.grants);
    case 'hydration':
      return runtime.stores.flatMap(ofStore);
    default: {
      const unknown: never = runtime;
      return unknown;
    }
  }
}
