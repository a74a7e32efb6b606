import { InternalError } from 'osl-compiler';
import type { SentValue } from '../statement.js';
import { GrowingBytes } from './growing-bytes.js';

const MAX_VALUES = 65_535;
/** Initial capacity in bytes. */
const INITIAL = 16_384;

/**
 * Encodes frontend messages into a growing buffer that is sent as a whole.
 *
 * INVARIANT: `view` contains only whole messages with every byte written.
 */
export class FrontendEncoder extends GrowingBytes {
  constructor() {
    super(INITIAL);
  }

  /** The encoded bytes. The view stays valid until the next append after `reset`. */
  view(): Uint8Array {
    return this.bytes.subarray(0, this.at);
  }

  /** Empties the buffer and reuses it. Call this only when `view()` is no longer being read. */
  reset(): void {
    this.at = 0;
  }

  /** Continues with a new, empty buffer, so that earlier views of the old one stay valid. */
  detach(): void {
    this.bytes = Buffer.allocUnsafe(INITIAL);
    this.at = 0;
  }

  /** Truncates the buffer to `length` bytes. */
  truncate(length: number): void {
    this.at = Math.min(this.at, length);
  }

  query(sql: string): void {
    this.#message(0x51, () => this.#cstring(sql)); // Q
  }

  parse(name: string, sql: string, parameterOids: readonly number[]): void {
    // P
    this.#message(0x50, () => {
      this.#cstring(name);
      this.#cstring(sql);
      this.#count(parameterOids.length);
      for (const oid of parameterOids) this.#uint32(oid);
    });
  }

  /** Binds the unnamed portal to the prepared statement `name`. */
  bind(name: string, values: readonly SentValue[], resultFormats: readonly (0 | 1)[]): void {
    // B
    this.#message(0x42, () => {
      this.#cstring('');
      this.#cstring(name);
      this.#count(values.length);
      for (const value of values) this.#int16(typeof value === 'string' ? 0 : value.format);
      this.#count(values.length);
      for (const value of values) {
        if (typeof value === 'string') this.#textValue(value);
        else this.#value(value.bytes);
      }
      this.#count(resultFormats.length);
      for (const format of resultFormats) this.#int16(format);
    });
  }

  describeStatement(name: string): void {
    this.#statement(0x44, name); // D
  }

  /** Appends Execute for the unnamed portal; a `limit` of 0 means all rows. */
  execute(limit: number): void {
    // E
    this.#message(0x45, () => {
      this.#cstring('');
      this.#int32(limit);
    });
  }

  /** Appends Execute and Sync in one write. */
  executeAndSync(limit: number): void {
    this.reserve(EXECUTE_AND_SYNC.length);
    const at = this.at;
    this.append(EXECUTE_AND_SYNC, 0, EXECUTE_AND_SYNC.length);
    this.bytes.writeInt32BE(limit, at + 6);
  }

  closeStatement(name: string): void {
    this.#statement(0x43, name); // C
  }

  sync(): void {
    this.#message(0x53); // S
  }

  copyData(bytes: Uint8Array): void {
    this.#message(0x64, () => this.copy(bytes)); // d
  }

  copyDone(): void {
    this.#message(0x63); // c
  }

  /** Appends a message, or nothing if `write` throws. */
  #message(type: number, write: () => void = noFields): void {
    const start = this.at;
    try {
      this.byte(type);
      this.#uint32(0); // placeholder for the length
      write();
      this.bytes.writeInt32BE(this.at - start - 1, start + 1);
    } catch (cause) {
      this.at = start;
      throw cause;
    }
  }

  /** Appends Describe or Close for a prepared statement. */
  #statement(type: number, name: string): void {
    this.#message(type, () => {
      this.byte(0x53);
      this.#cstring(name);
    });
  }

  #value(bytes: Uint8Array | null): void {
    if (bytes === null) {
      this.#int32(-1);
    } else {
      this.#int32(bytes.length);
      this.copy(bytes);
    }
  }

  #textValue(text: string): void {
    const start = this.at;
    this.#uint32(0); // placeholder for the length
    this.text(text);
    this.bytes.writeInt32BE(this.at - start - 4, start);
  }

  #cstring(text: string): void {
    if (text.includes('\0')) throw new InternalError('a text of the protocol holds a NUL');
    this.text(text);
    this.byte(0);
  }

  #count(n: number): void {
    if (n > MAX_VALUES)
      throw new InternalError(`${n} values in one message; the protocol allows ${MAX_VALUES}`);
    this.reserve(2);
    this.at = this.bytes.writeUInt16BE(n, this.at);
  }

  #int16(n: number): void {
    this.reserve(2);
    this.at = this.bytes.writeInt16BE(n, this.at);
  }

  #int32(n: number): void {
    this.reserve(4);
    this.at = this.bytes.writeInt32BE(n, this.at);
  }

  #uint32(n: number): void {
    this.reserve(4);
    this.at = this.bytes.writeUInt32BE(n, this.at);
  }
}

/** Execute for the unnamed portal, with the limit at byte 6, followed by Sync. */
const EXECUTE_AND_SYNC = Buffer.from('E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04', 'latin1');

function noFields(): void {
  // Sync and CopyDone have no body
}
