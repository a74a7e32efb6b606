import { InternalError } from 'osl-compiler';
import type { BoundValue } from '../engine.js';

const MAX_VALUES = 65_535;

/** Frontend messages of the Postgres protocol, appended to one growing buffer that is sent whole. */
export class FrontendEncoder {
  #bytes: Buffer = Buffer.allocUnsafe(16_384);
  #at = 0;

  get length(): number {
    return this.#at;
  }

  /** What was appended so far; valid until the next append after `reset` or `detach`. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Starts over in the same buffer: only once nobody reads `view()` any more. */
  reset(): void {
    this.#at = 0;
  }

  /** Starts over in a new buffer and leaves the old one to whoever still reads it. */
  detach(): void {
    this.#bytes = Buffer.allocUnsafe(16_384);
    this.#at = 0;
  }

  query(sql: string): void {
    const start = this.#open(0x51); // Q
    this.#text(sql);
    this.#close(start);
  }

  parse(name: string, sql: string, parameterOids: readonly number[]): void {
    const start = this.#open(0x50); // P
    this.#text(name);
    this.#text(sql);
    this.#count(parameterOids.length);
    for (const oid of parameterOids) this.#int32(oid);
    this.#close(start);
  }

  /** Binds the unnamed portal of prepared statement `name`. */
  bind(name: string, values: readonly BoundValue[], resultFormats: readonly (0 | 1)[]): void {
    const start = this.#open(0x42); // B
    this.#text('');
    this.#text(name);
    this.#count(values.length);
    for (const value of values) this.#int16(value.format);
    this.#count(values.length);
    for (const value of values) this.#value(value.bytes);
    this.#count(resultFormats.length);
    for (const format of resultFormats) this.#int16(format);
    this.#close(start);
  }

  describeStatement(name: string): void {
    const start = this.#open(0x44); // D
    this.#byte(0x53);
    this.#text(name);
    this.#close(start);
  }

  /** Executes the unnamed portal; `limit` 0 means to the end. */
  execute(limit: number): void {
    const start = this.#open(0x45); // E
    this.#text('');
    this.#int32(limit);
    this.#close(start);
  }

  closeStatement(name: string): void {
    const start = this.#open(0x43); // C
    this.#byte(0x53);
    this.#text(name);
    this.#close(start);
  }

  sync(): void {
    this.#close(this.#open(0x53));
  }

  copyData(bytes: Uint8Array): void {
    const start = this.#open(0x64); // d
    this.#raw(bytes);
    this.#close(start);
  }

  copyDone(): void {
    this.#close(this.#open(0x63));
  }

  #open(type: number): number {
    this.#reserve(5);
    this.#bytes[this.#at] = type;
    this.#at += 5;
    return this.#at - 4;
  }

  #close(start: number): void {
    this.#bytes.writeInt32BE(this.#at - start, start);
  }

  #value(bytes: Uint8Array | null): void {
    if (bytes === null) {
      this.#int32(-1);
    } else {
      this.#int32(bytes.length);
      this.#raw(bytes);
    }
  }

  #text(text: string): void {
    this.#reserve(text.length * 3 + 1); // UTF-8 takes at most three bytes a UTF-16 unit
    const end = this.#at + this.#bytes.write(text, this.#at, 'utf8');
    this.#bytes[end] = 0;
    this.#at = end + 1;
  }

  #raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #count(n: number): void {
    if (n > MAX_VALUES)
      throw new InternalError(`${n} values in one message; the protocol allows ${MAX_VALUES}`);
    this.#reserve(2);
    this.#at = this.#bytes.writeUInt16BE(n, this.#at);
  }

  #int16(n: number): void {
    this.#reserve(2);
    this.#at = this.#bytes.writeInt16BE(n, this.#at);
  }

  #int32(n: number): void {
    this.#reserve(4);
    this.#at = this.#bytes.writeInt32BE(n | 0, this.#at); // OIDs above 2^31 keep their bits
  }

  #byte(n: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = n;
  }

  #reserve(n: number): void {
    const needed = this.#at + n;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}
