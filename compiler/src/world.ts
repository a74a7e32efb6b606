import type { FuncCall, Node, RangeVar, WithClause } from '@pgsql/types';
import { nameParts } from './bind/ast.js';
import type { World } from './bind/index.js';
import type { Catalog } from './catalog/catalog.js';
import { queryError } from './errors/errors.js';
import type { ParsedStatement } from './text/parse.js';
import { positionAt } from './text/text.js';

/**
 * The names of common tables that hide relations at one place of a statement: the first `count` of a WITH clause, and
 * those around it. Clauses are linked, not copied, so that a long one costs what it says.
 */
export interface CommonNames {
  readonly order: ReadonlyMap<string, number>;
  readonly count: number;
  readonly around: CommonNames | null;
}

/** True if `name` is a common table in `scope`. */
export function isCommon(name: string, scope: CommonNames | null): boolean {
  for (let at = scope; at !== null; at = at.around) {
    if ((at.order.get(name) ?? at.count) < at.count) return true;
  }
  return false;
}

/** A WITH clause: what holds in its table `index`, and behind it. */
export function withClauseNames(names: readonly string[], recursive: boolean, around: CommonNames | null) {
  const order = new Map<string, number>();
  for (const [i, name] of names.entries()) if (!order.has(name)) order.set(name, i);
  const first = (count: number): CommonNames => ({ order, count, around });
  return {
    within: (index: number): CommonNames => first(recursive ? names.length : index),
    behind: first(names.length),
  };
}

/**
 * The meaning of names that a surface asks for. `either`: entities or tables, decided by the statement's own names; a
 * name without a schema is an entity, as for every client of the wire.
 */
export type AskedWorld = World | 'either';

/**
 * The meaning of the names of a statement, decided by its syntax tree alone: nothing bound, allowed or visible plays a
 * part, so that the choice reveals nothing.
 *
 * @throws QueryError E0513 if it names both entities and tables
 */
export function worldOf(parsed: ParsedStatement, asked: AskedWorld, catalog: Catalog): World {
  if (asked === 'semantic') return 'semantic';
  if (asked === 'either' && (catalog.rawTables?.size ?? 0) === 0) return 'semantic';
  const found = namesIn(parsed.node, asked === 'physical' ? 'physical' : 'semantic');
  if (found.semantic !== null && found.physical !== null) {
    const second = Math.max(found.semantic, found.physical);
    throw queryError('mixedWorlds', {}, positionAt(parsed.source, second));
  }
  return asked === 'physical' || found.physical !== null ? 'physical' : 'semantic';
}

/** The byte offset of the first name of each world; null where there is none. */
interface WorldNames {
  semantic: number | null;
  physical: number | null;
}

/** Calls that only OSL-SQL has. */
const SEMANTIC_CALLS: ReadonlySet<string> = new Set(['retrieve', 'traverse', 'measure']);

function namesIn(node: Node, bare: World): WorldNames {
  const found: WorldNames = { semantic: null, physical: null };
  const note = (world: World, location: number | undefined): void => {
    found[world] ??= location ?? 0;
  };
  const visit = (value: unknown, scope: CommonNames | null): void => {
    if (Array.isArray(value)) {
      for (const item of value) visit(item, scope);
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    const inner = withClauseScope(value, scope, visit);
    for (const [key, child] of Object.entries(value)) {
      if (key === 'withClause') continue; // walked by withClauseScope
      if (key === 'RangeVar') noteTable(child, inner);
      if (key === 'FuncCall') noteCall(child);
      visit(child, inner);
    }
  };
  const noteTable = (
    { catalogname, schemaname, relname, location }: RangeVar,
    scope: CommonNames | null,
  ): void => {
    if (schemaname === undefined) {
      if (!isCommon(relname ?? '', scope)) note(bare, location);
    } else {
      const semantic = schemaname === ENTITIES && (catalogname ?? DATABASE) === DATABASE;
      note(semantic ? 'semantic' : 'physical', location);
    }
  };
  const noteCall = (call: FuncCall): void => {
    if (SEMANTIC_CALLS.has(nameParts(call.funcname).join('.'))) note('semantic', call.location);
  };
  visit(node, null);
  return found;
}

/** The schema and the database of entities: `osl.entities.<name>`. */
const ENTITIES = 'entities';
const DATABASE = 'osl';

/** Walks a WITH clause, if `value` has one, and gives the names that hide tables in the statement it belongs to. */
function withClauseScope(
  value: object,
  around: CommonNames | null,
  visit: (value: unknown, scope: CommonNames | null) => void,
): CommonNames | null {
  if (!('withClause' in value)) return around;
  const clause = value.withClause as WithClause; // the grammar has nothing else under this name
  const tables = (clause.ctes ?? []).flatMap((c) => ('CommonTableExpr' in c ? [c.CommonTableExpr] : []));
  const names = withClauseNames(
    tables.map((t) => t.ctename ?? ''),
    clause.recursive === true,
    around,
  );
  for (const [i, table] of tables.entries()) visit(table, names.within(i));
  return names.behind;
}
