import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { workerChains } from '../../../service/seat.js';
import { usage } from '../exit.js';
import { settingsOf } from '../flags.js';

export const VERIFIER_KEY_FILE = 'checkpoint.vkey';

export interface AuditFlags {
  readonly dir?: string;
  readonly dataDir?: string;
  readonly json?: true;
}

/** The chains of a log: that of the directory, then those of the workers of `osl serve --workers` below it. */
export function auditChains(dir: string): readonly string[] {
  // A worker that was killed as it first began has a directory with nothing in it.
  const begun = workerChains(dir).filter((chain) => readdirSync(chain.dir).length > 0);
  return [dir, ...begun.map((chain) => chain.dir)];
}

/** The name of a chain, with which its key and its checkpoints begin; null where it has lost its key. */
export function chainName(dir: string): string | null {
  const file = join(dir, VERIFIER_KEY_FILE);
  return existsSync(file) ? nameOfKey(readFileSync(file, 'utf8')) : null;
}

/** Verifier keys of a file, one a line. */
export function keysIn(file: string): readonly string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
}

export function nameOfKey(key: string): string {
  return key.slice(0, key.indexOf('+'));
}

/** The directory of the log that is meant. @throws Failure where there is none */
export function auditDirectory(flags: AuditFlags): string {
  const dir = flags.dir === undefined ? join(settingsOf(flags).dataDir, 'audit') : resolve(flags.dir);
  if (statSync(dir, { throwIfNoEntry: false }) === undefined || readdirSync(dir).length === 0) {
    throw usage(`there is no audit log in ${dir}: name its --dir, or the server's --data-dir`);
  }
  return dir;
}
