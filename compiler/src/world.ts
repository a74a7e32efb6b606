import type { FuncCall, Node, RangeVar, WithClause } from '@pgsql/types';
import { nameParts, stringOf } from './bind/ast.js';
import type { World } from './bind/index.js';
import { type Catalog, fullName, unqualifiedName } from './catalog/catalog.js';
import { operatorNamed } from './catalog/operators.js';
import { QueryError, queryError } from './errors/errors.js';
import { functionsNamed } from './functions/resolve.js';
import { type ParsedStatement, parse } from './text/parse.js';
import { positionAt } from './text/text.js';

/**
 * The names of common tables in scope: the first `count` tables of a WITH clause, and those of the enclosing scopes
 * (`around`). Scopes are linked rather than copied, so that long WITH clauses take linear time.
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

/** Returns the names in scope: `within(i)` in table `i` of a WITH clause, `behind` in the statement after it. */
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
 * The objects that names in a statement refer to: entities (`semantic`) or tables (`physical`). With `either`, the
 * names decide; a name without a schema is an entity, as on the Postgres port.
 */
export type RequestedWorld = World | 'either';

/**
 * Decides whether a statement names entities or tables, from its syntax tree and whether the catalog allows raw SQL.
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

/** Byte offsets of the first name of an entity and of a table; null if there is no such name. */
interface WorldNames {
  semantic: number | null;
  physical: number | null;
}

const SEMANTIC_CALLS: ReadonlySet<string> = new Set(['retrieve', 'traverse', 'measure']);

/** Enumerates members with `for in`, which is twice as fast as `Object.entries` here; each query is visited. */
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
    const members = value as Record<string, unknown>;
    for (const key in members) {
      if (key === 'withClause') continue; // visited by withClauseScope
      const child = members[key];
      if (key === 'RangeVar') noteTable(child as RangeVar, inner);
      if (key === 'FuncCall') noteCall(child as FuncCall);
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

/** Visits the tables of the WITH clause of `value`, if any; returns the scope of the rest of `value`. */
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

/** The names in a statement, for the audit record of a refused query. */
export interface MentionedNames {
  /** Full names (`osl.entities.person`) of declared objects, whether or not the caller can see them; sorted. */
  readonly declared: readonly string[];
  /** Names of unknown objects and functions, as written; sorted. */
  readonly undeclared: readonly string[];
}

const NOTHING: MentionedNames = Object.freeze({ declared: Object.freeze([]), undeclared: Object.freeze([]) });

/**
 * Collects the names of entities, bridges, facets, metrics and unknown functions in `text`, from its syntax tree alone.
 * Returns no names if the text does not parse, is nested too deeply, or names both entities and tables. Takes linear
 * time.
 */
export function mentionedNames(text: string, asked: RequestedWorld, catalog: Catalog): MentionedNames {
  let parsed: ParsedStatement;
  let physical: boolean;
  try {
    parsed = parse(text);
    physical = worldOf(parsed, asked, catalog) === 'physical';
  } catch (error) {
    // A RangeError means that the tree is too deep for the call stack.
    if (error instanceof QueryError || error instanceof RangeError) return NOTHING;
    throw error;
  }
  const found = new NameCollector(catalog);
  for (const node of nodesOf(parsed.node)) {
    if ('CommonTableExpr' in node) found.hides(node.CommonTableExpr.ctename ?? '');
    else if ('RangeVar' in node) found.table(node.RangeVar, physical);
    else if ('FuncCall' in node) found.call(node.FuncCall);
  }
  return found.all();
}

/** Yields all nodes of the tree, in any order. Uses an explicit stack because the tree may be deep. */
function* nodesOf(root: Node): Generator<Node> {
  const open: unknown[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (Array.isArray(value)) {
      for (const item of value) open.push(item);
    } else if (typeof value === 'object' && value !== null) {
      yield value as Node;
      const members = value as Record<string, unknown>;
      for (const key in members) open.push(members[key]);
    }
  }
}

class NameCollector {
  readonly #catalog: Catalog;
  readonly #declared = new Set<string>();
  readonly #undeclared = new Set<string>();
  readonly #tables: string[] = [];
  readonly #hidden = new Set<string>();

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  /** Records the name of a common table, which hides a relation with the same name. */
  hides(name: string): void {
    this.#hidden.add(name);
  }

  table({ catalogname, schemaname, relname }: RangeVar, physical: boolean): void {
    const name = relname ?? '';
    if (physical && schemaname !== undefined) {
      const governing = this.#catalog.rawTables?.get(`${schemaname}.${name}`);
      if (governing === undefined) this.#undeclared.add(`${schemaname}.${name}`);
      else this.#relation(governing.name);
    } else if (schemaname === undefined) this.#tables.push(name);
    else if (schemaname === 'entities') this.#relation(name);
    else this.#undeclared.add([catalogname, schemaname, name].filter((part) => part !== undefined).join('.'));
  }

  call(call: FuncCall): void {
    const name = nameParts(call.funcname).join('.');
    if (name === 'measure') this.#metric(columnName(call.args?.[0]));
    else if (name !== 'retrieve' && name !== 'traverse') {
      this.#function(name);
      return;
    }
    for (const arg of call.args ?? []) {
      if (!('NamedArgExpr' in arg)) continue;
      const value = constantText(arg.NamedArgExpr.arg);
      if (value === null) continue;
      const { name: argument } = arg.NamedArgExpr;
      if (argument === 'facet') this.#facet(unqualifiedName('facets', value));
      if (argument === 'anchor' || argument === 'target') this.#relation(unqualifiedName('entities', value));
    }
  }

  all(): MentionedNames {
    for (const name of this.#tables) if (!this.#hidden.has(name)) this.#relation(name);
    return Object.freeze({
      declared: Object.freeze([...this.#declared].sort()),
      undeclared: Object.freeze([...this.#undeclared].sort()),
    });
  }

  #relation(name: string): void {
    const found = this.#catalog.relations.get(name);
    if (found === undefined) this.#undeclared.add(name);
    else this.#declared.add(fullName(found.kind === 'facet' ? 'facets' : 'entities', name));
  }

  #function(name: string): void {
    const bare = name.slice(name.lastIndexOf('.') + 1);
    if (functionsNamed(bare).length === 0 && operatorNamed(bare) === null) this.#undeclared.add(name);
  }

  #facet(name: string): void {
    if (this.#catalog.facets.has(name)) this.#declared.add(fullName('facets', name));
    else this.#undeclared.add(name);
  }

  #metric(name: string | null): void {
    if (name === null) return;
    if (this.#catalog.metrics.has(name)) this.#declared.add(fullName('metrics', name));
    else this.#undeclared.add(name);
  }
}

function columnName(node: Node | undefined): string | null {
  if (node === undefined || !('ColumnRef' in node)) return null;
  const last = stringOf(node.ColumnRef.fields?.at(-1));
  return last === '' ? null : last;
}

function constantText(node: Node | undefined): string | null {
  return node !== undefined && 'A_Const' in node ? (node.A_Const.sval?.sval ?? null) : null;
}
