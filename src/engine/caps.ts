import { DataRowReader } from './protocol/data-row.js';
import type { ExecuteOptions } from './statement.js';

/** Remaining caps of an execution; infinite if there is none. */
export interface RemainingCaps {
  readonly rows: number;
  readonly bytes: number;
}

/** The room left under the caps of `options` after `rows` rows in `bytes` bytes. */
export function roomIn(options: ExecuteOptions, rows: number, bytes: number): RemainingCaps {
  return {
    rows: options.maxRows > 0 ? options.maxRows - rows : Number.POSITIVE_INFINITY,
    bytes: options.maxBytes > 0 ? options.maxBytes - bytes : Number.POSITIVE_INFINITY,
  };
}

/** Number of the `count` DataRow messages in `bytes` that fit into `room`, and the end of the last of them. */
export function fitting(bytes: Uint8Array, count: number, room: RemainingCaps): RemainingCaps {
  if (count <= room.rows && bytes.length <= room.bytes) return { rows: count, bytes: bytes.length };
  const messages = new DataRowReader(bytes);
  let rows = 0;
  let end = 0;
  while (rows < count && rows < room.rows && messages.next()) {
    const next = messages.skip();
    if (next > room.bytes) break;
    end = next;
    rows += 1;
  }
  return { rows, bytes: end };
}
