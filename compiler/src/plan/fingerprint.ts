import type { FunctionDefinition, OperatorDefinition } from '../functions/define.js';
import type { Expr, Query, SortKey } from './plan.js';

const known = new WeakMap<Expr, string>();

/** Names that need no quotes in a fingerprint. */
const PLAIN = /^\w+$/;

/**
 * Returns a text for comparison, equal for two nodes if and only if they are the same expression. A query inside an
 * expression equals only itself, since each bound query has its own FROM items.
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
  // In a plan, these keys always hold a definition.
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
