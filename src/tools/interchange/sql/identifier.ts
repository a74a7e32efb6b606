import { LRUCache } from 'lru-cache';
import { parse, QueryError, quoteIdentifier } from 'osl-compiler';
import { nameOf } from './expression.js';

const PLAIN = /^[a-z_][a-z0-9_]*$/;
/** Names of one run; a bound for whoever keeps a process. */
const known = new LRUCache<string, boolean>({ max: 10_000 });

/** `name` as SQL writes it: in quotes unless the parser reads it as that name anyway. */
export function identifier(name: string): string {
  return PLAIN.test(name) && readsAsName(name) ? name : quoteIdentifier(name);
}

function readsAsName(name: string): boolean {
  const before = known.get(name);
  if (before !== undefined) return before;
  const plain = isName(name);
  known.set(name, plain);
  return plain;
}

function isName(name: string): boolean {
  try {
    const { node } = parse(`select ${name} from ${name}`);
    if (!('SelectStmt' in node)) return false;
    const target = node.SelectStmt.targetList?.[0];
    const value = target !== undefined && 'ResTarget' in target ? target.ResTarget.val : undefined;
    return value !== undefined && nameOf(value)?.join('.') === name;
  } catch (error) {
    if (error instanceof QueryError) return false;
    throw error;
  }
}
