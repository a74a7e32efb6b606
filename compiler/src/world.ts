import type { FuncCall, Node, RangeVar, WithClause } from '@pgsql/types';
import { nameParts } from './bind/ast.js';
import type { World } from './bind/index.js';
import type { Catalog } from './catalog/catalog.js';
import { queryError } from './errors/errors.js';
import type { ParsedStatement } from './text/parse.js';
import { positionAt } from './text/text.js';

/**
 * The names of common tables in scope: the first `count` of a WITH clause, and those of enclosing scopes. Scopes are
 * linked rather than copied, so that long WITH clauses take linear time.
 */
export interface CommonNames {
  readonly order: ReadonlyMap<string, number>;
  readonly count: number;
  readonly around: CommonNames | null;
}

export function isCommon(name: string, scope: CommonNames | null): boolean {
  for (let at = scope; at !== null; at = at.around) {
    if ((at.order.get(name) ?? at.count) < at.count) return true;
  }
  return false;
}

/** Returns the scopes of a WITH clause: one for its table at `index`, one for the statement it belongs to. */
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
 * Kind of objects that names may refer to on a surface. `either`: the names in the statement decide; a name without a
 * schema is an entity, as on the Postgres port.
 */
export type RequestedWorld = World | 'either';

/**
 * Decides whether a statement names entities or tables, from its syntax tree and whether raw SQL is allowed at all.
 * Catalog entries and access play no part, so the choice reveals nothing.
 *
 * @throws QueryError E0513 if it names both entities and tables
 */
export function worldOf(parsed: ParsedStatement, asked: RequestedWorld, catalog: Catalog): World {
  if (asked === 'semantic') return 'semantic';
  if (asked === 'either' && (catalog.rawTables?.size ?? 0) === 0) return 'semantic';
  const found = namesIn(parsed.node, asked === 'physical' ? 'physical' : 'semantic');
  if (found.semantic !== null && found.physical !== null) {
    const second = Math.max(found.semantic, found.physical);
    throw queryError('mixedWorlds', {}, positionAt(parsed.source, second));
  }
  return asked === 'physical' || found.physical !== null ? 'physical' : 'semantic';
}

/** The byte offset of the first name of each world; null if the world is not used. */
interface WorldNames {
  semantic: number | null;
  physical: number | null;
}

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
      if (key === 'withClause') continue; // visited by withClauseScope
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

const ENTITIES = 'entities';
const DATABASE = 'osl';

/** Visits the WITH clause of `value`, if any, and returns the scope of the statement it belongs to. */
function withClauseScope(
  value: object,
  around: CommonNames | null,
  visit: (value: unknown, scope: CommonNames | null) => void,
): CommonNames | null {
  if (!('withClause' in value)) return around;
  const clause = value.withClause as WithClause; // the grammar uses this key only for WITH clauses
  const tables = (clause.ctes ?? []).flatMap((c) => ('CommonTableExpr' in c ? [c.CommonTableExpr] : []));
  const names = withClauseNames(
    tables.map((t) => t.ctename ?? ''),
    clause.recursive === true,
    around,
  );
  for (const [i, table] of tables.entries()) visit(table, names.within(i));
  return names.behind;
}
