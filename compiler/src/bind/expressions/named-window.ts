import type { WindowDef } from '@pgsql/types';
import type { BindContext } from '../context.js';

/**
 * `(w ORDER BY … ROWS …)`: window `base` with what `window` adds to it, by Postgres' rules: the partitions are those of
 * the base, an order may be added where it has none, and a base with a frame is no base.
 */
export function extended(window: WindowDef, base: WindowDef, ctx: BindContext): WindowDef {
  const { location } = window;
  const name = base.name ?? '';
  const fault =
    window.partitionClause !== undefined
      ? `window \`${name}\` has its PARTITION BY, which cannot be given again`
      : window.orderClause !== undefined && base.orderClause !== undefined
        ? `window \`${name}\` has its ORDER BY, which cannot be given again`
        : ((base.frameOptions ?? 0) & NONDEFAULT) !== 0
          ? `window \`${name}\` has a frame, so that no other can extend it`
          : null;
  if (fault !== null) throw ctx.error('windowing', { detail: fault }, location);
  const { frameOptions, startOffset, endOffset } = window;
  const orderClause = window.orderClause ?? base.orderClause;
  return {
    ...(location === undefined ? {} : { location }),
    ...(frameOptions === undefined ? {} : { frameOptions }),
    ...(startOffset === undefined ? {} : { startOffset }),
    ...(endOffset === undefined ? {} : { endOffset }),
    ...(base.partitionClause === undefined ? {} : { partitionClause: base.partitionClause }),
    ...(orderClause === undefined ? {} : { orderClause }),
  };
}

/** Of `frameOptions`: a frame was written. */
const NONDEFAULT = 0x1;
