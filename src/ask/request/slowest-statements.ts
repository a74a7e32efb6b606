import type { AuditOutcome, AuditSurface } from '../../../audit/index.js';
import type { RedactedStatement } from './redacted-statement.js';

/** One of the slowest statements of its minute, without literals. */
export interface SlowStatement extends RedactedStatement {
  readonly request_id: string;
  /** Its end, RFC 3339. */
  readonly at: string;
  readonly duration_ms: number;
  readonly surface: AuditSurface;
  readonly action: string;
  readonly form: string | null;
  readonly objects: readonly string[];
  readonly outcome: AuditOutcome | 'refused';
  readonly code: string | null;
  readonly rows: number;
}

export const MINUTE_MS = 60_000;
/** Statements kept of each minute of the last hour. */
const KEPT_OF_MINUTE = 5;
const RECENT_MINUTES = 60;
const MOST_MINUTES = 1_440;
const MOST_OBJECTS = 16;

/**
 * The slowest statements of each minute: five of each minute of the last hour, and one of each older minute of the last
 * day; at most 1,680, each with a shape of up to 1,024 characters.
 */
export class SlowestStatements {
  /** In µs: a faster request is not among the slowest of this minute. Infinite until `turn` is first called. */
  fromUs = Number.POSITIVE_INFINITY;
  #minute = -1;
  /** By minute since 1970, oldest first; the slowest first. */
  readonly #kept = new Map<number, SlowStatement[]>();

  /**
   * Begins the minute of `now`, if it has not begun. A minute lasts until then, as the steps of the charts do, so that
   * the statements of a step are always found in its minute.
   *
   * @param now ms since 1970
   */
  turn(now: number): void {
    const minute = Math.floor(now / MINUTE_MS);
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.fromUs = 0;
    for (const [past, statements] of this.#kept) {
      if (past <= minute - MOST_MINUTES) this.#kept.delete(past);
      else if (past <= minute - RECENT_MINUTES) statements.length = 1;
    }
  }

  /** Keeps a statement if it is among the slowest of its minute. @param now its end in ms since 1970 */
  add(statement: Omit<SlowStatement, 'at' | 'duration_ms'>, us: number, now: number): void {
    if (this.#minute < 0) return;
    if (us < this.fromUs) return;
    const statements = this.#kept.get(this.#minute) ?? [];
    this.#kept.set(this.#minute, statements);
    statements.push({
      ...statement,
      objects: statement.objects.slice(0, MOST_OBJECTS),
      at: new Date(now).toISOString(),
      duration_ms: Math.round(us) / 1_000,
    });
    statements.sort((a, b) => b.duration_ms - a.duration_ms);
    statements.length = Math.min(statements.length, KEPT_OF_MINUTE);
    const last = statements[KEPT_OF_MINUTE - 1];
    if (last !== undefined) this.fromUs = 1_000 * last.duration_ms;
  }

  /** Statements of the minutes that lie between two times in ms since 1970. */
  between(from: number, until: number): readonly SlowStatement[] {
    const [first, end] = [Math.floor(from / MINUTE_MS), Math.ceil(until / MINUTE_MS)];
    return [...this.#kept].flatMap(([minute, statements]) =>
      minute >= first && minute < end ? statements : [],
    );
  }
}
