import { type CommonNames, isCommon, withClauseNames } from 'osl-compiler';

/** Syntax tree node as plain data. Unknown kinds are walked like any other. */
export type Tree = Readonly<Record<string, unknown>>;

/** Relations that a statement refers to, at any depth. */
export interface References {
  /** Names a relation of `pg_catalog` or `information_schema`. */
  readonly system: boolean;
  /** Names any other relation, or a table function of OSL-SQL. */
  readonly data: boolean;
  /** First part that is more than a query: `INTO`, `FOR UPDATE`, `INSERT`, … */
  readonly writes: string | null;
}

interface SyntaxFacts {
  system: boolean;
  data: boolean;
  writes: string | null;
}

type CteScope = CommonNames | null;

const WRITES: ReadonlyMap<string, string> = new Map([
  ['InsertStmt', 'INSERT'],
  ['UpdateStmt', 'UPDATE'],
  ['DeleteStmt', 'DELETE'],
  ['MergeStmt', 'MERGE'],
]);
const SYSTEM_SCHEMAS: ReadonlySet<string> = new Set(['pg_catalog', 'information_schema']);
const TABLE_FUNCTIONS: ReadonlySet<string> = new Set(['retrieve', 'traverse']);

/** Finds all relations in `node`, except names of common table expressions in scope. */
export function referencesOf(node: Tree, isSystem: (name: string) => boolean): References {
  const found: SyntaxFacts = { system: false, data: false, writes: null };
  visit(node, null, found, isSystem);
  return found;
}

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function visit(
  value: unknown,
  scope: CteScope,
  found: SyntaxFacts,
  isSystem: (name: string) => boolean,
): void {
  if (Array.isArray(value)) {
    for (const item of value) visit(item, scope, found, isSystem);
    return;
  }
  if (!isTree(value)) return;
  const inner = withClauseScope(value, scope, found, isSystem);
  for (const [key, child] of Object.entries(value)) {
    if (key === 'withClause') continue; // walked by withClauseScope
    note(key, child, inner, found, isSystem);
    visit(child, inner, found, isSystem);
  }
}

/** Walks the WITH clause of `value`, if any, and returns the scope of its statement. */
function withClauseScope(
  value: Tree,
  scope: CteScope,
  found: SyntaxFacts,
  isSystem: (name: string) => boolean,
): CteScope {
  const clause = value['withClause'];
  if (!isTree(clause)) return scope;
  const ctes = (Array.isArray(clause['ctes']) ? clause['ctes'] : [])
    .map((cte) => (isTree(cte) ? cte['CommonTableExpr'] : null))
    .filter(isTree);
  const names = withClauseNames(
    ctes.map((cte) => String(cte['ctename'])),
    clause['recursive'] === true,
    scope,
  );
  for (const [i, cte] of ctes.entries()) visit(cte, names.within(i), found, isSystem);
  return names.behind;
}

function note(
  key: string,
  child: unknown,
  scope: CteScope,
  found: SyntaxFacts,
  isSystem: (name: string) => boolean,
): void {
  if (key === 'RangeVar' && isTree(child)) noteRelation(child, scope, found, isSystem);
  else if (key === 'RangeFunction' && isTree(child)) noteFunction(child, found);
  else if (key === 'intoClause' && isTree(child)) found.writes ??= 'SELECT INTO';
  else if (key === 'lockingClause') found.writes ??= 'SELECT FOR UPDATE';
  else found.writes ??= WRITES.get(key) ?? null;
}

function noteRelation(
  node: Tree,
  scope: CteScope,
  found: SyntaxFacts,
  isSystem: (name: string) => boolean,
): void {
  const { catalogname, schemaname, relname } = node;
  if (schemaname === undefined) {
    if (isCommon(String(relname), scope)) return;
    if (isSystem(String(relname))) found.system = true;
    else found.data = true;
    return;
  }
  const here = catalogname === undefined || catalogname === 'osl';
  if (here && SYSTEM_SCHEMAS.has(String(schemaname))) found.system = true;
  else found.data = true;
}

/** `RETRIEVE(…)` and `TRAVERSE(…)` read data; other functions in FROM are functions of the catalog engine. */
function noteFunction(node: Tree, found: SyntaxFacts): void {
  const call = firstCall(node['functions']);
  const names = call === null ? [] : namesOf(call['funcname']);
  if (names.length === 1 && TABLE_FUNCTIONS.has(names[0] ?? '')) found.data = true;
}

function firstCall(functions: unknown): Tree | null {
  const list: unknown = Array.isArray(functions) ? functions[0] : null;
  const items = isTree(list) && isTree(list['List']) ? list['List']['items'] : null;
  const item: unknown = Array.isArray(items) ? items[0] : null;
  return isTree(item) && isTree(item['FuncCall']) ? item['FuncCall'] : null;
}

/** Parts of a dotted name: a list of string nodes in the tree. */
export function namesOf(list: unknown): readonly string[] {
  return (Array.isArray(list) ? list : []).map((part: unknown) =>
    isTree(part) && isTree(part['String']) ? String(part['String']['sval']) : '',
  );
}
