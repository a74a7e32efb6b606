import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Fingerprints } from '../fingerprint.js';
import { keyName } from '../format.js';

/** What stands before the fingerprint of a name among the objects of a record: no catalog had it. */
const UNDECLARED = 'undeclared:';

/** Among the objects of a record: a name that no catalog had, by its fingerprint. */
export function undeclaredObject(fingerprint: string): string {
  return `${UNDECLARED}${fingerprint}`;
}

/**
 * `name` as records of a log list it that was asked for and declared nowhere: one object for each key of fingerprints
 * that is in the directory. A key that was destroyed gives none, so what it hid stays hidden.
 */
export async function fingerprintsOf(dir: string, name: string): Promise<readonly string[]> {
  const numbers = (await readdir(dir)).map(keyNumber).filter((number) => number !== null);
  return Promise.all(
    numbers
      .sort((a, b) => a - b)
      .map(async (number) => {
        const key = await readFile(join(dir, keyName(number)));
        return undeclaredObject(`${number}.${new Fingerprints(key).of(name)}`);
      }),
  );
}

function keyNumber(file: string): number | null {
  const [, digits] = /^segment-(\d{8})\.key$/.exec(file) ?? [];
  return digits === undefined ? null : Number(digits);
}
