import type { TransactionStatus } from '../handler.js';
import { MessageReader } from '../message-reader.js';
import { type MessageWriter, writtenOnce } from '../message-writer.js';
import { Backend } from './types.js';

/** Query: one NUL-terminated text. 08P01 without the NUL and with bytes behind it; 22021. */
export function decodeQuery(body: Buffer): string {
  const reader = new MessageReader(body);
  const text = reader.cstring();
  reader.end();
  return text;
}

export function readyForQuery(out: MessageWriter, status: TransactionStatus): void {
  out.finished(READY[status]);
}

const READY: Readonly<Record<TransactionStatus, Uint8Array>> = {
  I: written('I'),
  T: written('T'),
  E: written('E'),
};

function written(status: TransactionStatus): Uint8Array {
  return writtenOnce((out) =>
    out.message(Backend.readyForQuery, (fields) => fields.byte(status.charCodeAt(0))),
  );
}
