import type { Expr } from '../../plan/plan.js';
import type { BindContext } from '../context.js';
import { WrittenLiteral } from '../literals.js';
import { settingsFree } from './settings-free.js';

/** A value that the manifest states, with its literals in the slots of `ctx`: the same under all settings of a session. */
export function ofManifest(value: Expr, ctx: BindContext): Expr {
  return settingsFree(value, {
    valueOf: (e) => ctx.literalValue(e),
    make: (v, type) =>
      ctx.literal(
        typeof v === 'string'
          ? new WrittenLiteral(v, null)
          : v.map((item) => (item === null ? null : new WrittenLiteral(item, null))),
        type,
      ),
  });
}
