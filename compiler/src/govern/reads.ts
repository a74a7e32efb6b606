import { forMetric, type RelationAccess } from '../access/access.js';
import { columnOf, type Relation } from '../catalog/catalog.js';
import type { Expr } from '../plan/plan.js';
import { visitExpr } from '../plan/walk.js';
import { columnRule, maskComputes } from './mask.js';

/**
 * The physical columns whose values statements under `access` may read: those that it shows, or shows a part of;
 * those that its filters look at; and the primary key, which ties and groups are told apart by. A column that is
 * masked by a text of our own in every row is not among them.
 */
export function columnsRead(relation: Relation, access: RelationAccess): ReadonlySet<string> {
  const metrics = new Set(access.grants.flatMap((g) => [...(g.groups?.metrics?.keys() ?? [])]));
  const accesses = [access, ...[...metrics].map((metric) => forMetric(access, metric))];
  const shown = relation.columns.filter((c) => accesses.some((a) => isRead(relation, c.name, a)));
  const keys = relation.primaryKey.flatMap((name) => columnOf(relation, name) ?? []);
  return new Set([
    ...[...shown, ...keys].map((c) => c.physical),
    ...access.grants.flatMap(({ filter }) => (filter === null ? [] : baseColumns(filter))),
  ]);
}

function isRead(relation: Relation, name: string, access: RelationAccess): boolean {
  if (access.denied.has(name) || !access.grants.some((g) => g.columns.has(name))) return false;
  const rule = columnRule(relation, name, access);
  return rule.masked !== 'all' || maskComputes(rule);
}

function baseColumns(filter: Expr): readonly string[] {
  const found: string[] = [];
  visitExpr(filter, (e) => {
    if (e.kind === 'base') found.push(e.column);
  });
  return found;
}
