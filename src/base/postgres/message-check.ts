const HEADER = 5;
const MAX_MESSAGE = 0x4000_0000;

/**
 * Splits the server's bytes into whole messages, and checks that strings end inside them. The parser of `pg` checks
 * neither: a server that is not Postgres could make it throw an uncaught exception, or read forever.
 */
export class MessageCheck {
  #chunks: Buffer[] = [];
  #length = 0;
  /** Bytes needed until the next message is complete. */
  #needed = HEADER;

  /** Returns the messages completed so far; empty if the first is incomplete. @throws Error */
  take(chunk: Buffer): Buffer {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return EMPTY;
    const [only] = this.#chunks;
    const bytes = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
    let at = 0;
    for (;;) {
      const end = messageEnd(bytes, at);
      if (end === null || end > bytes.length) {
        this.#needed = (end ?? at + HEADER) - at;
        break;
      }
      checkStrings(bytes[at] ?? 0, bytes.subarray(at + HEADER, end));
      at = end;
    }
    const rest = bytes.subarray(at);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    return bytes.subarray(0, at);
  }
}

const EMPTY = Buffer.alloc(0);

/** End of the message at `at`; null until its header has arrived. */
function messageEnd(bytes: Buffer, at: number): number | null {
  if (at + HEADER > bytes.length) return null;
  const length = bytes.readUInt32BE(at + 1);
  if (length < 4 || length > MAX_MESSAGE) throw noMessage(`of length ${length}`);
  return at + 1 + length;
}

/** @throws Error if a string does not end within `body` */
function checkStrings(type: number, body: Buffer): void {
  switch (String.fromCharCode(type)) {
    case 'E':
    case 'N':
      checkFields(body);
      break;
    case 'R':
      if (body.length >= 4 && body.readInt32BE(0) === SASL) checkList(body, 4);
      break;
    case 'S':
      stringsEnd(body, 0, 2);
      break;
    case 'C':
      stringsEnd(body, 0, 1);
      break;
    case 'A':
      stringsEnd(body, 4, 2);
      break;
    case 'T':
      checkColumns(body);
      break;
  }
}

const SASL = 10;
const COLUMN_BYTES = 18;

function stringsEnd(body: Buffer, at: number, count: number): number {
  let end = at;
  for (let i = 0; i < count; i += 1) {
    const zero = body.indexOf(0, end);
    if (zero < 0) throw noMessage('with a string that does not end');
    end = zero + 1;
  }
  return end;
}

function checkFields(body: Buffer): void {
  let at = 0;
  while (body[at] !== 0) {
    if (at >= body.length) throw noMessage('with a report that does not end');
    at = stringsEnd(body, at + 1, 1);
  }
}

function checkList(body: Buffer, from: number): void {
  for (let at = from, end = 0; ; at = end) {
    end = stringsEnd(body, at, 1);
    if (end === at + 1) return;
  }
}

function checkColumns(body: Buffer): void {
  const count = body.length >= 2 ? body.readUInt16BE(0) : 0;
  let at = 2;
  for (let i = 0; i < count; i += 1) at = stringsEnd(body, at, 1) + COLUMN_BYTES;
}

function noMessage(what: string): Error {
  return new Error(`what answers is no Postgres: it sent a message ${what}`);
}
