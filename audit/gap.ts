import type { AuditUnavailable } from './errors.js';
import type { AppendDone } from './group.js';
import type { AuditGap } from './interface.js';
import type { AuditEntry } from './record.js';

/** Outcomes that may wait for the disk; a gateway has seldom more requests under way. */
const MOST_OUTCOMES = 10_000;

interface PendingRecord {
  readonly entry: AuditEntry;
  readonly done: AppendDone;
}

/**
 * Handling of the time between a disk failure and the next record. Decisions are refused. An outcome belongs to a
 * decision that is on disk and tells what has happened already, so it waits.
 */
export class LogOutage {
  readonly failure: AuditUnavailable;
  readonly #since = new Date().toISOString();
  readonly #waiting: PendingRecord[] = [];
  #mostOutcomes: number;
  #refused: number;
  #lost = 0;

  /**
   * @param refused how many records the failure itself refused
   * @param lasting nothing will be written after it: then outcomes are refused too
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

  /** An outcome that the failure refused. */
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

  /** The outage as it stands. */
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

  /** Those who wait, once. */
  release(): readonly PendingRecord[] {
    return this.#waiting.splice(0);
  }

  /** Nothing will be written any more. */
  giveUp(): void {
    this.#mostOutcomes = 0;
    for (const { done } of this.release()) done(this.failure, -1);
  }
}

/** Error text of the system, or of the log itself. */
export function causeOf({ cause, message }: AuditUnavailable): string {
  return cause instanceof Error ? cause.message : message;
}
