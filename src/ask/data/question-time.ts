import { queryError } from 'osl-compiler';

/** The time of one question, over all its steps. */
export interface QuestionTime {
  /** When it is up, on the clock of `performance.now()`; `Infinity` where nothing bounds it. */
  readonly until: number;
  /** Aborts when it is up, or when its asker ends it. */
  readonly signal: AbortSignal | null;
  /** No more of it is needed. */
  end(): void;
}

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
