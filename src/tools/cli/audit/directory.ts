import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { usage } from '../exit.js';
import { settingsOf } from '../flags.js';

export interface AuditFlags {
  readonly dir?: string;
  readonly dataDir?: string;
  readonly json?: true;
}

/** The directory of the log that is meant. @throws Failure where there is none */
export function auditDirectory(flags: AuditFlags): string {
  const dir = flags.dir === undefined ? join(settingsOf(flags).dataDir, 'audit') : resolve(flags.dir);
  if (statSync(dir, { throwIfNoEntry: false }) === undefined || readdirSync(dir).length === 0) {
    throw usage(`there is no audit log in ${dir}: name its --dir, or the server's --data-dir`);
  }
  return dir;
}
