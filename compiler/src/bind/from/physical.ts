import type { RangeVar } from '@pgsql/types';
import type { RelationAccess } from '../../access/access.js';
import type { Relation } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import { identifier } from '../../text/sql-text.js';
import { nearest } from '../../text/text.js';
import type { BindContext } from '../context.js';
import { type ScopeColumn, visibleColumn } from '../scope.js';

/** Raw SQL: tables and columns by their upstream names. Each stands for the entity that governs it. */

/** Where a table without a schema is sought, as in Postgres. */
const DEFAULT_SCHEMA = 'public';

/**
 * The entity that governs the table, if the tenant allows it and the caller may see it. All else is outside the
 * allowlist, for one and the same reason: what is not allowed, not declared, of the system or not visible.
 */
export function allowedTable(node: RangeVar, ctx: BindContext): Relation {
  const tables = ctx.catalog.rawTables ?? new Map<string, Relation>();
  const key = `${node.schemaname ?? DEFAULT_SCHEMA}.${node.relname ?? ''}`;
  const governing = tables.get(key);
  // As an answer of the authoring routes writes a table: with its connector in front.
  const database = node.catalogname ?? 'osl';
  const relation = database === 'osl' || database === governing?.connector ? governing : undefined;
  if (relation !== undefined && ctx.access.relations.has(relation.name)) return relation;
  const table = [node.catalogname, node.schemaname, node.relname].filter((p) => p !== undefined).join('.');
  ctx.refuseDenied(relation?.name, key, node.location ?? 0);
  const visible = [...tables.values()].filter((r) => ctx.access.relations.has(r.name));
  const near = nearestTable(node, visible);
  throw ctx.error('outsideAllowlist', { table, near }, node.location ?? 0);
}

/** A table of the same name in another schema, or one of much the same name in the same. */
function nearestTable({ schemaname, relname = '' }: RangeVar, visible: readonly Relation[]): string | null {
  const elsewhere = visible.find((r) => r.table === relname);
  if (elsewhere !== undefined) return nameOfTable(elsewhere.schema, relname);
  // Names without quotes arrive in small letters, of which the declared ones need not be.
  const schema = (schemaname ?? DEFAULT_SCHEMA).toLowerCase();
  const beside = visible.filter((r) => r.schema.toLowerCase() === schema);
  const near = nearest(
    relname,
    beside.map((r) => r.table),
  );
  const found = beside.find((r) => r.table === near);
  return found === undefined ? null : nameOfTable(found.schema, found.table);
}

function nameOfTable(schema: string, table: string): string {
  return `${identifier(schema)}.${identifier(table)}`;
}

const visibleColumns = new WeakMap<
  RelationAccess,
  { relation: Relation; columns: ReadonlyMap<string, ScopeColumn> }
>();

/**
 * The columns of the table that this access knows of, by their upstream names. Raw SQL joins on any of them, so all
 * of them count as keys: a masked one matches nothing, whichever it is.
 */
export function physicalColumnsFor(
  relation: Relation,
  access: RelationAccess,
): ReadonlyMap<string, ScopeColumn> {
  const known = visibleColumns.get(access);
  if (known?.relation === relation) return known.columns;
  const columns = new Map<string, ScopeColumn>();
  for (const { name, physical } of relation.columns) {
    const column = visibleColumn(relation, name, access);
    if (column === null) continue;
    if (columns.has(physical)) throw new InternalError(`${relation.name} exposes ${physical} twice`);
    columns.set(physical, { ...column, sealed: false });
  }
  visibleColumns.set(access, { relation, columns });
  return columns;
}
