import { StartProblem } from '../../base/start-problem.js';

/** What keeps one caller's load from the others. */
export interface LoadSettings {
  /** Bytes of rows that slow readers have not taken, on disk, of this server; 0 for none. */
  readonly spoolBytes: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

const MIB = 1_048_576;

/** @throws StartProblem */
export function loadSettings(env: Environment): LoadSettings {
  return Object.freeze({ spoolBytes: wholeIn(env, 'OSL_SPOOL_MIB', 1_024, 0, 1_048_576) * MIB });
}

function wholeIn(env: Environment, name: string, fallback: number, least: number, most: number): number {
  const text = env[name] ?? '';
  const value = text === '' ? fallback : Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new StartProblem(`${name} must be a whole number from ${least} to ${most}, not \`${text}\``);
}
