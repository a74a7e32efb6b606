import { readFileSync } from 'node:fs';
import { usableMemory } from '../../base/memory.js';
import { StartProblem } from '../../base/start-problem.js';
import { codeOf } from '../../base/thrown.js';
import { type ControlPlace, controlUrl } from '../../control/url.js';
import type { AnswerBounds } from '../../engine/index.js';

/** What keeps one caller's load from the others. */
export interface LoadSettings {
  /** Bytes of rows that slow readers have not taken, on disk, of this server; 0 for none. */
  readonly spoolBytes: number;
  /** Memory of answers under way, of this server. */
  readonly answers: AnswerBounds;
  /** Bytes that the memory of each embedded database may grow to. */
  readonly embeddedBytes: number;
  /** Sessions of the wire that one address may have open. */
  readonly addressSessions: number;
  /** Where gateways keep their counts of limits together; null for a gateway that counts alone. */
  readonly limits: LimitsPlace | null;
}

export type LimitsPlace =
  | { readonly kind: 'postgres'; readonly at: ControlPlace }
  | { readonly kind: 'redis'; readonly url: string };

type Environment = Readonly<Record<string, string | undefined>>;

const MIB = 1_048_576;

/** @throws StartProblem */
export function loadSettings(
  env: Environment,
  control: ControlPlace | null,
  path: (value: string) => string,
): LoadSettings {
  return Object.freeze({
    addressSessions: wholeIn(env, 'OSL_ADDRESS_SESSIONS', 5_000, 1, 1_000_000),
    spoolBytes: wholeIn(env, 'OSL_SPOOL_MIB', 1_024, 0, 1_048_576) * MIB,
    answers: answerBounds(env),
    embeddedBytes: Math.min(Math.max(usableMemory() / 2, LEAST_EMBEDDED), MOST_EMBEDDED),
    limits:
      limitsPlace(env, path) ?? (control === null ? null : Object.freeze({ kind: 'postgres', at: control })),
  });
}

/** An embedded database needs a good 100 MiB to begin with, and cannot have more than 2 GiB. */
const LEAST_EMBEDDED = 256 * MIB;
const MOST_EMBEDDED = 2_048 * MIB;

function answerBounds(env: Environment): AnswerBounds {
  const rowBytes = wholeIn(env, 'OSL_MAX_ROW_MIB', 16, 1, 1_024) * MIB;
  const most = Math.floor(Math.min(usableMemory() / 4 / MIB, MOST_ANSWERS_MIB));
  const bytes = wholeIn(env, 'OSL_ANSWER_MEMORY_MIB', most, 1, 1_048_576) * MIB;
  return answersOf(bytes, rowBytes);
}

/** Default memory of answers where there is enough of it. */
const MOST_ANSWERS_MIB = 1_024;
/** Half of it is one subject's, and a row has two copies on the way to some of its readers. */
const LEAST_ROWS = 8;

/** A process has room for some of the largest rows in any case. */
export function answersOf(bytes: number, rowBytes: number): AnswerBounds {
  return Object.freeze({ rowBytes, bytes: Math.max(bytes, LEAST_ROWS * rowBytes) });
}

/** What `OSL_LIMITS_URL` says, else the file of `OSL_LIMITS_URL_FILE`; null where neither is set. */
function limitsPlace(env: Environment, path: (value: string) => string): LimitsPlace | null {
  const said = env['OSL_LIMITS_URL'] ?? '';
  const file = env['OSL_LIMITS_URL_FILE'] ?? '';
  if (said === '' && file === '') return null;
  const url = said === '' ? textOf(path(file)) : said;
  if (/^postgres/.test(url)) {
    const at: ControlPlace = said === '' ? { file: path(file) } : { url };
    controlUrl(at, 'OSL_LIMITS_URL');
    return Object.freeze({ kind: 'postgres', at });
  }
  if (/^rediss?:/.test(url) && URL.canParse(url)) return Object.freeze({ kind: 'redis', url });
  throw new StartProblem('OSL_LIMITS_URL must be a redis://, rediss:// or postgres:// URL');
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new StartProblem(`OSL_LIMITS_URL_FILE: ${file} cannot be read (${codeOf(error) ?? 'unreadable'})`);
  }
}

function wholeIn(env: Environment, name: string, fallback: number, least: number, most: number): number {
  const text = env[name] ?? '';
  const value = text === '' ? fallback : Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new StartProblem(`${name} must be a whole number from ${least} to ${most}, not \`${text}\``);
}
