import { messageOf } from '../../src/base/thrown.js';

/** Runs Z3 in a process of its own: it needs half a gigabyte, and its threads never end. */

/** Declarations and assertions in SMT-LIB 2. */
export interface SolverRequest {
  readonly text: string;
  readonly timeoutMs: number;
}

export type SolverAnswer =
  | { readonly kind: 'unsat' }
  /** With the values of constants, as S-expressions by name. */
  | { readonly kind: 'sat'; readonly constants: readonly (readonly [name: string, value: string])[] }
  | { readonly kind: 'unknown'; readonly reason: string };

export type SolverReply =
  | SolverAnswer
  | { readonly kind: 'ready' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'failed'; readonly reason: string };

const say = (reply: SolverReply): void => void process.send?.(reply);

async function started() {
  const { init } = await import('z3-solver');
  const { Solver } = (await init()).Context('main');
  const solver = new Solver();
  return async ({ text, timeoutMs }: SolverRequest): Promise<SolverAnswer> => {
    solver.reset();
    solver.set('timeout', timeoutMs);
    // Not `eval_smtlib2_string`, which reads its text after the memory of it has been given back.
    solver.fromString(text);
    const kind = await solver.check();
    if (kind === 'unknown') return { kind, reason: solver.reasonUnknown() };
    if (kind === 'unsat') return { kind };
    const model = solver.model();
    const constants = model
      .decls()
      .filter((decl) => decl.arity() === 0)
      .map((decl) => [String(decl.name()), valueText(model.get(decl))] as const);
    return { kind, constants };
  };
}

function valueText(value: { sexpr(): string } | object): string {
  return 'sexpr' in value ? value.sexpr() : '';
}

try {
  const run = await started();
  process.on('message', (request: SolverRequest) => {
    run(request).then(say, (error: unknown) => say({ kind: 'failed', reason: messageOf(error) }));
  });
  say({ kind: 'ready' });
} catch (error) {
  const missing = error instanceof Error && Reflect.get(error, 'code') === 'ERR_MODULE_NOT_FOUND';
  say(missing ? { kind: 'missing' } : { kind: 'failed', reason: messageOf(error) });
}
process.on('disconnect', () => process.exit());
