import type { TypeName as TypeNode } from '@pgsql/types';
import type { Expr } from '../../plan/plan.js';
import { type Location, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import type { Bound } from './coerce.js';

/** Whether the type is `"char"`, one byte; `char` without quotes is `pg_catalog.bpchar` to the grammar. */
export function isOneByte({ names = [] }: TypeNode): boolean {
  const [first, second] = names.map(stringOf);
  return (second ?? first) === 'char' && (second === undefined || first === 'pg_catalog');
}

/**
 * `'r'::"char"`: the first byte of a literal, as a text. Of what else there is, and of a letter that takes several
 * bytes, Postgres makes bytes that are no text.
 *
 * @throws QueryError E0511
 */
export function bindOneByte(bound: Bound, at: Location, ctx: BindContext): Expr {
  const value = bound.kind === 'untyped' ? bound.value : { literal: null };
  if (value === null) return ctx.at(Object.freeze({ kind: 'null', type: 'text' }), at);
  const first = 'literal' in value ? value.literal?.read().slice(0, 1) : undefined;
  if (first === undefined || first > '\u007f')
    throw ctx.unsupported('`"char"` of anything but a literal in ASCII', at, 'use left(…, 1)');
  return ctx.at(ctx.constant(first, 'text'), at);
}
