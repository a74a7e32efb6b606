/** The little of the Postgres protocol that the proxy reads: where messages begin and end. */

export const SSL_REQUEST = 80_877_103;
export const GSS_REQUEST = 80_877_104;
export const CANCEL_REQUEST = 80_877_102;
/** Bytes of a startup packet at most, as in Postgres. */
const LARGEST_STARTUP = 10_000;

/** Collects chunks and gives them back as whole messages or packets. */
export class Incoming {
  #bytes: Buffer = Buffer.alloc(0);

  get length(): number {
    return this.#bytes.length;
  }

  push(chunk: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
  }

  /** The next untyped packet, its length included; null until it is whole. @throws Error */
  packet(): Buffer | null {
    if (this.#bytes.length < 8) return null;
    const length = this.#bytes.readUInt32BE(0);
    if (length < 8 || length > LARGEST_STARTUP) throw new Error('invalid length of a startup packet');
    return this.#bytes.length < length ? null : this.#take(length);
  }

  /** The next typed message, header included; null until it is whole. */
  message(): Buffer | null {
    if (this.#bytes.length < 5) return null;
    const length = 1 + this.#bytes.readUInt32BE(1);
    return this.#bytes.length < length ? null : this.#take(length);
  }

  /** All that is left, whole or not. */
  rest(): Buffer {
    return this.#take(this.#bytes.length);
  }

  #take(length: number): Buffer {
    const taken = this.#bytes.subarray(0, length);
    this.#bytes = this.#bytes.subarray(length);
    return taken;
  }
}

/** The startup packet with another user; every other parameter stays as the client sent it. */
export function withUser(startup: Buffer, user: string): Buffer {
  const words = startup.toString('utf8', 8).split('\0').slice(0, -2);
  const parameters = new Map<string, string>();
  for (let i = 0; i + 1 < words.length; i += 2) parameters.set(words[i] ?? '', words[i + 1] ?? '');
  parameters.set('user', user);
  const body = Buffer.from(`${[...parameters].map(([name, value]) => `${name}\0${value}\0`).join('')}\0`);
  const packet = Buffer.alloc(8 + body.length);
  packet.writeUInt32BE(packet.length, 0);
  startup.copy(packet, 4, 4, 8);
  body.copy(packet, 8);
  return packet;
}

export function typed(type: string, body: string): Buffer {
  const text = Buffer.from(`${body}\0`);
  const message = Buffer.alloc(5 + text.length);
  message.write(type, 0, 'latin1');
  message.writeUInt32BE(4 + text.length, 1);
  text.copy(message, 5);
  return message;
}

export function fatalError(text: string): Buffer {
  return typed('E', ['SFATAL', 'VFATAL', 'C08006', `M${text}`, ''].join('\0'));
}
