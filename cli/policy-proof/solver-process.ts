import type { Context, Expr, Model } from 'z3-solver';
import type { ModelValue } from '../../policy/proof/index.js';
import { messageOf } from '../../src/base/thrown.js';

/** Runs Z3 in a separate process, because it needs half a gigabyte and its threads never end. */

export interface SolverRequest {
  /** Declarations and assertions in SMT-LIB 2. */
  readonly text: string;
  /** For each case, the names of the constants assumed to be true. */
  readonly cases: readonly (readonly string[])[];
  /** True if answers must contain the values of constants. Reading them takes as long as a simple case. */
  readonly wantsValues: boolean;
  /** Timeout for one case in ms. */
  readonly timeoutMs: number;
}

type ModelConstant = readonly [name: string, value: ModelValue];

export type SolverAnswer =
  | { readonly kind: 'unsat' }
  | { readonly kind: 'sat'; readonly constants: readonly ModelConstant[] }
  | { readonly kind: 'unknown'; readonly reason: string };

export type SolverReply =
  | { readonly kind: 'answers'; readonly answers: readonly SolverAnswer[] }
  | { readonly kind: 'ready' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'failed'; readonly reason: string };

const say = (reply: SolverReply): void => void process.send?.(reply);

async function started() {
  const { init } = await import('z3-solver');
  const { Context, Z3 } = await init();
  const z3 = Context('main');
  const solver = new z3.Solver();
  const isText = ({ ast }: Expr<'main'>): boolean => Z3.is_string(z3.ptr, ast);
  /** Replaces the assertions. The solver is kept, because creating one takes as long as a simple case. */
  const load = (text: string): void => {
    solver.pop(solver.numScopes());
    solver.push();
    // Not `solver.fromString`, which keeps declarations, and not `eval_smtlib2_string`, which reads freed memory.
    const formulas = Z3.parse_smtlib2_string(z3.ptr, text, [], [], [], []);
    const code = Z3.get_error_code(z3.ptr);
    if (code !== 0) throw new Error(Z3.get_error_msg(z3.ptr, code));
    Z3.ast_vector_inc_ref(z3.ptr, formulas);
    for (let i = 0; i < Z3.ast_vector_size(z3.ptr, formulas); i++)
      Z3.solver_assert(z3.ptr, solver.ptr, Z3.ast_vector_get(z3.ptr, formulas, i));
    Z3.ast_vector_dec_ref(z3.ptr, formulas);
  };
  const check = async (names: readonly string[], wantsValues: boolean): Promise<SolverAnswer> => {
    // Constants are assumed, not asserted, so that Z3 uses its incremental solver, which starts in half the time.
    const kind = await solver.check(...names.map((name) => z3.Bool.const(name)));
    if (kind === 'unknown') return { kind, reason: solver.reasonUnknown() };
    if (kind === 'unsat') return { kind };
    return { kind, constants: wantsValues ? constantsIn(solver.model(), z3, isText) : [] };
  };
  return async ({ text, cases, wantsValues, timeoutMs }: SolverRequest): Promise<readonly SolverAnswer[]> => {
    solver.set('timeout', timeoutMs);
    load(text);
    const answers: SolverAnswer[] = [];
    for (const names of cases) {
      const isMore = (other: readonly string[], i: number): boolean =>
        answers[i]?.kind === 'unsat' && other.every((name) => names.includes(name));
      answers.push(cases.some(isMore) ? { kind: 'unsat' } : await check(names, wantsValues));
    }
    return answers;
  };
}

/** Returns the constants that have a literal value. `sexpr` would print any value, but takes 2 ms for each. */
function constantsIn(model: Model<'main'>, z3: Context<'main'>, isText: (value: Expr<'main'>) => boolean) {
  const constants: ModelConstant[] = [];
  for (const decl of model.decls()) {
    if (decl.arity() > 0) continue;
    const value = model.get(decl);
    const name = String(decl.name());
    if (z3.isTrue(value) || z3.isFalse(value)) constants.push([name, z3.isTrue(value)]);
    else if (z3.isIntVal(value) || z3.isRealVal(value)) constants.push([name, value.asString()]);
    else if (z3.isString(value) && isText(value)) constants.push([name, plainText(value.asString())]);
  }
  return constants;
}

/** Decodes the escape sequences in a string that Z3 printed. */
function plainText(escaped: string): string {
  return escaped.replace(/\\u\{([0-9a-fA-F]+)\}/g, (_, code: string) =>
    String.fromCodePoint(Number.parseInt(code, 16)),
  );
}

try {
  const run = await started();
  process.on('message', (request: SolverRequest) => {
    run(request).then(
      (answers) => say({ kind: 'answers', answers }),
      (error: unknown) => say({ kind: 'failed', reason: messageOf(error) }),
    );
  });
  say({ kind: 'ready' });
} catch (error) {
  const missing = error instanceof Error && Reflect.get(error, 'code') === 'ERR_MODULE_NOT_FOUND';
  say(missing ? { kind: 'missing' } : { kind: 'failed', reason: messageOf(error) });
}
process.on('disconnect', () => process.exit());
