import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Script } from '../../policy/proof/index.js';
import type { SolverAnswer, SolverReply, SolverRequest } from './solver-process.js';

const PROGRAM = fileURLToPath(new URL('./solver-process.js', import.meta.url));

/** The solver is not installed or has failed. */
export class SolverFault extends Error {
  override readonly name = 'SolverFault';
  readonly isMissing: boolean;

  constructor(message: string, isMissing: boolean) {
    super(message);
    this.isMissing = isMissing;
  }
}

/** Default timeout for one case in ms. */
const MOST_MS = 10_000;

/** A Z3 solver in a separate process, which handles one request at a time. */
export class Solver {
  readonly #child: ChildProcess;
  #waiting: ((reply: SolverReply) => void) | null = null;
  #last: Promise<unknown> = Promise.resolve();
  /** Answers by request. Requests repeat, because grants of many entities often have the same filter. */
  readonly #known = new Map<string, Promise<readonly SolverAnswer[]>>();

  private constructor() {
    this.#child = fork(PROGRAM, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#child.on('message', (reply: SolverReply) => this.#answer(reply)); // sent by our own program
    this.#child.once('exit', () => this.#answer({ kind: 'failed', reason: 'the solver ended' }));
  }

  /** Starts a solver and waits until it is ready. @throws SolverFault */
  static async start(): Promise<Solver> {
    const solver = new Solver();
    const reply = await solver.#reply();
    if (reply.kind === 'ready') return solver;
    solver.stop();
    throw failed(reply);
  }

  /** Checks for each case of a script if its assertions can be satisfied. @throws SolverFault */
  check(
    { text, cases }: Pick<Script, 'text' | 'cases'>,
    { wantsValues = false, timeoutMs = MOST_MS } = {},
  ): Promise<readonly SolverAnswer[]> {
    const request = { text, cases, wantsValues, timeoutMs };
    const key = JSON.stringify(request);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const answers = this.#last.then(() => this.#ask(request));
    this.#last = answers.catch(() => undefined);
    this.#known.set(key, answers);
    return answers;
  }

  async #ask(request: SolverRequest): Promise<readonly SolverAnswer[]> {
    if (!this.#child.connected) throw failed({ kind: 'failed', reason: 'it has ended' });
    const reply = this.#reply();
    this.#child.send(request);
    const answer = await reply;
    if (answer.kind !== 'answers') throw failed(answer);
    return answer.answers;
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }

  #reply(): Promise<SolverReply> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  #answer(reply: SolverReply): void {
    this.#waiting?.(reply);
    this.#waiting = null;
  }
}

/** Runs `work` with a new solver, which may not be ready yet, and stops the solver. @throws SolverFault */
export async function withSolver<T>(work: (starting: Promise<Solver>) => Promise<T>): Promise<T> {
  const starting = Solver.start();
  starting.catch(() => undefined); // a failure before `work` awaits it must not count as unhandled
  try {
    return await work(starting);
  } finally {
    await starting.then(
      (solver) => solver.stop(),
      () => undefined, // reported by `work`
    );
  }
}

function failed(reply: SolverReply): SolverFault {
  if (reply.kind === 'missing')
    return new SolverFault('proofs need the package z3-solver, which is not installed', true);
  const reason = reply.kind === 'failed' ? reply.reason : `it answered ${reply.kind}`;
  return new SolverFault(`the solver failed: ${reason}`, false);
}
