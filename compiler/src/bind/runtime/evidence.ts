import { facetsOf, type Relation } from '../../catalog/catalog.js';
import { columnRef } from '../../plan/nodes.js';
import type { EntityScan, Expr, FromItem } from '../../plan/plan.js';
import { EVIDENCE } from '../../plan/runtime.js';
import { queryOf, someExpr } from '../../plan/walk.js';
import { identifier } from '../../text/sql-text.js';
import { arrayOf, isArray, type TypeName } from '../../types/types.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { infix } from '../expressions/operands.js';
import type { ScopeColumn, ScopeItem } from '../scope.js';
import { draftScan, type HydrationDraft } from './runtime-draft.js';

/**
 * Adds the content columns of an entity, `evidence` and derived attributes, whose facets this caller may see. Null if
 * there are none, or if the entity has no single visible key column. A query that uses any of them has the contract's
 * Joint form.
 */
export function withEvidence(
  scan: EntityScan,
  columns: ReadonlyMap<string, ScopeColumn>,
  ctx: BindContext,
): { draft: HydrationDraft; columns: ReadonlyMap<string, ScopeColumn> } | null {
  const { relation } = scan;
  if (ctx.world === 'physical' || relation.kind !== 'entity') return null;
  const facets = facetsOf(ctx.catalog, relation.name).filter((f) => ctx.access.relations.has(f.name));
  if (facets.length === 0 || columns.has(EVIDENCE)) return null;
  const [key, ...more] = relation.primaryKey;
  const keyColumn = relation.columns.find((c) => c.name === key);
  if (key === undefined || keyColumn === undefined || more.length > 0 || !columns.has(key)) return null;
  const content: readonly (readonly [string, TypeName])[] = [
    [EVIDENCE, 'jsonb'],
    ...facets.flatMap((f) => f.derived).map((d) => [d.name, d.type] as const),
  ];
  const draft: HydrationDraft = {
    kind: 'hydration',
    source: ctx.nextSource(),
    entity: relation.name,
    keys: null,
    facets: Object.freeze(facets),
    offered: new Map<string, TypeName>([['key', keyColumn.type], ...content]),
  };
  const extra = content.map(([name, type]): [string, ScopeColumn] => [
    name,
    { name, type, sealed: false, denied: false, starred: false, source: draft.source },
  ]);
  return { draft, columns: new Map([...columns, ...extra]) };
}

/** Adds content columns that policy denies, so that naming one reports it as denied. `*` excludes them. */
export function withDeniedContent(
  relation: Relation,
  columns: ReadonlyMap<string, ScopeColumn>,
  ctx: BindContext,
): ReadonlyMap<string, ScopeColumn> {
  const { denied } = ctx.access;
  if (denied === undefined || denied.size === 0 || ctx.world === 'physical') return columns;
  const lost = facetsOf(ctx.catalog, relation.name).filter((f) => denied.has(f.name));
  if (lost.length === 0) return columns;
  const content: readonly (readonly [string, TypeName])[] = [
    [EVIDENCE, 'jsonb'],
    ...lost.flatMap((f) => f.derived).map((d) => [d.name, d.type] as const),
  ];
  const refused = content.map(([name, type]): [string, ScopeColumn] => [
    name,
    { name, type, sealed: false, denied: true, starred: false },
  ]);
  return new Map([...refused, ...columns]);
}

/**
 * Joins the content of entities to their rows, if the query uses it. WHERE must list the keys of these entities.
 *
 * @throws QueryError E0511 if no conjunct lists the keys
 */
export function joinContent(
  from: FromItem | null,
  where: readonly Expr[],
  items: readonly ScopeItem[],
  ctx: BindContext,
): FromItem | null {
  let joined = from;
  for (const item of items) {
    const draft = item.hydration;
    if (
      draft === undefined ||
      item.relation === null ||
      ctx.usedOf(draft.source).length === 0 ||
      joined === null
    )
      continue;
    const [content = EVIDENCE] = ctx.usedOf(draft.source);
    const at = ctx.firstUseOf(draft.source);
    draft.keys = keysIn(where, item.source, item.relation, { content, at }, ctx);
    joined = withContent(joined, item.source, item.relation, draft, ctx);
  }
  return joined;
}

function withContent(
  from: FromItem,
  source: number,
  relation: Relation,
  draft: HydrationDraft,
  ctx: BindContext,
): FromItem {
  const key = relation.primaryKey[0] ?? '';
  const type = relation.columns.find((c) => c.name === key)?.type ?? 'text';
  ctx.use(source, key);
  ctx.use(draft.source, 'key');
  const on = infix('=', columnRef(source, key, type), columnRef(draft.source, 'key', type), undefined, ctx);
  if (on.kind !== 'operation')
    throw ctx.unsupported('content of this key type', ctx.firstUseOf(draft.source));
  const runtime = draftScan(draft, ctx.addRuntime(draft, ctx.firstUseOf(draft.source)));
  return Object.freeze({
    kind: 'join',
    sealed: true,
    made: true,
    type: 'left',
    left: from,
    right: runtime,
    on: Object.freeze([on]),
  });
}

function keysIn(
  where: readonly Expr[],
  source: number,
  relation: Relation,
  asked: { readonly content: string; readonly at: Location },
  ctx: BindContext,
): Expr {
  const key = relation.primaryKey[0];
  const isKey = (e: Expr | null): boolean => e?.kind === 'column' && e.source === source && e.name === key;
  for (const conjunct of where) {
    if (
      conjunct.kind === 'quantified' &&
      conjunct.quantifier === 'any' &&
      conjunct.definition.name === '=' &&
      isKey(conjunct.arg) &&
      isRowless(conjunct.array)
    ) {
      return conjunct.array;
    }
    if (
      conjunct.kind === 'operation' &&
      conjunct.definition.name === '=' &&
      isKey(conjunct.left) &&
      !isArray(conjunct.right.type) &&
      isRowless(conjunct.right)
    ) {
      return Object.freeze({
        kind: 'array',
        items: Object.freeze([conjunct.right]),
        type: arrayOf(conjunct.right.type),
      });
    }
  }
  const hint = `add WHERE ${identifier(key ?? 'key')} IN ('…')`;
  const construct = `\`${asked.content}\` without a list of keys`;
  throw ctx.unsupported(construct, asked.at, hint);
}

/** True if the value does not depend on any row. */
function isRowless(expr: Expr): boolean {
  return !someExpr(expr, (e) => e.kind === 'column' || queryOf(e) !== null);
}
