import { queryError } from 'osl-compiler';
import { stopAfter, TimeLimitError } from '../../base/threads/main-thread-time.js';
import type { RecordingParts } from '../request/parts.js';
import type { PlannedFor } from './parts.js';

export interface QuestionTime {
  /** The deadline on the clock of `performance.now()`; `Infinity` if there is none. */
  readonly until: number;
  readonly signal: AbortSignal | null;
  end(): void;
}

/** A signal that aborts after `timeoutMs`, or with `signal`; 0 means no timeout. */
export function questionTime(timeoutMs: number, signal: AbortSignal | null): QuestionTime {
  if (timeoutMs <= 0) return { until: Number.POSITIVE_INFINITY, signal, end: () => undefined };
  const up = new AbortController();
  const late = (): void => up.abort(queryError('timedOut', { seconds: timeoutMs / 1_000 }));
  const timer = setTimeout(late, timeoutMs);
  return {
    until: performance.now() + timeoutMs,
    signal: signal === null ? up.signal : AbortSignal.any([signal, up.signal]),
    end: () => clearTimeout(timer),
  };
}

/** Length in UTF-16 code units below which a text always compiles quickly. */
const SMALL_TEXT = 256;

/** Compile deadline in ms: a hundred times longer than any text within the compiler's limits takes. */
const DEADLINE_MS = 2_000;

/**
 * Runs `compile` with a deadline, which bounds how long the thread is blocked. Texts within the compiler's limits
 * never reach it.
 *
 * @throws QueryError E0511, 54001
 */
export function withinDeadline<T>(
  { log }: Pick<RecordingParts, 'log'>,
  { identity }: PlannedFor,
  size: number,
  compile: () => T,
): T {
  if (size <= SMALL_TEXT) return compile();
  try {
    return stopAfter(DEADLINE_MS, compile);
  } catch (error) {
    if (!(error instanceof TimeLimitError)) throw error;
    log.error('a text was not compiled', { caller: identity.subject, size, reason: error.message });
    throw queryError('tooComplex', { what: 'the milliseconds to compile it', limit: DEADLINE_MS });
  }
}
