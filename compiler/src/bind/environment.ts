import type { WindowDef } from '@pgsql/types';
import type { Expr } from '../plan/plan.js';
import type { Location } from './ast.js';
import type { BindContext } from './context.js';
import type { Scope } from './scope.js';

/** Context of an expression: names, calls and clauses that it may use. */
export interface BindEnvironment {
  readonly ctx: BindContext;
  readonly scope: Scope;
  readonly clause: string;
  readonly aggregates: boolean;
  readonly windows: boolean;
  readonly namedWindows: ReadonlyMap<string, WindowDef>;
  /** True if `attribute('name')` is allowed, which is so in policy predicates only. */
  readonly policy: boolean;
  /** Resolves names that are not columns of the scope, if set. */
  readonly nameOf?: (parts: readonly string[], at: Location) => Expr;
  /** True if `/` yields fractions and NULL for a zero divisor, as in metrics. */
  readonly guardedDivision?: boolean;
  /** True if set-returning functions are allowed: at the top of a select list. */
  readonly rows?: boolean;
  /** True in the text of a simple metric, where names never refer to other metrics. */
  readonly withinMetric?: boolean;
}

const NO_WINDOWS: BindEnvironment['namedWindows'] = new Map();

/** Environment without aggregates, windows or policy functions. */
export function plainEnvironment(ctx: BindContext, scope: Scope, clause: string): BindEnvironment {
  return { ctx, scope, clause, aggregates: false, windows: false, namedWindows: NO_WINDOWS, policy: false };
}

/** Environment of the arguments of an aggregate or window call. */
export function insideCall(env: BindEnvironment, clause: string, aggregates: boolean): BindEnvironment {
  return { ...env, clause, aggregates, windows: false, rows: false };
}
