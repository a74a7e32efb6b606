import { parseSync } from 'libpg-query';
import type { Access, Catalog, Expr, Relation } from 'osl-compiler';
import { parse } from 'pgsql-ast-parser';

/** A table that a statement reads, and the columns that it reads of it. */
export interface Scan {
  readonly table: string;
  readonly columns: readonly string[];
}

/** Physical columns that may occur in a caller's SQL, by physical table. */
export type Allowed = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * What the caller may see, what the caller's own row filters read, what granted metrics read, and the key by which
 * rows that may only be aggregated are counted.
 */
export function allowedTables(catalog: Catalog, access: Access | undefined): Allowed {
  const tables = new Map<string, ReadonlySet<string>>();
  for (const [name, rights] of access?.relations ?? []) {
    const relation = catalog.relations.get(name);
    if (relation === undefined) continue;
    const columns = new Set(rights.grants.flatMap((g) => (g.filter === null ? [] : basesOf(g.filter))));
    for (const c of relation.columns) {
      const measured = rights.grants.flatMap((g) => [...(g.groups?.metrics?.values() ?? [])]);
      const counts =
        relation.primaryKey.includes(c.name) && rights.grants.some((g) => g.groups !== undefined);
      const granted =
        [...rights.grants.map((g) => g.columns), ...measured].some((of) => of.has(c.name)) || counts;
      if (granted && !rights.denied.has(c.name)) columns.add(c.physical);
    }
    tables.set(tableOf(relation), columns);
  }
  return tables;
}

function tableOf(relation: Relation): string {
  return `${relation.schema}.${relation.table}`;
}

function basesOf(filter: Expr): readonly string[] {
  const found: string[] = [];
  each(filter, (node) => {
    if (node['kind'] === 'base' && typeof node['column'] === 'string') found.push(node['column']);
  });
  return found;
}

/** What of `scans` is not allowed. */
export function outside(scans: readonly Scan[], allowed: Allowed): readonly string[] {
  return scans.flatMap(({ table, columns }) => {
    const known = allowed.get(table);
    if (known === undefined) return [table];
    return columns.filter((c) => !known.has(c)).map((c) => `${table}.${c}`);
  });
}

type Node = Readonly<Record<string, unknown>>;

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null;
}

/** Calls `f` for every object of a tree. */
function each(value: unknown, f: (node: Node) => void): void {
  if (!isNode(value)) return;
  f(value);
  for (const child of Object.values(value)) each(child, f);
}

/** Every table that the SELECT of a scan reads, as Postgres' own grammar has it. */
export function scansByPostgres(sql: string): readonly Scan[] {
  const scans: Scan[] = [];
  each(parseSync(sql), (node) => {
    const select = node['SelectStmt'];
    if (!isNode(select) || !Array.isArray(select['fromClause'])) return;
    const [item] = select['fromClause'];
    const range: unknown = isNode(item) ? item['RangeVar'] : undefined;
    if (!isNode(range) || range['schemaname'] === undefined) return;
    const columns = new Set<string>();
    each(select, (inner) => {
      const fields: unknown = isNode(inner['ColumnRef']) ? inner['ColumnRef']['fields'] : undefined;
      if (!Array.isArray(fields)) return;
      columns.add(
        fields
          .map((f) => textOf(f))
          .slice(1)
          .join('.'),
      );
    });
    scans.push({ table: `${range['schemaname']}.${range['relname']}`, columns: [...columns] });
  });
  return scans;
}

function textOf(field: unknown): string {
  const string = isNode(field) ? field['String'] : undefined;
  return isNode(string) ? String(string['sval']) : '*';
}

/** The same by a grammar of another family; null where it does not reach. */
export function scansByOtherParser(sql: string): readonly Scan[] | null {
  let statements: unknown;
  try {
    statements = parse(sql);
  } catch {
    return null;
  }
  const scans: Scan[] = [];
  each(statements, (node) => {
    if (node['type'] !== 'select' || !Array.isArray(node['from'])) return;
    const [item] = node['from'];
    const name: unknown = isNode(item) && item['type'] === 'table' ? item['name'] : undefined;
    if (!isNode(name) || name['schema'] === undefined) return;
    const columns = new Set<string>();
    each(node, (inner) => {
      if (inner['type'] === 'ref') columns.add(String(inner['name']));
    });
    scans.push({ table: `${name['schema']}.${name['name']}`, columns: [...columns] });
  });
  return scans;
}
