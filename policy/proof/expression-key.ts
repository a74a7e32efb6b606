import { type Expr, fingerprint } from 'osl-compiler';

/**
 * Returns a key that is equal for equal expressions, whether the compiler or another translation, such as that of
 * row-security policies, produced them. Casts that keep the value are left out. Other kinds of expressions get the
 * compiler's fingerprint.
 */
export function expressionKey(expr: Expr): string {
  switch (expr.kind) {
    case 'base':
      return columnKey(expr.column);
    case 'boolean':
      return literalKey(String(expr.value), 'bool');
    case 'null':
      return NULL_KEY;
    case 'literal':
      return typeof expr.value === 'string' ? literalKey(expr.value, expr.type) : fingerprint(expr);
    case 'structural':
      return literalKey(expr.text, 'text');
    case 'cast':
      return expr.modifiers.length === 0
        ? castKey(expressionKey(expr.arg), expr.arg.type, expr.type)
        : fingerprint(expr);
    case 'operation':
      return expr.left === null
        ? applicationKey(expr.definition.name, [expressionKey(expr.right)])
        : operationKey(expr.definition.name, expressionKey(expr.left), expressionKey(expr.right));
    case 'call':
      return applicationKey(expr.definition.name, expr.args.map(expressionKey));
    default:
      return fingerprint(expr);
  }
}

export const NULL_KEY = 'null';

export function columnKey(physical: string): string {
  return `[${physical}]`;
}

export function literalKey(value: string, type: string): string {
  return `${type}${JSON.stringify(value)}`;
}

export function applicationKey(name: string, args: readonly string[]): string {
  return `(${[name, ...args].join(' ')})`;
}

const FLIPPED: ReadonlyMap<string, string> = new Map([
  ['>', '<'],
  ['>=', '<='],
]);

export function operationKey(operator: string, left: string, right: string): string {
  const flipped = FLIPPED.get(operator);
  if (flipped !== undefined) return operationKey(flipped, right, left);
  const isSymmetric = (operator === '=' || operator === '<>') && right < left;
  return applicationKey(operator, isSymmetric ? [right, left] : [left, right]);
}

const TEXT_TYPES: ReadonlySet<string> = new Set(['text', 'bpchar']);

/** Returns the key of a cast; `key` if the cast keeps the value. @param from type of the argument; null if unknown */
export function castKey(key: string, from: string | null, to: string): string {
  if (from === to || (from !== null && TEXT_TYPES.has(from) && to === 'text')) return key;
  return applicationKey(`cast ${to}`, [key]);
}
