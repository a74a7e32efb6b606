import { readFileSync } from 'node:fs';
import type { LogSource } from '../../../../policy/audit/index.js';

/** Verifier keys of a file, one a line. */
export function keysIn(file: string): readonly string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
}

export function nameOfKey(key: string): string {
  return key.slice(0, key.indexOf('+'));
}

/** The name of a chain, with which its key and its checkpoints begin; null where it has lost its key. */
export async function chainName(chain: LogSource): Promise<string | null> {
  const key = await chain.verifierKey();
  return key === null ? null : nameOfKey(key);
}
