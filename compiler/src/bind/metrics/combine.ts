import { InternalError } from '../../errors/errors.js';
import { resolveFunction } from '../../functions/index.js';
import { inType, isNotNull, selectOf } from '../../plan/nodes.js';
import type { Expr, Query, Select } from '../../plan/plan.js';
import { isArray, type TypeName } from '../../types/types.js';
import type { BindContext } from '../context.js';
import { aggregate, allRowsOf, derivedRows, unnamedOutputs } from './build.js';

/** What the outermost SELECT has beside its rows. */
type Outermost = Pick<Select, 'outputs'> & Partial<Pick<Select, 'having' | 'orderBy' | 'limit'>>;

/** The keys and figures of all parts, as expressions of one SELECT. */
export interface Answer {
  readonly keys: readonly Expr[];
  readonly values: ReadonlyMap<string, Expr>;
  query(more: Outermost): Query;
}

/**
 * One answer of several parts: their results one below the other, then grouped by the keys again, where each figure
 * has at most one row. NULL is a key like any other, so nothing is lost and nothing is counted twice.
 */
export function combineParts(parts: readonly [Answer, ...Answer[]], ctx: BindContext): Answer {
  const [first, ...rest] = parts;
  if (rest.length === 0) return first;
  const leaves = parts.flatMap((p) => [...p.values].map(([key, { type }]) => ({ key, type })));
  const queries = parts.map((part) => {
    const values = leaves.map(({ key, type }) => part.values.get(key) ?? nothing(type));
    return part.query({ outputs: unnamedOutputs([...part.keys, ...values]) });
  });
  const [query, ...others] = queries;
  if (query === undefined) throw new InternalError('an answer has a part');
  const rows = derivedRows(allRowsOf([query, ...others]), ctx);
  const width = first.keys.length;
  const keys = rows.columns.slice(0, width);
  const values = leaves.map(({ key }, i): [string, Expr] => [key, onlyOne(rows.columns[width + i], ctx)]);
  return {
    keys,
    values: new Map(values),
    query: (more) => selectOf({ from: rows.item, grouped: true, groupBy: keys, ...more }),
  };
}

function nothing(type: TypeName): Expr {
  return Object.freeze({ kind: 'null', type });
}

/** The one value of `column` in a group that is not NULL. */
function onlyOne(column: Expr | undefined, ctx: BindContext): Expr {
  if (column === undefined) throw new InternalError('a figure has a column');
  if (typeof resolveFunction('max', [column.type]) !== 'string')
    return inType(aggregate('max', [column], null, ctx), column.type);
  if (column.type === 'bool') return aggregate('bool_or', [column], null, ctx);
  const all = aggregate('array_agg', [column], isNotNull(column), ctx);
  const indices = Object.freeze([ctx.constant('1', 'int4')]);
  if (isArray(column.type)) throw new InternalError(`a figure of type ${column.type}`);
  return Object.freeze({ kind: 'subscript', arg: all, indices, type: column.type });
}
