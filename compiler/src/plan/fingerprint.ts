import type { FunctionDefinition, OperatorDefinition } from '../functions/define.js';
import type { Expr, PlanOutput, Query, SortKey } from './plan.js';
import { childrenOf } from './walk.js';

const known = new WeakMap<Expr, string>();

/** Names that need no quotes in a fingerprint. */
const PLAIN = /^\w+$/;

/**
 * Returns a text that is equal for two nodes if and only if they are the same expression; for comparison only. A query
 * inside an expression equals only itself, since each bound query has its own FROM items.
 */
export function fingerprint(expr: Expr): string {
  if (expr.kind === 'column')
    return `${expr.source}.${PLAIN.test(expr.name) ? expr.name : JSON.stringify(expr.name)}`;
  if (expr.kind === 'parameter') return `$${expr.slot}:${expr.type}`;
  const before = known.get(expr);
  if (before !== undefined) return before;
  const text = describe(expr);
  known.set(expr, text);
  return text;
}

/** The positions of expressions in a select list, from 1; for equal outputs, the first one. */
export class Positions {
  readonly #byText = new Map<string, number>();
  /** Keyed by node, since most ORDER BY and GROUP BY keys are the output node itself. */
  readonly #byOutput = new Map<Expr, number>();

  constructor(outputs: readonly PlanOutput[]) {
    let position = 0;
    for (const { expr } of outputs) {
      position++;
      const text = fingerprint(expr);
      const first = this.#byText.get(text) ?? position;
      this.#byText.set(text, first);
      this.#byOutput.set(expr, first);
    }
  }

  of(expr: Expr): number | null {
    return this.#byOutput.get(expr) ?? this.#byText.get(fingerprint(expr)) ?? null;
  }
}

/** Returns a test for expressions that equal one of `groupBy`. */
export function keyFinder(groupBy: readonly Expr[]): (expr: Expr) => boolean {
  const keys = new Set(groupBy.map(fingerprint));
  // Only an expression with as many nodes as a key can equal it, so only those are fingerprinted.
  const sizes = new Map<Expr, number>();
  const keySizes = new Set(groupBy.map((key) => sizeOf(key, sizes)));
  return (expr) => keySizes.has(sizeOf(expr, sizes)) && keys.has(fingerprint(expr));
}

/** Returns the number of nodes in `expr`, without those of queries in it. */
function sizeOf(expr: Expr, sizes: Map<Expr, number>): number {
  const children = childrenOf(expr);
  if (children.length === 0) return 1;
  const before = sizes.get(expr);
  if (before !== undefined) return before;
  let size = 1;
  for (const child of children) size += sizeOf(child, sizes);
  sizes.set(expr, size);
  return size;
}

/** Writes the most frequent kinds directly, and all others as JSON. */
function describe(expr: Expr): string {
  switch (expr.kind) {
    case 'structural':
      return `'${JSON.stringify(expr.text)}`;
    case 'operation':
      return `(o${idOf(expr.definition)} ${expr.left === null ? '' : fingerprint(expr.left)} ${fingerprint(expr.right)} ${expr.type})`;
    case 'call':
      return `(f${idOf(expr.definition)} ${listOf(expr.args)} ${expr.type})`;
    case 'aggregate': {
      const filter = expr.filter === null ? '' : fingerprint(expr.filter);
      const { definition, args, distinct, orderBy, type } = expr;
      return `(a${idOf(definition)} ${listOf(args)} ${distinct} ${filter} ${sortOf(orderBy)} ${type})`;
    }
    default:
      return JSON.stringify(expr, named);
  }
}

/** JSON replacer that writes functions, operators and queries as numbers. */
function named(key: string, value: unknown): unknown {
  // These keys have these types in the plan.
  if (key === 'definition' || key === 'equality')
    return idOf(value as FunctionDefinition | OperatorDefinition);
  return key === 'query' ? numberOf(value as Query) : value;
}

const numbers = new WeakMap<Query, number>();
let lastNumber = 0;

function numberOf(query: Query): number {
  const number = numbers.get(query) ?? ++lastNumber;
  numbers.set(query, number);
  return number;
}

function listOf(exprs: readonly Expr[]): string {
  return `[${exprs.map(fingerprint).join(',')}]`;
}

function sortOf(keys: readonly SortKey[]): string {
  const one = (k: SortKey): string =>
    `${typeof k.by === 'number' ? k.by : `:${fingerprint(k.by)}`} ${k.descending} ${k.nullsFirst}`;
  return `[${keys.map(one).join(',')}]`;
}

const ids = new WeakMap<FunctionDefinition | OperatorDefinition, number>();
const idsByContent = new Map<string, number>();

/** Returns the same number for equal definitions, even if they are different objects. */
function idOf(definition: FunctionDefinition | OperatorDefinition): number {
  const before = ids.get(definition);
  if (before !== undefined) return before;
  const content = JSON.stringify(definition);
  const id = idsByContent.get(content) ?? idsByContent.size;
  idsByContent.set(content, id);
  ids.set(definition, id);
  return id;
}
