import type { Access, RelationAccess } from '../access.js';
import type { BoundPlan } from '../bind/index.js';
import { InternalError } from '../errors.js';
import type { EntityScan, Expr, FromItem, GovernedScan, Query, Select, SourceId } from '../plan.js';
import { allQueries, leavesOf, mapChildren, mapQuery, visitExpr } from '../walk.js';
import { isLeakproof, scansToFence } from './barrier.js';
import { GovernedPlan, mint } from './governed-plan.js';
import { isCorrelation, joinKeys, onKeys } from './keys.js';
import { Lineage } from './lineage.js';
import { columnRule, keyColumn, maskedColumn, rowFilter } from './mask.js';
import { breakTies } from './order.js';
import { describeOutputs } from './outputs.js';
import { GovernedSlots } from './slots.js';
import { verify } from './verify.js';

export { GovernedPlan };

/**
 * Applies policy to a bound plan: each scan becomes row filter, then masked projection, before anything else sees
 * it. This is the one place where a `GovernedPlan` is made.
 *
 * @throws QueryError E0515 for a join on a key that is not clear
 */
export function govern(plan: BoundPlan, access: Access, catalogVersion: string): GovernedPlan {
  const slots = new GovernedSlots(plan.slots);
  const bound = orderedQuery(plan.query, access);
  const lineage = new Lineage(bound);
  const fenced = scansToFence(bound, lineage);
  const keys = joinKeys(bound, lineage, access);
  const scanned = mapQuery(bound, {
    expr: (e) => e,
    item: (i) => (i.kind === 'entity' ? governScan(i, access, keys.get(i.id), fenced.has(i.id), slots) : i),
  });
  const keyed = mapSelects(scanned, (q) => withKeys(q, keys));
  const query = mapSelects(keyed, (q) => pushPredicates(q, lineage));
  const grounded = slots.finish();
  verify(query, grounded);
  return mint({
    form: plan.form,
    query,
    slots: grounded,
    clientTypes: plan.clientTypes,
    ...describeOutputs(plan, query),
    accessSignature: access.signature,
    catalogVersion,
    policyVersion: access.policyVersion,
    grants: grantsUsed(query, access),
  });
}

function accessTo(scan: EntityScan | GovernedScan, access: Access): RelationAccess {
  const found = access.relations.get(scan.relation.name);
  if (found === undefined || found.grants.length === 0)
    throw new InternalError(`no grant reaches ${scan.relation.name}`);
  return found;
}

function governScan(
  scan: EntityScan,
  access: Access,
  keys: ReadonlySet<string> | undefined,
  fence: boolean,
  slots: GovernedSlots,
): GovernedScan {
  const allowed = accessTo(scan, access);
  const rules = scan.columns.map((name) => columnRule(scan.relation, name, allowed));
  const filter = rowFilter(allowed, slots);
  const shown = rules.map((r) => maskedColumn(r, slots));
  const joined = rules.filter((r) => keys?.has(r.column.name) === true).map((r) => keyColumn(r, slots));
  return Object.freeze({
    kind: 'governed',
    id: scan.id,
    relation: scan.relation,
    columns: Object.freeze([...shown, ...joined]),
    filter,
    pushed: Object.freeze([]),
    fenced: fence && filter !== null,
  });
}

/** Breaks ties with keys, which the scans must then read too. */
function orderedQuery(query: Query, access: Access): Query {
  const extra = new Map<SourceId, Set<string>>();
  const keysOf = (item: FromItem): readonly Expr[] => {
    if (item.kind !== 'entity') return derivedKeys(item);
    const allowed = accessTo(item, access);
    const clear = item.relation.primaryKey.every(
      (k) =>
        allowed.grants.some((g) => g.columns.has(k)) &&
        columnRule(item.relation, k, allowed).masked === 'none',
    );
    const names = clear && item.relation.primaryKey.length > 0 ? item.relation.primaryKey : item.columns;
    const known = extra.get(item.id) ?? new Set();
    for (const n of names) known.add(n);
    extra.set(item.id, known);
    return names.map((name) => {
      const type = item.relation.columns.find((c) => c.name === name)?.type ?? 'text';
      return Object.freeze({ kind: 'column', source: item.id, name, type });
    });
  };
  const ordered = mapEach(query, (q) => breakTies(q, keysOf));
  return mapQuery(ordered, {
    expr: (e) => e,
    item: (i) => {
      const more = i.kind === 'entity' ? extra.get(i.id) : undefined;
      if (i.kind !== 'entity' || more === undefined) return i;
      return Object.freeze({ ...i, columns: Object.freeze([...new Set([...i.columns, ...more])].sort()) });
    },
  });
}

function derivedKeys(item: FromItem): readonly Expr[] {
  if (item.kind !== 'derived') return [];
  const { query } = item;
  const columns =
    query.kind === 'select' ? query.outputs.map((o) => o.expr.type) : query.columns.map((c) => c.type);
  return columns.map((type, i) =>
    Object.freeze({ kind: 'column', source: item.id, name: `c${i + 1}`, type }),
  );
}

/** Rebuilds every query of the tree, innermost first. */
function mapEach(query: Query, f: (q: Query) => Query): Query {
  const deep = (e: Expr): Expr => mapChildren(e, deep, (q) => mapEach(q, f));
  const inner = mapLevel(query, deep, (q) => mapEach(q, f));
  return f(inner);
}

function mapSelects(query: Query, f: (q: Select) => Select): Query {
  return mapEach(query, (q) => (q.kind === 'select' ? f(q) : q));
}

/** One level rebuilt: its own values by `deep`, the queries directly below it by `q`. */
function mapLevel(query: Query, deep: (e: Expr) => Expr, q: (query: Query) => Query): Query {
  const all = (list: readonly Expr[]): readonly Expr[] => Object.freeze(list.map(deep));
  if (query.kind === 'values') return Object.freeze({ ...query, rows: Object.freeze(query.rows.map(all)) });
  const common = Object.freeze(query.with.map((t) => Object.freeze({ ...t, query: q(t.query) })));
  if (query.kind === 'set_operation')
    return Object.freeze({ ...query, with: common, left: q(query.left), right: q(query.right) });
  const from = (item: FromItem): FromItem => {
    if (item.kind === 'join')
      return Object.freeze({ ...item, left: from(item.left), right: from(item.right) });
    return item.kind === 'derived' ? Object.freeze({ ...item, query: q(item.query) }) : item;
  };
  return Object.freeze({
    ...query,
    with: common,
    from: query.from === null ? null : from(query.from),
    where: all(query.where),
    having: all(query.having),
    outputs: Object.freeze(query.outputs.map((o) => Object.freeze({ ...o, expr: deep(o.expr) }))),
  });
}

/** Join conditions on the key variants of masked keys. */
function withKeys(query: Select, keys: ReadonlyMap<SourceId, ReadonlySet<string>>): Select {
  if (keys.size === 0) return query;
  const on = (e: Expr): Expr => onKeys(e, keys);
  const from = (item: FromItem): FromItem =>
    item.kind !== 'join'
      ? item
      : Object.freeze({
          ...item,
          left: from(item.left),
          right: from(item.right),
          on: Object.freeze(
            item.on.map((o) =>
              Object.freeze({ ...o, left: o.left === null ? null : on(o.left), right: on(o.right) }),
            ),
          ),
        });
  const where = query.where.map((c) => {
    if (isCorrelation(c, query))
      return Object.freeze({ ...c, left: c.left === null ? null : on(c.left), right: on(c.right) });
    return inQueryOnKeys(c, on);
  });
  return Object.freeze({
    ...query,
    from: query.from === null ? null : from(query.from),
    where: Object.freeze(where),
  });
}

function inQueryOnKeys(expr: Expr, on: (e: Expr) => Expr): Expr {
  const mapped = mapChildren(
    expr,
    (e) => inQueryOnKeys(e, on),
    (q) => q,
  );
  if (mapped.kind !== 'in_query' || mapped.query.kind !== 'select') return mapped;
  const outputs = mapped.query.outputs.map((o, i) =>
    i === 0 ? Object.freeze({ ...o, expr: on(o.expr) }) : o,
  );
  return Object.freeze({
    ...mapped,
    arg: on(mapped.arg),
    query: Object.freeze({ ...mapped.query, outputs: Object.freeze(outputs) }),
  });
}

/**
 * Moves leakproof conjuncts over one fenced scan inside its fence, beside the filter, where they can use an index.
 * A conjunct over the inner side of a LEFT JOIN stays where it is: there it would mean something else.
 */
function pushPredicates(query: Select, lineage: Lineage): Select {
  const fenced = new Map(
    strictScans(query.from)
      .filter((s) => s.fenced)
      .map((s) => [s.id, s]),
  );
  if (fenced.size === 0) return query;
  const pushed = new Map<SourceId, Expr[]>();
  const kept = query.where.filter((c) => {
    const scan = soleScan(c, fenced);
    if (scan === null || !isLeakproof(c, lineage)) return true;
    pushed.set(scan.id, [...(pushed.get(scan.id) ?? []), overBase(c, scan)]);
    return false;
  });
  const from = (item: FromItem): FromItem => {
    if (item.kind === 'join')
      return Object.freeze({ ...item, left: from(item.left), right: from(item.right) });
    const mine = item.kind === 'governed' ? pushed.get(item.id) : undefined;
    return item.kind === 'governed' && mine !== undefined
      ? Object.freeze({ ...item, pushed: Object.freeze(mine) })
      : item;
  };
  return Object.freeze({
    ...query,
    where: Object.freeze(kept),
    from: query.from === null ? null : from(query.from),
  });
}

/** The governed scans of a FROM whose rows WHERE filters directly: not those that a LEFT JOIN may null. */
function strictScans(item: FromItem | null): readonly GovernedScan[] {
  if (item === null) return [];
  if (item.kind === 'join')
    return [...strictScans(item.left), ...(item.type === 'inner' ? strictScans(item.right) : [])];
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

function grantsUsed(query: Query, access: Access): readonly string[] {
  const ids = new Set<string>();
  for (const level of allQueries(query)) {
    if (level.kind !== 'select') continue;
    for (const leaf of leavesOf(level.from)) {
      if (leaf.kind === 'governed') for (const g of accessTo(leaf, access).grants) ids.add(g.id);
    }
  }
  return Object.freeze([...ids].sort());
}
