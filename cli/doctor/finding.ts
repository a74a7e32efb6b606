import { oneLine, toFailure } from '../exit.js';

/**
 * Result of one check. `warn`: the server works, but something should be corrected. `fail`: the server would not start
 * or not work.
 */
export interface DoctorFinding {
  /** Subject of the check, such as `database db` or `ports`. */
  readonly about: string;
  readonly state: 'ok' | 'warn' | 'fail' | 'skipped';
  readonly message: string;
  /** Suggested fix. */
  readonly hint: string | null;
}

type FindingFactory = (about: string, message: string, hint?: string) => DoctorFinding;

const make =
  (state: DoctorFinding['state']): FindingFactory =>
  (about, message, hint) =>
    Object.freeze({ about, state, message, hint: hint ?? null });

export const ok = make('ok');
export const warn = make('warn');
export const fail = make('fail');
export const skipped = make('skipped');

/** Finding for an error, on one line; a hint in its message takes precedence over `hint`. */
export function failed(about: string, error: unknown, hint?: string): DoctorFinding {
  const [message = '', own] = toFailure(error)
    .message.replace(/^error: /, '')
    .split(/\s*\n\s*hint: /);
  return fail(about, oneLine(message), own === undefined ? hint : oneLine(own));
}
