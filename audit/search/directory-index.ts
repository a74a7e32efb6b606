import { type SegmentPlace, segmentIndex } from '../segment-index.js';
import type { LogIndex, LogSource } from '../source.js';
import { sealsOf, segmentsIn } from './seals.js';
import { candidates } from './search.js';

/** By the files beside the segments of a directory; those that are missing are made. */
export function directoryIndex(source: LogSource, dir: string): LogIndex {
  return segmentIndex(source, {
    segmentsOf: async (requestId) => {
      const found: number[] = [];
      let sealed = 0;
      for await (const seal of sealsOf(dir, true)) {
        sealed = seal.segment;
        if (candidates(seal, { requestId }).length > 0) found.push(seal.segment);
      }
      const others = (await segmentsIn(dir)).filter((segment) => segment > sealed);
      return [...found, ...others];
    },
    places: async () => {
      const places: SegmentPlace[] = [];
      for await (const { segment, end, frontier } of sealsOf(dir)) {
        const roots = frontier.map((root) => Buffer.from(root, 'hex'));
        places.push({ segment: segment + 1, size: end, roots });
      }
      return places;
    },
  });
}
