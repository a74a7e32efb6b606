import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import {
  type AuditRecord,
  announceRead,
  byTime,
  directorySource,
  fingerprintsOf,
  type LogSource,
  PUBLIC_KEY_FILE,
  readRecords,
  searchRecords,
} from '../../audit/index.js';
import { witnessAt } from '../../audit/witness/index.js';
import { endedChains, workerChains } from '../../src/service/process-files.js';
import { auditSinkUrl } from '../../src/service/settings/groups.js';
import { readSetting } from '../../src/service/settings/table.js';
import { failure, usage } from '../exit.js';
import { settingsOf } from '../flags.js';
import type { ReadLog } from './table.js';

export interface AuditFlags {
  readonly dir?: string;
  readonly dataDir?: string;
  readonly json?: true;
}

export async function withLog<T>(flags: AuditFlags, work: (log: ReadLog) => Promise<T>): Promise<T> {
  const settings = flags.dir === undefined ? settingsOf(flags) : null;
  const url = settings === null ? null : auditSinkUrl(settings.audit.sink);
  const dir = settings === null ? resolve(flags.dir ?? '') : join(settings.dataDir, 'audit');
  if (url !== null)
    return (await import('./table.js')).withTable(
      url,
      chainDirs(dir).filter((chain) => existsSync(chain)),
      work,
    );
  if (statSync(dir, { throwIfNoEntry: false }) === undefined || readdirSync(dir).length === 0) {
    throw usage(`there is no audit log in ${dir}: name its --dir, or the server's --data-dir`);
  }
  return work(directoryLog(dir));
}

/** Lists the directories of all hash chains: first the main one, then those of workers and restored ones. */
function chainDirs(dir: string): readonly string[] {
  // A worker killed right at its start leaves an empty directory.
  const workers = workerChains(dir).map((chain) => chain.dir);
  const others = [...workers, ...endedChains(dir)].filter((chain) => readdirSync(chain).length > 0);
  // Before the first start after a restore, there are only restored chains.
  const begun = existsSync(join(dir, PUBLIC_KEY_FILE)) || others.length === 0;
  return [...(begun ? [dir] : []), ...others];
}

function directoryLog(dir: string): ReadLog {
  const dirs = chainDirs(dir);
  return {
    place: dir,
    chains: dirs.map(directorySource),
    search: (filter, everything) => byTime(dirs.map((chain) => searchRecords(chain, filter, { everything }))),
    fingerprints: async (name) => {
      const all = await Promise.all(dirs.map((chain) => fingerprintsOf(chain, name)));
      return { objects: all.flat(), missing: dirs.filter((_, i) => all[i]?.length === 0) };
    },
    newest: async (count) => {
      const last = await Promise.all(dirs.map((chain) => lastRecords(chain, count)));
      const sorted = last.flat().sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : 0));
      return count === 0 ? [] : sorted.slice(-count);
    },
    follow: (after, signal) => dirs.map((chain) => followChain(chain, after, signal)),
    note: (reading) => announceRead(dir, reading),
  };
}

async function lastRecords(chain: string, count: number): Promise<readonly AuditRecord[]> {
  let records: AuditRecord[] = [];
  for await (const record of readRecords(chain)) {
    records.push(record);
    if (records.length > 2 * count + 64) records = records.slice(records.length - count);
  }
  return count === 0 ? [] : records.slice(-count);
}

async function* followChain(
  chain: string,
  after: readonly AuditRecord[],
  signal: AbortSignal,
): AsyncGenerator<AuditRecord> {
  const key = await directorySource(chain).verifierKey();
  const shown = after.filter(({ writer }) => key?.startsWith(`osl-audit/${writer}+`)).at(-1)?.seq;
  const [last] = shown === undefined ? await lastRecords(chain, 1) : [];
  yield* readRecords(chain, { from: (shown ?? last?.seq ?? -1) + 1, follow: true, signal });
}

/**
 * Announces that the log is being read; the server records this in the log, now or at its next start.
 *
 * @throws Failure if the announcement cannot be written
 */
export async function recordReading(
  log: ReadLog,
  command: string,
  filter: Readonly<Record<string, string | number>>,
): Promise<void> {
  const by = `${userInfo().username}@${hostname()}`;
  try {
    await log.note({ command, by, at: new Date().toISOString(), filter });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw failure(
      `reading the log is on record, and that cannot be noted in ${log.place} (${why}): read a copy that you may write beside`,
    );
  }
}

/** Reads verifier keys from a file, one per line. */
export function keysIn(file: string): readonly string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
}

export function nameOfKey(key: string): string {
  return key.slice(0, key.indexOf('+'));
}

/** Returns the name with which the key and the checkpoints of a chain begin; null if the key is missing. */
export async function chainName(chain: LogSource): Promise<string | null> {
  const key = await chain.verifierKey();
  return key === null ? null : nameOfKey(key);
}

/** Returns the notes stored by a witness. @throws Failure if it stores none or cannot be queried (webhook) */
export async function witnessedNotes(place: string): Promise<readonly string[]> {
  const at = /^[\w+.-]+:/.test(place) ? place : resolve(place);
  const witness = witnessAt(at, process.env, readSetting('OSL_AUDIT_WITNESS_SECRET'));
  try {
    const notes = await witness.kept();
    if (notes === null) throw usage('a webhook cannot be asked what it keeps: give that as --anchor');
    if (notes.length === 0) throw usage(`${witness.name} keeps no checkpoint`);
    return notes;
  } finally {
    await witness.close();
  }
}
