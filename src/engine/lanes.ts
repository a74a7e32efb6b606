import { LRUCache } from 'lru-cache';
import type { EnginePool } from './pool.js';
import type { PlanMode, UpstreamStatement } from './statement.js';
import type { UpstreamSession } from './upstream-session.js';

/** Maximum number of rows of a shared execution; a statement that returns more runs again alone. */
export const SHARED_ROWS = 128;
export const SHARED_BYTES = 65_536;
/**
 * On an unshared session, an answer within this time, `SHARED_ROWS` and `SHORT_BYTES` proves that its statement is
 * short. Slower answers, up to the timeout, prove nothing: the machine may have been busy.
 */
const SHORT_MS = 10;
const SHORT_BYTES = 16_384;
/** Statement timeout of a shared session in ms. A slower answer, on any session, lowers the score of its statement. */
export const SHARED_TIMEOUT_MS = 100;
/** Number of short answers after which a statement is considered short. */
const MIN_PROOFS = 3;
/** A statement's score is set to `-PENALTY` after an answer that was not short. */
const PENALTY = 50;
const MAX_STATEMENTS = 5_000;
/** Maximum number of statements in flight on one shared session. */
const MAX_IN_FLIGHT = 64;
const RETRY_MS = 1_000;
/** Silence in ms after which a shared session is considered lost; its statements time out far earlier. */
const SILENT_MS = 10_000;

/**
 * Sessions on which the statements of many callers are pipelined.
 *
 * Read-only statements are independent between Syncs, so the upstream can answer several per wake-up. Only statements
 * that have proved short are admitted. The sessions have a short statement timeout; a statement that exceeds it runs
 * again alone and must prove itself again.
 */
export class Lanes {
  readonly #connect: (mode: PlanMode) => Promise<UpstreamSession>;
  readonly #sessions: Readonly<Record<PlanMode, (UpstreamSession | null)[]>>;
  readonly #proofs = new LRUCache<string, number>({ max: MAX_STATEMENTS });
  #retryAt = 0;
  #closed = false;

  /** @param count sessions per plan mode, connected on first use */
  constructor(count: number, connect: (mode: PlanMode) => Promise<UpstreamSession>) {
    this.#connect = connect;
    const emptySlots = (): (UpstreamSession | null)[] => new Array<UpstreamSession | null>(count).fill(null);
    this.#sessions = { auto: emptySlots(), force_custom_plan: emptySlots() };
  }

  /** Returns the least loaded shared session for a short statement; null if the statement must run alone. */
  pick({ sql, planMode }: Pick<UpstreamStatement, 'sql' | 'planMode'>): UpstreamSession | null {
    if ((this.#proofs.get(sql) ?? 0) < MIN_PROOFS) return null;
    let best: UpstreamSession | null = null;
    for (const [i, session] of this.#sessions[planMode].entries()) {
      if (session !== null && session.silentMs > SILENT_MS) session.destroy();
      if (session === null || session.closed || session.tainted) this.#replace(planMode, i, session);
      else if (best === null || session.load < best.load) best = session;
    }
    return best === null || best.load >= MAX_IN_FLIGHT ? null : best;
  }

  /** Updates the score of a statement from its answer. */
  observe(execution: ExecutionCost): void {
    const { sql } = execution.statement;
    const verdict = verdictOf(execution);
    const proof = this.#proofs.get(sql) ?? 0;
    if (verdict === null || (verdict === 'short' && proof >= MIN_PROOFS)) return;
    this.#proofs.set(sql, verdict === 'short' ? proof + 1 : -PENALTY);
  }

  /** Returns the metrics of the shared sessions. @param standby name of the standby; null for the primary */
  metrics(reach: EnginePool['reach'], standby: string | null = null): EnginePool {
    const slots = Object.values(this.#sessions).flat();
    const sessions = slots.filter((session) => session !== null).filter((session) => !session.closed);
    const running = sessions.reduce((sum, session) => sum + session.load, 0);
    return {
      purpose: 'short',
      standby,
      size: slots.length,
      open: sessions.length,
      running,
      waiting: 0,
      reach,
    };
  }

  close(): void {
    this.#closed = true;
    for (const session of Object.values(this.#sessions).flat()) session?.destroy();
  }

  #replace(mode: PlanMode, i: number, old: UpstreamSession | null): void {
    const sessions = this.#sessions[mode];
    if (this.#closed || performance.now() < this.#retryAt) return;
    if (old !== null && !old.closed && old.load > 0) return; // tainted: wait for its last answers
    old?.destroy();
    sessions[i] = null;
    this.#retryAt = performance.now() + RETRY_MS;
    this.#connect(mode).then(
      (session) => {
        if (this.#closed || sessions[i] !== null) session.destroy();
        else sessions[i] = session;
        this.#retryAt = 0;
      },
      () => undefined, // meanwhile statements run alone and report the error
    );
  }
}

/** The cost of an execution, or of a part of one that runs again. */
interface ExecutionCost {
  readonly statement: Pick<UpstreamStatement, 'sql'>;
  /** Set if the execution runs again (see `Execution.rerun`); null if it is over. */
  readonly rerun: string | null;
  readonly lane: 'alone' | 'shared';
  readonly rowCount: number;
  readonly byteCount: number;
  /** Start of the execution, in ms on the clock of `performance.now()`. */
  readonly startedAt: number;
}

/** Rates the statement by its answer; null if the answer proves nothing. */
function verdictOf({ rerun, lane, rowCount, byteCount, startedAt }: ExecutionCost): 'short' | 'long' | null {
  if (rerun !== null || rowCount > SHARED_ROWS || byteCount > SHORT_BYTES) return 'long';
  if (lane === 'shared') return 'short';
  const ms = performance.now() - startedAt;
  if (ms < SHORT_MS) return 'short';
  return ms < SHARED_TIMEOUT_MS ? null : 'long';
}
