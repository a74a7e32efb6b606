import { type Checkpoint, openCheckpoint, splitNotes, type VerifierKey } from './checkpoint.js';
import { HASH_BYTES } from './format.js';

/**
 * Note that stands for deleted segments: a checkpoint of exactly the records before the first one kept, signed by the
 * log's key, with all that the rest is proved from:
 *
 * ```
 * retained <first segment kept> <epoch before it> <chain hash before it, hex>
 * frontier <roots of the complete subtrees before it, base64>
 * ```
 */
export interface RetentionCheckpoint {
  readonly checkpoint: Checkpoint;
  /** Number of the first segment that is kept. */
  readonly segment: number;
  readonly epoch: number;
  readonly chain: Buffer;
  /** Roots of the complete subtrees before it, largest first. */
  readonly frontier: readonly Buffer[];
}

const LINE = /^retained ([1-9]\d{0,7}) (0|[1-9]\d{0,14}) ([0-9a-f]{64})\nfrontier ([A-Za-z0-9+/]*={0,2})$/m;

/** The extension lines of such a note. */
export function retainedLines(
  segment: number,
  epoch: number,
  chain: Buffer,
  frontier: readonly Buffer[],
): string {
  const roots = Buffer.concat(frontier).toString('base64');
  return `retained ${segment} ${epoch} ${chain.toString('hex')}\nfrontier ${roots}\n`;
}

/** Content of the newest of these notes; null if there is none. @throws TypeError if the key did not sign it */
export function retainedIn(notes: Buffer, key: VerifierKey): RetentionCheckpoint | null {
  const note = splitNotes(notes).notes.at(-1);
  if (note === undefined) return null;
  const checkpoint = openCheckpoint(note, key);
  const [, segment, epoch, chain = '', roots = ''] = LINE.exec(checkpoint?.note ?? '') ?? [];
  if (checkpoint === null || segment === undefined) {
    throw new TypeError('what was signed of records that are not kept is not validly signed');
  }
  const bytes = Buffer.from(roots, 'base64');
  const frontier = Array.from({ length: bytes.length / HASH_BYTES }, (_, i) =>
    bytes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES),
  );
  return {
    checkpoint,
    segment: Number(segment),
    epoch: Number(epoch),
    chain: Buffer.from(chain, 'hex'),
    frontier,
  };
}
