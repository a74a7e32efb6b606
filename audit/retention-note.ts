import { type Checkpoint, openCheckpoint, splitNotes, type VerifierKey } from './checkpoint.js';
import { splitHashes } from './format.js';

/**
 * Signed note that replaces deleted segments: a checkpoint of exactly the records before the first retained one, with
 * all state needed to verify the rest:
 *
 * ```
 * retained <first retained segment> <epoch before it> <chain hash before it, hex>
 * frontier <roots of the complete subtrees before it, base64>
 * ```
 */
export interface RetentionCheckpoint {
  readonly checkpoint: Checkpoint;
  /** First retained segment. */
  readonly segment: number;
  readonly epoch: number;
  readonly chain: Buffer;
  readonly frontier: readonly Buffer[];
}

const LINE = /^retained ([1-9]\d{0,7}) (0|[1-9]\d{0,14}) ([0-9a-f]{64})\nfrontier ([A-Za-z0-9+/]*={0,2})$/m;

export function retentionLines(
  segment: number,
  epoch: number,
  chain: Buffer,
  frontier: readonly Buffer[],
): string {
  const roots = Buffer.concat(frontier).toString('base64');
  return `retained ${segment} ${epoch} ${chain.toString('hex')}\nfrontier ${roots}\n`;
}

/** Parses the newest retention note; null if there is none. @throws TypeError if its signature is invalid */
export function parseRetentionNote(notes: Buffer, key: VerifierKey): RetentionCheckpoint | null {
  const note = splitNotes(notes).notes.at(-1);
  if (note === undefined) return null;
  const checkpoint = openCheckpoint(note, key);
  const [, segment, epoch, chain = '', roots = ''] = LINE.exec(checkpoint?.note ?? '') ?? [];
  if (checkpoint === null || segment === undefined) {
    throw new TypeError('what was signed of records that are not kept is not validly signed');
  }
  return {
    checkpoint,
    segment: Number(segment),
    epoch: Number(epoch),
    chain: Buffer.from(chain, 'hex'),
    frontier: splitHashes(Buffer.from(roots, 'base64')),
  };
}
