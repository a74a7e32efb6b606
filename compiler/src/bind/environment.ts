import type { WindowDef } from '@pgsql/types';
import type { Expr } from '../plan/plan.js';
import type { Location } from './ast.js';
import type { BindContext } from './context.js';
import type { Scope } from './scope.js';

/** The context of an expression: the names, calls and clauses it may use. */
export interface BindEnvironment {
  readonly ctx: BindContext;
  readonly scope: Scope;
  /** The clause, for messages: `WHERE`, `GROUP BY`, … */
  readonly clause: string;
  readonly aggregates: boolean;
  readonly windows: boolean;
  /** Windows that the WINDOW clause names. */
  readonly namedWindows: ReadonlyMap<string, WindowDef>;
  /** True if `attribute('name')` may be used: in policy predicates only. */
  readonly policy: boolean;
  /** Set if names mean something else than columns: resolves `parts` of the name at `at`. */
  readonly nameOf?: (parts: readonly string[], at: Location) => Expr;
  /** True if `/` gives fractions, and NULL for a zero divisor, as in metrics. */
  readonly guardedDivision?: boolean;
  /** True if functions that make rows are allowed: at the top of a select list, and in what is computed from them. */
  readonly rows?: boolean;
  /** True in the text of a simple metric, where a name is a column and never another metric. */
  readonly withinMetric?: boolean;
}

const NO_WINDOWS: BindEnvironment['namedWindows'] = new Map();

/** An expression of rows in `scope`: no aggregates, no windows, nothing of policy. */
export function plainEnvironment(ctx: BindContext, scope: Scope, clause: string): BindEnvironment {
  return { ctx, scope, clause, aggregates: false, windows: false, namedWindows: NO_WINDOWS, policy: false };
}

/** `env` for the inside of an aggregate or window call. */
export function insideCall(env: BindEnvironment, clause: string, aggregates: boolean): BindEnvironment {
  return { ...env, clause, aggregates, windows: false, rows: false };
}
