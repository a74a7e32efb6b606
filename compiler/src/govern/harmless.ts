import type { LiteralSlots } from '../bind/index.js';
import type { Call, Expr, Query } from '../plan.js';
import { allQueries, childrenOf, exprsOf, queryOf } from '../walk.js';
import { cannotFail } from './constants.js';

/**
 * Whether a value can be worked out for any row without an error, so that no error tells what is in one. Stricter
 * than need be: a list of what cannot fail, not of what can.
 */
export function isHarmless(expr: Expr, literals: LiteralSlots): boolean {
  return (
    (isHarmlessNode(expr) && belowOf(expr).every((e) => isHarmless(e, literals))) ||
    cannotFail(expr, literals)
  );
}

/** What is evaluated with `expr`: its children and, of a query in it, everything at any depth. */
function belowOf(expr: Expr): readonly Expr[] {
  const inner: Query | null = queryOf(expr);
  return inner === null ? childrenOf(expr) : [...childrenOf(expr), ...allQueries(inner).flatMap(exprsOf)];
}

const COMPARISONS: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>=']);
const PATTERNS: ReadonlySet<string> = new Set(['~~', '~~*', '!~~', '!~~*']);
const CALLS: ReadonlySet<string> = new Set([
  'lower',
  'upper',
  'length',
  'date_trunc',
  'extract',
  'date_part',
]);

function isHarmlessNode(e: Expr): boolean {
  switch (e.kind) {
    case 'column':
    case 'parameter':
    case 'null':
    case 'boolean':
    case 'structural':
    case 'and':
    case 'or':
    case 'not':
    case 'null_test':
    case 'truth_test':
    case 'distinct_test':
    case 'membership':
    case 'case':
    case 'conditional':
    case 'array':
    case 'exists':
    case 'in_query':
      return true;
    case 'operation':
      // A pattern fails or not by its own text, which no row is in.
      return (
        COMPARISONS.has(e.definition.name) ||
        (PATTERNS.has(e.definition.name) && e.right.kind === 'parameter')
      );
    case 'quantified':
      return COMPARISONS.has(e.definition.name);
    case 'cast':
      return e.modifiers.length === 0 && WIDENS.has(`${e.arg.type} ${e.type}`);
    case 'call':
      return CALLS.has(e.definition.name) || isInFixedZone(e);
    case 'base':
    case 'literal':
    case 'subscript':
    case 'aggregate':
    case 'window':
    case 'distance':
    case 'stored_vector':
    case 'scalar_query':
    case 'attribute_match':
      return false;
    default: {
      const unknown: never = e;
      return unknown;
    }
  }
}

/** A moment as the clock of a zone that the plan itself names shows it. */
function isInFixedZone({ definition, args }: Call): boolean {
  return definition.name === 'timezone' && args[0]?.kind === 'structural';
}

const WIDENS: ReadonlySet<string> = new Set([
  'int2 int4',
  'int2 int8',
  'int2 numeric',
  'int2 float8',
  'int4 int8',
  'int4 numeric',
  'int4 float8',
  'int8 numeric',
  'int8 float8',
  'float4 float8',
  'date timestamp',
  'timestamp date',
  'date timestamptz',
]);
