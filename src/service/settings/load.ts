import { readFileSync } from 'node:fs';
import { type ControlPlace, controlUrl } from '../../base/control/url.js';
import { usableMemory } from '../../base/memory.js';
import { StartProblem } from '../../base/start-problem.js';
import { codeOf } from '../../base/thrown.js';
import type { AnswerBounds } from '../../engine/index.js';
import { databasePlace } from './control.js';
import { type ReadSetting, SETTINGS } from './table.js';

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

/** An embedded database needs a good 100 MiB to begin with, and cannot have more than 2 GiB. */
const LEAST_EMBEDDED = 256 * MIB;
const MOST_EMBEDDED = 2_048 * MIB;

/** Default memory of answers, if the process may use four times as much. */
const MOST_ANSWERS_MIB = 1_024;
/** One subject may have half of them, and a row has two copies on its way to some readers. */
const LEAST_ROWS = 8;

/** Bounds of answers, with room for some of the largest rows in any case. */
export function answersOf(bytes: number, rowBytes: number): AnswerBounds {
  return Object.freeze({ rowBytes, bytes: Math.max(bytes, LEAST_ROWS * rowBytes) });
}

/** The store of `OSL_LIMITS_URL`, else of the file of `OSL_LIMITS_URL_FILE`; null if neither is set. */
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
