import type { Column } from '../catalog/catalog.js';
import type { FunctionDefinition, OperatorDefinition } from '../functions/define.js';
import { charactersOf } from '../types/column-form.js';
import type { TypeName } from '../types/types.js';
import {
  type BaseColumn,
  type Cast,
  type ColumnRef,
  type Expr,
  type FunctionCall,
  NO_MODIFIERS,
  type Operation,
  type SourceId,
} from './plan.js';

/** Constructors of plan nodes, which are frozen and have every field set. */

export const TRUE: Expr = Object.freeze({ kind: 'boolean', value: true, type: 'bool' });
export const FALSE: Expr = Object.freeze({ kind: 'boolean', value: false, type: 'bool' });

/** Returns a column of an upstream table, with the facts about its stored type that proofs rely on. */
export function baseColumn({
  physical,
  type,
  stored,
  form,
}: Pick<Column, 'physical' | 'type' | 'stored' | 'form'>): BaseColumn {
  const characters = charactersOf(form ?? null);
  return Object.freeze({
    kind: 'base',
    column: physical,
    type,
    ...(stored !== undefined && { stored }),
    ...(characters !== null && { characters }),
  });
}

export function columnRef(source: SourceId, name: string, type: TypeName): ColumnRef {
  return Object.freeze({ kind: 'column', source, name, type });
}

/** Returns the conjunction of `conditions`: TRUE if there are none, the condition itself if there is one. */
export function allOf(conditions: readonly Expr[]): Expr {
  const [first, second] = conditions;
  if (first === undefined) return TRUE;
  return second === undefined
    ? first
    : Object.freeze({ kind: 'and', args: Object.freeze([...conditions]), type: 'bool' });
}

/** Returns the disjunction of `conditions`: FALSE if there are none, the condition itself if there is one. */
export function anyOf(conditions: readonly Expr[]): Expr {
  const [first, second] = conditions;
  if (first === undefined) return FALSE;
  return second === undefined
    ? first
    : Object.freeze({ kind: 'or', args: Object.freeze([...conditions]), type: 'bool' });
}

/** `arg IS NOT NULL`. */
export function isNotNull(arg: Expr): Expr {
  return Object.freeze({ kind: 'null_test', arg, negated: true, type: 'bool' });
}

/** A NULL with type `type`. */
export function nullOf(type: TypeName): Expr {
  return Object.freeze({ kind: 'null', type });
}

/** `arg IS [NOT] TRUE | FALSE`. */
export function truthTest(arg: Expr, test: 'true' | 'false', negated: boolean): Expr {
  return Object.freeze({ kind: 'truth_test', arg, test, negated, type: 'bool' });
}

/** `CASE WHEN when THEN result ELSE otherwise END`. */
export function caseNode(when: Expr, result: Expr, otherwise: Expr): Expr {
  const arms = Object.freeze([Object.freeze({ when, result })]);
  return Object.freeze({ kind: 'case', arms, otherwise, type: otherwise.type });
}

/** `arg = ANY (array)`. */
export function equalsAny(definition: OperatorDefinition, arg: Expr, array: Expr): Expr {
  return Object.freeze({ kind: 'quantified', definition, quantifier: 'any', arg, array, type: 'bool' });
}

/** `arg` cast to `type`, without modifiers. */
export function castTo(arg: Expr, type: TypeName): Cast {
  return Object.freeze({ kind: 'cast', arg, type, modifiers: NO_MODIFIERS });
}

/** Returns `arg` in `type`: unchanged if it has that type, else cast to it. */
export function inType(arg: Expr, type: TypeName): Expr {
  return arg.type === type ? arg : castTo(arg, type);
}

/** `left <operator> right`; a prefix operator has no left side. */
export function operationNode(
  definition: OperatorDefinition,
  left: Expr | null,
  right: Expr,
  type: TypeName = 'bool',
): Operation {
  return Object.freeze({ kind: 'operation', definition, left, right, type });
}

/** Creates a call of a function that is not an aggregate. */
export function callNode(
  definition: FunctionDefinition,
  args: readonly Expr[],
  type: TypeName,
): FunctionCall {
  return Object.freeze({ kind: 'call', definition, args: Object.freeze([...args]), type });
}
