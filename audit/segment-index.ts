import { decodeHeader, frameAt, type RecordFrame, usedEnd } from './format.js';
import { recordIn } from './read.js';
import type { KnownPlace, LogIndex, LogLeaf, LogSource, StoredRecord } from './source.js';
import { type LeafRange, leafOf } from './tree.js';

/** A place before the segment of this number. */
export interface SegmentPlace extends KnownPlace {
  readonly segment: number;
}

/** Index of the positions of requests in the segments of a log, and of what is proved between them. */
export interface SegmentGuide {
  segmentsOf(requestId: string): Promise<readonly number[]>;
  places(): Promise<readonly SegmentPlace[]>;
}

/** Finds by reading the segments that `guide` points at; null: all of them. */
export function segmentIndex(source: LogSource, guide: SegmentGuide | null): LogIndex {
  const places = async (): Promise<readonly SegmentPlace[]> => (await guide?.places()) ?? [];
  return Object.freeze({
    places,
    recordsOf: async (requestId: string) => {
      const found: StoredRecord[] = [];
      const numbers = (await guide?.segmentsOf(requestId)) ?? (await source.segments());
      for await (const { seq, frame } of framesIn(source, numbers)) {
        // A cheap look at the bytes first; the parse decides.
        if (!frame.record.includes(requestId) || recordIn(frame).request_id !== requestId) continue;
        found.push({ seq, record: Buffer.from(frame.record) });
      }
      return found;
    },
    leaves: (ranges: readonly LeafRange[]) => leavesIn(source, places, ranges),
  });
}

async function* leavesIn(
  source: LogSource,
  places: () => Promise<readonly SegmentPlace[]>,
  ranges: readonly LeafRange[],
): AsyncGenerator<LogLeaf, void, void> {
  const firstOf = new Map((await places()).map(({ segment, size }) => [segment, size]));
  const numbers = (await source.segments()).filter((number) => {
    const first = firstOf.get(number) ?? 0;
    const end = firstOf.get(number + 1) ?? Number.POSITIVE_INFINITY;
    return ranges.some((range) => range.start < end && first < range.end);
  });
  let at = 0;
  for await (const { seq, frame } of framesIn(source, numbers)) {
    while ((ranges[at]?.end ?? Number.POSITIVE_INFINITY) <= seq) at += 1;
    const range = ranges[at];
    if (range === undefined) return;
    if (seq >= range.start) yield { seq, hash: leafOf(frame.leafInput) };
  }
}

/** The frames of these segments, in order. */
async function* framesIn(
  source: LogSource,
  numbers: readonly number[],
): AsyncGenerator<{ readonly seq: number; readonly frame: RecordFrame }, void, void> {
  const last = (await source.segments()).at(-1);
  for (const number of numbers) {
    const bytes = await source.segment(number, number === last);
    const decoded = decodeHeader(bytes);
    if (decoded === null) throw new RangeError(`segment ${number} of ${source.place} cannot be read`);
    let seq = decoded.header.firstSeq;
    const end = usedEnd(bytes);
    for (let frame = frameAt(bytes, decoded.end, end); frame; frame = frameAt(bytes, frame.next, end)) {
      yield { seq, frame };
      seq += 1;
    }
  }
}
