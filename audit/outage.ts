import type { AppendDone } from './commit-group.js';
import type { AuditUnavailable } from './errors.js';
import type { AuditGap } from './interface.js';
import type { AuditEntry } from './record.js';

/** Maximum number of outcomes that wait for the disk; more than the requests a gateway usually has in progress. */
const MOST_OUTCOMES = 10_000;

interface PendingRecord {
  readonly entry: AuditEntry;
  readonly done: AppendDone;
}

/**
 * Handles entries between a disk failure and recovery. Decisions are refused. Outcomes wait, because their decisions
 * are already on disk and the requests have been executed.
 */
export class LogOutage {
  readonly failure: AuditUnavailable;
  readonly #since = new Date().toISOString();
  readonly #waiting: PendingRecord[] = [];
  #mostOutcomes: number;
  #refused: number;
  #lost = 0;

  /**
   * @param refused number of records refused because of the failure itself
   * @param lasting true if the log will not reopen, in which case outcomes are refused too
   */
  constructor(failure: AuditUnavailable, refused: number, lasting: boolean) {
    this.failure = failure;
    this.#refused = refused;
    this.#mostOutcomes = lasting ? 0 : MOST_OUTCOMES;
  }

  take(entry: AuditEntry, done: AppendDone): void {
    if (entry.kind === 'outcome') {
      this.#keep(entry, done);
      return;
    }
    this.#refused += 1;
    process.nextTick(done, this.failure, -1);
  }

  /** Queues an outcome that was refused because of the failure. */
  takeBack(outcome: AuditEntry, done: AppendDone): void {
    this.#refused -= 1;
    this.#keep(outcome, done);
  }

  #keep(outcome: AuditEntry, done: AppendDone): void {
    if (this.#waiting.length < this.#mostOutcomes) {
      this.#waiting.push({ entry: { ...outcome, ts: outcome.ts ?? new Date().toISOString() }, done });
      return;
    }
    this.#lost += 1;
    process.nextTick(done, this.failure, -1);
  }

  gap(): AuditGap {
    return Object.freeze({
      since: this.#since,
      until: new Date().toISOString(),
      reason: this.failure.reason,
      cause: causeOf(this.failure),
      refused: this.#refused,
      outcomesKept: this.#waiting.length,
      outcomesLost: this.#lost,
    });
  }

  release(): readonly PendingRecord[] {
    return this.#waiting.splice(0);
  }

  /** Refuses all waiting and later outcomes. */
  giveUp(): void {
    this.#mostOutcomes = 0;
    for (const { done } of this.release()) done(this.failure, -1);
  }
}

/** Message of the underlying system error, or of the log's own error if there is none. */
export function causeOf({ cause, message }: AuditUnavailable): string {
  return cause instanceof Error ? cause.message : message;
}
