import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { SolverAnswer, SolverReply, SolverRequest } from './solver-process.js';

const PROGRAM = fileURLToPath(new URL('./solver-process.js', import.meta.url));

/** The solver is not installed, or it failed. */
export class SolverFault extends Error {
  override readonly name = 'SolverFault';
  readonly isMissing: boolean;

  constructor(message: string, isMissing: boolean) {
    super(message);
    this.isMissing = isMissing;
  }
}

/** Time in ms for one question. */
const MOST_MS = 10_000;

/** A Z3 that is asked one question at a time. */
export class Solver {
  readonly #child: ChildProcess;
  #waiting: ((reply: SolverReply) => void) | null = null;

  private constructor() {
    this.#child = fork(PROGRAM, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#child.on('message', (reply: SolverReply) => this.#answer(reply)); // sent by our own program
    this.#child.once('exit', () => this.#answer({ kind: 'failed', reason: 'the solver ended' }));
  }

  /** @throws SolverFault */
  static async start(): Promise<Solver> {
    const solver = new Solver();
    const reply = await solver.#reply();
    if (reply.kind === 'ready') return solver;
    solver.stop();
    throw failed(reply);
  }

  /** Checks whether declarations and assertions can be satisfied. @throws SolverFault */
  async check(text: string, timeoutMs = MOST_MS): Promise<SolverAnswer> {
    const reply = this.#reply();
    this.#child.send({ text, timeoutMs } satisfies SolverRequest);
    const answer = await reply;
    if (answer.kind === 'ready' || answer.kind === 'missing' || answer.kind === 'failed')
      throw failed(answer);
    return answer;
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

function failed(reply: SolverReply): SolverFault {
  if (reply.kind === 'missing')
    return new SolverFault('proofs need the package z3-solver, which is not installed', true);
  const reason = reply.kind === 'failed' ? reply.reason : `it answered ${reply.kind}`;
  return new SolverFault(`the solver failed: ${reason}`, false);
}
