import { resolve } from 'node:path';
import { witnessAt } from '../../audit/witness/index.js';
import { readSetting } from '../../src/service/settings/table.js';
import { usage } from '../exit.js';

/** Checkpoint notes that a witness keeps. @throws Failure if there are none, or it cannot be asked */
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
