import { readFileSync } from 'node:fs';
import { type ControlPlace, controlUrl } from '../../base/control/url.js';
import { usableMemory } from '../../base/memory.js';
import { StartProblem } from '../../base/start-problem.js';
import { codeOf } from '../../base/thrown.js';
import type { AnswerBounds } from '../../engine/index.js';
import { databasePlace } from './control.js';
import { type ReadSetting, SETTINGS } from './table.js';

/** Resource limits. */
export interface LoadSettings {
  /** Disk space for rows of slow readers, in bytes; 0: none. */
  readonly spoolBytes: number;
  /** Memory of answers in progress. */
  readonly answers: AnswerBounds;
  /** Memory limit of each embedded database, in bytes. */
  readonly embeddedBytes: number;
  /** Postgres sessions per client address. */
  readonly addressSessions: number;
  /** Shared store of rate limits; null: counted per gateway. */
  readonly limits: LimitsPlace | null;
}

export type LimitsPlace =
  | { readonly kind: 'postgres'; readonly at: ControlPlace }
  | { readonly kind: 'redis'; readonly url: string };

const MIB = 1_048_576;

/** @throws StartProblem */
export function loadSettings(read: ReadSetting): LoadSettings {
  const control = databasePlace(read, 'OSL_CONTROL_URL');
  return Object.freeze({
    addressSessions: read('OSL_ADDRESS_SESSIONS'),
    spoolBytes: read('OSL_SPOOL_MIB'),
    answers: answersOf(
      read('OSL_ANSWER_MEMORY_MIB') ??
        Math.max(1, Math.floor(Math.min(usableMemory() / 4 / MIB, MOST_ANSWERS_MIB))) * MIB,
      read('OSL_MAX_ROW_MIB'),
    ),
    embeddedBytes: Math.min(Math.max(usableMemory() / 2, LEAST_EMBEDDED), MOST_EMBEDDED),
    limits: limitsPlace(read) ?? (control === null ? null : Object.freeze({ kind: 'postgres', at: control })),
  });
}

/** An embedded database needs about 100 MiB, and supports at most 2 GiB. */
const LEAST_EMBEDDED = 256 * MIB;
const MOST_EMBEDDED = 2_048 * MIB;

/** Largest default, for processes with at least four times as much memory. */
const MOST_ANSWERS_MIB = 1_024;
/** One subject may use half, and some readers need two copies of a row. */
const LEAST_ROWS = 8;

/** Ensures space for some of the largest rows. */
export function answersOf(bytes: number, rowBytes: number): AnswerBounds {
  return Object.freeze({ rowBytes, bytes: Math.max(bytes, LEAST_ROWS * rowBytes) });
}

/** From `OSL_LIMITS_URL`, or its file; null if neither is set. */
function limitsPlace(read: ReadSetting): LimitsPlace | null {
  const given = read('OSL_LIMITS_URL');
  const file = read('OSL_LIMITS_URL_FILE');
  const url = given ?? (file === null ? null : textOf(file));
  if (url === null) return null;
  if (/^postgres/.test(url)) {
    const at: ControlPlace = given === null && file !== null ? { file } : { url };
    controlUrl(at, 'OSL_LIMITS_URL');
    return Object.freeze({ kind: 'postgres', at });
  }
  if (/^rediss?:/.test(url) && URL.canParse(url)) return Object.freeze({ kind: 'redis', url });
  throw new StartProblem(`OSL_LIMITS_URL must be ${SETTINGS.OSL_LIMITS_URL.type.takes}`);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new StartProblem(`OSL_LIMITS_URL_FILE: ${file} cannot be read (${codeOf(error) ?? 'unreadable'})`);
  }
}
