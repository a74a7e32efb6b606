import { InternalError } from 'osl-compiler';
import { Execution } from './execution.js';
import type { ExecutionHost, ExecutionRules } from './execution-host.js';
import type { ChosenServer, QueryServers } from './servers.js';
import { PinnedSnapshot } from './snapshot.js';
import type { BoundValue, ExecuteOptions, ExecuteResult, RowSink, UpstreamStatement } from './statement.js';
import type { UpstreamSession } from './upstream-session.js';

export interface RunnerOptions extends ExecutionRules {
  readonly servers: QueryServers;
  /** Puts a session into its governed state, such as its unprivileged role; returns null if it already is governed. */
  readonly govern: (session: UpstreamSession) => Promise<void> | null;
}

const LOSS_DELAY_MS = 50;

/** Returns the server chosen for an execution. @throws InternalError if none was chosen yet */
function chosenBy({ chosen }: Execution): ChosenServer {
  if (chosen === null) throw new InternalError('a statement was sent before its server was chosen');
  return chosen;
}

/** Finds a session for each statement, sends the statement, and repeats it if that is allowed. */
export class Runner implements ExecutionHost<Execution> {
  readonly rules: ExecutionRules;
  readonly inTransaction = false;
  readonly servers: QueryServers;
  readonly #govern: RunnerOptions['govern'];

  constructor(options: RunnerOptions) {
    this.rules = options;
    this.servers = options.servers;
    this.#govern = options.govern;
  }

  /** Runs a statement in its snapshot or, without one, on a session of the chosen server. For use within the engine. */
  runStatement(
    statement: UpstreamStatement,
    values: readonly BoundValue[],
    options: ExecuteOptions,
    sink: RowSink,
  ): Promise<ExecuteResult> {
    return new Promise((resolve, reject) => {
      const snapshot = options.snapshot ?? null;
      if (snapshot !== null && !(snapshot instanceof PinnedSnapshot))
        throw new InternalError('a snapshot of another engine');
      const host = snapshot ?? this;
      const execution = new Execution({ statement, values, options, sink }, host, resolve, reject);
      if (execution.settled) return;
      if (snapshot === null) this.#dispatch(execution);
      else snapshot.run(execution);
    });
  }

  onEnded(execution: Execution, session: UpstreamSession): void {
    const { server } = chosenBy(execution);
    if (!session.closed && execution.rerun !== 'here' && execution.statement.output === 'rows')
      server.lanes?.observe(execution);
    if (execution.rerun === 'here' && !execution.settled && !session.closed && session.whenFree() === null) {
      execution.start(session, execution.lane);
      return;
    }
    if (execution.lane === 'alone') server.pool.release(session);
    if (execution.rerun === null || execution.settled) return;
    if (execution.rerun === 'primary if down') {
      setTimeout(() => void this.#runIfDown(execution), LOSS_DELAY_MS);
      return;
    }
    if (execution.rerun === 'primary') execution.chosen = this.servers.ofPrimary();
    // Several sessions may have died together, each noticed separately: wait a moment, so that the next session is not
    // a dead one as well.
    if (session.closed) setTimeout(() => this.#runAlone(execution), LOSS_DELAY_MS);
    else this.#runAlone(execution);
  }

  #dispatch(execution: Execution): void {
    const { statement, standby } = execution;
    const chosen = this.servers.choose(standby);
    execution.chosen = chosen;
    const shared = statement.output === 'rows' ? (chosen.server.lanes?.pick(statement) ?? null) : null;
    if (shared !== null) execution.start(shared, 'shared');
    else this.#runAlone(execution);
  }

  #runAlone(execution: Execution): void {
    const { server, asOf } = chosenBy(execution);
    const session = server.pool.take(execution.subject);
    if (session !== null) {
      this.#begin(execution, session);
      return;
    }
    server.pool.acquire(execution.subject).then(
      (acquired) => this.#beginLate(execution, acquired),
      (error) => {
        if (asOf === null) execution.stop(error);
        else this.#runOnPrimary(execution);
      },
    );
  }

  /** Begins on a session after a wait, during which a standby may have fallen behind. */
  #beginLate(execution: Execution, session: UpstreamSession): void {
    const chosen = chosenBy(execution);
    const current = this.servers.recheck(chosen, execution.standby);
    if (current.server === chosen.server) {
      execution.chosen = current;
      this.#begin(execution, session);
      return;
    }
    chosen.server.pool.release(session);
    this.#runOnPrimary(execution);
  }

  /** Reruns the statement on the primary if the standby is down. Otherwise the session was ended, and the run fails. */
  async #runIfDown(execution: Execution): Promise<void> {
    if (await this.servers.isDown(chosenBy(execution).server)) this.#runOnPrimary(execution);
    else execution.failLost();
  }

  #runOnPrimary(execution: Execution): void {
    execution.chosen = this.servers.ofPrimary();
    if (!execution.settled) this.#runAlone(execution);
  }

  #begin(execution: Execution, session: UpstreamSession): void {
    const { pool } = chosenBy(execution).server;
    if (execution.settled) {
      pool.release(session);
      return;
    }
    const governing = this.#govern(session);
    if (governing === null) {
      execution.start(session, 'alone');
      return;
    }
    governing.then(
      () => {
        if (execution.settled) pool.release(session);
        else execution.start(session, 'alone');
      },
      () => {
        // INVARIANT: a session not known to be governed never runs a caller's statement.
        session.destroy();
        execution.stop(
          new InternalError('the upstream session could not be put under its unprivileged role'),
        );
      },
    );
  }
}
