import { openCheckpoint, type ProvenCheckpoint, parseVerifierKey } from '../../audit/index.js';
import { witnessedNotes } from '../audit/witness.js';
import { notHolding } from './proven-record.js';

/**
 * Knowledge of a witness about the log of a receipt.
 *
 * - `same`: it keeps the checkpoint of the receipt.
 * - `later`: it keeps a later one. Whether that is of the same log is for `osl audit verify`, which has the records.
 * - `earlier`: its newest one is from before the record.
 * - `nothing`: it keeps none of this log.
 */
export interface WitnessVerdict {
  readonly kind: 'same' | 'later' | 'earlier' | 'nothing';
  /** Time of the witness's newest checkpoint, RFC 3339; null if there is none, or it names no time. */
  readonly time: string | null;
}

/**
 * Asks a witness for the checkpoints that it keeps.
 *
 * @param place of the witness, as for `osl audit verify --witness`
 * @param seq number of the receipt's record
 * @throws Failure if it keeps another log of the same name
 */
export async function witnessed(
  place: string,
  { origin, size, root }: ProvenCheckpoint,
  seq: number,
  keys: readonly string[],
): Promise<WitnessVerdict> {
  const trusted = keys.map(parseVerifierKey);
  const kept = (await witnessedNotes(place)).flatMap((note) => {
    const checkpoint = trusted.map((key) => openCheckpoint(note, key)).find((c) => c !== null);
    return checkpoint?.origin === origin ? [checkpoint] : [];
  });
  const same = kept.find((checkpoint) => checkpoint.size === size);
  if (same !== undefined && same.root.toString('base64') !== root)
    throw notHolding(`the witness has another log with ${size} records under this name`);
  const newest = kept.toSorted((a, b) => b.size - a.size)[0];
  if (newest === undefined) return { kind: 'nothing', time: null };
  const kind = same !== undefined ? 'same' : newest.size > seq ? 'later' : 'earlier';
  return { kind, time: newest.time };
}
