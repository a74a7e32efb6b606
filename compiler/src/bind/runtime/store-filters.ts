import type { EntityScan, Expr, InQuery, Query } from '../../plan/plan.js';
import { isVolatile } from '../../plan/properties.js';
import { isOfPassage } from '../../plan/runtime.js';
import { allQueries, exprsOf, leavesOf, queryOf, visitExpr } from '../../plan/walk.js';
import { identifier } from '../../text/sql-text.js';
import type { BindContext } from '../context.js';
import type { ScopeItem } from '../scope.js';
import type { RetrievalDraft } from './runtime-draft.js';

/**
 * Adds to each RETRIEVE among `items` the conjuncts that the store can apply before it chooses the best passages:
 * semijoins on indexed fields. Also records whether conjuncts over other items filter the passages later. All conjuncts
 * stay in WHERE.
 *
 * @param strict items not on the nullable side of an outer join, so that WHERE filters their rows directly
 */
export function addKeyFilters(
  where: readonly Expr[],
  items: readonly ScopeItem[],
  strict: readonly ScopeItem[],
): void {
  for (const { retrieval: draft, alias } of items) {
    if (draft === undefined) continue;
    const isStrict = strict.some((i) => i.retrieval === draft);
    for (const conjunct of where) {
      const filter = isStrict ? keyFilterOf(conjunct, draft) : null;
      if (filter !== null) draft.keyFilters.push(filter);
      else if (readsOtherItems(conjunct, draft.source)) draft.filteredAfter ??= alias;
    }
  }
}

function keyFilterOf(conjunct: Expr, draft: RetrievalDraft): InQuery | null {
  const negated = conjunct.kind === 'not';
  const found = negated ? conjunct.arg : conjunct;
  if (found.kind !== 'in_query' || found.arg.kind !== 'column') return null;
  const { source, name } = found.arg;
  if (source !== draft.source || !draft.facet.scalarIndexed.includes(name)) return null;
  if (!isFilterQuery(found.query, draft.facet.connector)) return null;
  return negated ? Object.freeze({ ...found, negated: !found.negated }) : found;
}

function isFilterQuery(root: Query, connector: string): boolean {
  const isBeside = ({ relation, sample }: EntityScan): boolean =>
    relation.connector === connector && sample === undefined;
  return isSelfContained(root, isBeside) && !isVolatile(root);
}

/** True if `root` is uncorrelated and reads neither runtime relations nor entities that fail `isReadable`. */
export function isSelfContained(root: Query, isReadable: (scan: EntityScan) => boolean): boolean {
  const levels = allQueries(root);
  const leaves = levels.flatMap((q) => (q.kind === 'select' ? leavesOf(q.from) : []));
  const own = new Set(leaves.map((l) => l.id));
  const tables = new Set(levels.flatMap((q) => (q.kind === 'values' ? [] : q.with.map((t) => t.id))));
  const readable = leaves.every((l) => {
    if (l.kind === 'entity') return isReadable(l);
    return l.kind === 'cte' ? tables.has(l.table) : l.kind === 'derived' || l.kind === 'rows';
  });
  return readable && levels.flatMap(exprsOf).every((e) => namesOnly(e, own));
}

function namesOnly(expr: Expr, own: ReadonlySet<number>): boolean {
  let only = true;
  visitExpr(expr, (e) => {
    if (e.kind === 'column') only &&= own.has(e.source);
  });
  return only;
}

function readsOtherItems(conjunct: Expr, source: number): boolean {
  let elsewhere = false;
  visitExpr(conjunct, (e) => {
    if (queryOf(e) !== null || (e.kind === 'column' && e.source !== source)) elsewhere = true;
  });
  return elsewhere;
}

/**
 * Moves conjuncts over indexed fields to the store, which applies them before it chooses the best passages. Returns the
 * other conjuncts, which filter the chosen passages.
 *
 * @throws QueryError E0511 for a filter on a field that is not indexed
 */
export function takeStoreFilters(
  where: readonly Expr[],
  items: readonly ScopeItem[],
  ctx: BindContext,
): readonly Expr[] {
  const drafts = items.flatMap((i) => (i.retrieval === undefined ? [] : [i.retrieval]));
  if (drafts.length === 0) return where;
  return where.filter((conjunct) => {
    const draft = drafts.find((d) => isOverOnly(conjunct, d.source));
    if (draft === undefined) return true;
    const fields = columnsIn(conjunct);
    const plain = fields.filter((f) => !isOfPassage(f, draft.asked) && draft.offered.has(f));
    if (plain.length === 0) return true;
    const unindexed = plain.find((f) => !draft.facet.scalarIndexed.includes(f));
    if (unindexed !== undefined || plain.length < fields.length) {
      const detail = `a filter on \`${unindexed ?? plain[0]}\` must stand alone, over indexed fields`;
      const hint = `indexed fields: ${draft.facet.scalarIndexed.map(identifier).join(', ')}`;
      throw ctx.mismatch(detail, ctx.locationOf(conjunct), hint);
    }
    draft.filters.push(conjunct);
    return false;
  });
}

function isOverOnly(expr: Expr, source: number): boolean {
  let any = false;
  let only = true;
  visitExpr(expr, (e) => {
    if (e.kind === 'column') {
      any = true;
      only &&= e.source === source;
    }
    if (queryOf(e) !== null) only = false;
  });
  return any && only;
}

function columnsIn(expr: Expr): readonly string[] {
  const names = new Set<string>();
  visitExpr(expr, (e) => {
    if (e.kind === 'column') names.add(e.name);
  });
  return [...names];
}
