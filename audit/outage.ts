import type { AppendDone } from './commit-group.js';
import type { AuditUnavailable } from './errors.js';
import type { AuditGap } from './interface.js';
import type { AuditEntry } from './record.js';

/** Most outcomes that wait for the disk; more than a gateway usually has requests in progress. */
const MOST_OUTCOMES = 10_000;

interface PendingRecord {
  readonly entry: AuditEntry;
  readonly done: AppendDone;
}

/**
 * Handles entries between a disk failure and recovery. Decisions are refused. Outcomes wait, because their decision
 * is already on disk and the request has run.
 */
export class LogOutage {
  readonly failure: AuditUnavailable;
  readonly #since = new Date().toISOString();
  readonly #waiting: PendingRecord[] = [];
  #mostOutcomes: number;
  #refused: number;
  #lost = 0;

  /**
   * @param refused records refused by the failure itself
   * @param lasting true if the log will not reopen: outcomes are then refused too
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

  /** Requeues an outcome that the failure refused. */
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

  /** Refuses all waiting outcomes, and later ones. */
  giveUp(): void {
    this.#mostOutcomes = 0;
    for (const { done } of this.release()) done(this.failure, -1);
  }
}

/** Message of the underlying system error, else of the log's own error. */
export function causeOf({ cause, message }: AuditUnavailable): string {
  return cause instanceof Error ? cause.message : message;
}
