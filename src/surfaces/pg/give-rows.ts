import type { RowWriter } from '../../../wire/index.js';
import { SLICE_BYTES, turns } from '../../engine/index.js';

/**
 * Passes on rows that are here already: in slices, as those that an upstream sends, since nothing else would give the
 * event loop back before the last of them. `delivered` hears of each that has left.
 */
export async function giveRows(
  rows: readonly Uint8Array[],
  out: RowWriter,
  delivered: (bytes: number) => void = () => undefined,
): Promise<void> {
  let bytes = 0;
  for (const row of rows) {
    const slow = out.write(row);
    if (slow !== undefined) await slow;
    delivered(row.byteLength);
    bytes += row.byteLength;
    if (bytes < SLICE_BYTES) continue;
    bytes = 0;
    await turns.wait();
  }
}
