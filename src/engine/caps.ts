import { DataRowReader } from './protocol/data-row.js';
import type { ExecuteOptions } from './statement.js';

/** Rows and bytes that an execution may still deliver; Infinity if uncapped. */
export interface RemainingCaps {
  readonly rows: number;
  readonly bytes: number;
}

export function roomIn(options: ExecuteOptions, rows: number, bytes: number): RemainingCaps {
  return {
    rows: options.maxRows > 0 ? options.maxRows - rows : Number.POSITIVE_INFINITY,
    bytes: options.maxBytes > 0 ? options.maxBytes - bytes : Number.POSITIVE_INFINITY,
  };
}

/** Number of leading DataRow messages of `bytes` that fit into `room`, and the offset where they end. */
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
