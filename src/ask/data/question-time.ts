import { queryError } from 'osl-compiler';

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
