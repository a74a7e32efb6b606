import type { FuncCall, Node, RangeVar } from '@pgsql/types';
import { nameParts, stringOf } from './bind/ast.js';
import { type Catalog, fullName, unqualifiedName } from './catalog/catalog.js';
import { operatorNamed } from './catalog/operators.js';
import { QueryError } from './errors/errors.js';
import { functionsNamed } from './functions/index.js';
import { type ParsedStatement, parse } from './text/parse.js';
import { type RequestedWorld, worldOf } from './world.js';

/** The names in a statement, for the audit record of a refused query. */
export interface MentionedNames {
  /** Full names (`osl.entities.person`) of declared objects, whether or not the caller can see them; sorted. */
  readonly declared: readonly string[];
  /** Names of unknown objects and functions, as written; sorted. */
  readonly undeclared: readonly string[];
}

const NOTHING: MentionedNames = Object.freeze({ declared: Object.freeze([]), undeclared: Object.freeze([]) });

/**
 * Collects the entities, bridges, facets, metrics and unknown functions that `text` names, from its syntax tree alone.
 * Empty if the text does not parse. Linear time.
 */
export function mentionedNames(text: string, asked: RequestedWorld, catalog: Catalog): MentionedNames {
  let parsed: ParsedStatement;
  let physical: boolean;
  try {
    parsed = parse(text);
    physical = worldOf(parsed, asked, catalog) === 'physical';
  } catch (error) {
    if (error instanceof QueryError) return NOTHING;
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

/** All nodes of the tree, in any order. Uses an explicit stack because the tree may be deep. */
function* nodesOf(root: Node): Generator<Node> {
  const open: unknown[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value)) yield value as Node;
    for (const child of Object.values(value)) open.push(child);
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

  /** Records the name of a common table, which hides a relation of the same name. */
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
