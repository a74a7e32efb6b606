import type { EntityScan, Expr, InQuery, Query } from '../../plan/plan.js';
import { isVolatile } from '../../plan/relations-read.js';
import { allQueries, exprsOf, leavesOf, queryOf, visitExpr } from '../../plan/walk.js';
import type { ScopeItem } from '../scope.js';
import type { RetrievalDraft } from './runtime-draft.js';

/**
 * Adds conjuncts that the store can apply before it chooses the best passages to each RETRIEVE among `items`:
 * semi-joins on indexed fields. Also records whether other conjuncts filter later. All of them stay in WHERE.
 *
 * @param strict items whose rows WHERE filters directly
 */
export function noteKeyFilters(
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
      else if (looksElsewhere(conjunct, draft.source)) draft.filteredAfter ??= alias;
    }
  }
}

function keyFilterOf(conjunct: Expr, draft: RetrievalDraft): InQuery | null {
  const negated = conjunct.kind === 'not';
  const found = negated ? conjunct.arg : conjunct;
  if (found.kind !== 'in_query' || found.arg.kind !== 'column') return null;
  const { source, name } = found.arg;
  if (source !== draft.source || !draft.facet.scalarIndexed.includes(name)) return null;
  if (!standsByItself(found.query, draft.facet.connector)) return null;
  return negated ? Object.freeze({ ...found, negated: !found.negated }) : found;
}

function standsByItself(root: Query, connector: string): boolean {
  const isBeside = ({ relation, sample }: EntityScan): boolean =>
    relation.connector === connector && sample === undefined;
  return standsAlone(root, isBeside) && !isVolatile(root);
}

/** True if `root` is uncorrelated and reads only entities that satisfy `isReadable`, and no runtime relations. */
export function standsAlone(root: Query, isReadable: (scan: EntityScan) => boolean): boolean {
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

function looksElsewhere(conjunct: Expr, source: number): boolean {
  let elsewhere = false;
  visitExpr(conjunct, (e) => {
    if (queryOf(e) !== null || (e.kind === 'column' && e.source !== source)) elsewhere = true;
  });
  return elsewhere;
}
