/** Encodes and splits messages of the Postgres protocol, by hand and apart from the product's own code. */

export function message(type: string, ...parts: readonly (Buffer | string | number)[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'string') return Buffer.from(`${part}\0`);
      if (typeof part === 'number') return int(part, 4);
      return part;
    }),
  );
  return Buffer.concat([Buffer.from(type), int(body.length + 4, 4), body]);
}

export function int(value: number, bytes: 2 | 4 | 8): Buffer {
  const out = Buffer.alloc(bytes);
  if (bytes === 8) out.writeBigInt64BE(BigInt(value));
  else out.writeIntBE(value, 0, bytes);
  return out;
}

export function errorMessage(severity: string, sqlstate: string, text: string): Buffer {
  const field = (name: string, value: string): Buffer => Buffer.from(`${name}${value}\0`);
  return message(
    'E',
    Buffer.concat([
      field('S', severity),
      field('V', severity),
      field('C', sqlstate),
      field('M', text),
      Buffer.alloc(1),
    ]),
  );
}

/** Fields of an error or notice, by their letter. */
export function fieldsOf(body: Buffer): ReadonlyMap<string, string> {
  return new Map(
    body
      .toString()
      .split('\0')
      .filter((field) => field !== '')
      .map((field) => [field.slice(0, 1), field.slice(1)]),
  );
}

/** Cells of a DataRow as text; null is NULL. */
export function cellsOf(body: Buffer): (Buffer | null)[] {
  const cells: (Buffer | null)[] = [];
  let at = 2;
  for (let n = body.readInt16BE(0); n > 0; n--) {
    const length = body.readInt32BE(at);
    at += 4;
    cells.push(length < 0 ? null : body.subarray(at, at + length));
    at += Math.max(0, length);
  }
  return cells;
}

export interface Message {
  readonly type: string;
  readonly body: Buffer;
}

/** Splits a byte stream into messages. */
export class MessageSplitter {
  #rest: Buffer = Buffer.alloc(0);
  /** True until the first packet, which has no type byte. */
  #isUntyped: boolean;

  constructor(isUntyped = false) {
    this.#isUntyped = isUntyped;
  }

  push(bytes: Buffer): readonly Message[] {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const found: Message[] = [];
    for (;;) {
      const head = this.#isUntyped ? 0 : 1;
      if (this.#rest.length < head + 4) return found;
      const end = head + this.#rest.readInt32BE(head);
      if (this.#rest.length < end) return found;
      const type = this.#isUntyped ? 'startup' : String.fromCharCode(this.#rest[0] ?? 0);
      found.push({ type, body: this.#rest.subarray(head + 4, end) });
      this.#rest = this.#rest.subarray(end);
      this.#isUntyped = false;
    }
  }
}

export class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  text(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    const text = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end + 1;
    return text;
  }

  int(bytes: 2 | 4): number {
    const value = this.#bytes.readIntBE(this.#at, bytes);
    this.#at += bytes;
    return value;
  }

  bytes(length: number): Buffer {
    const bytes = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return bytes;
  }
}
