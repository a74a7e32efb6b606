import { connect, createServer, type Socket } from 'node:net';

/** A statement as a client sent it; values that came in binary format are given as text where that is plain. */
export interface Heard {
  readonly sql: string;
  readonly values: readonly (string | null)[];
}

export interface Listener {
  readonly port: number;
  /** Everything executed since the last call. */
  take(): readonly Heard[];
  close(): void;
}

/** A TCP relay in front of `port` that notes Query, and Parse with the values of its Bind. Without TLS. */
export async function listenIn(port: number): Promise<Listener> {
  const heard: Heard[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    const parser = new FrontendParser((h) => heard.push(h));
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    }
    client.on('data', (chunk) => parser.push(chunk));
    client.pipe(upstream);
    upstream.pipe(client);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    take: () => heard.splice(0),
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

class FrontendParser {
  readonly #statements = new Map<string, string>();
  readonly #heard: (statement: Heard) => void;
  #buffer = Buffer.alloc(0);
  #started = false;

  constructor(heard: (statement: Heard) => void) {
    this.#heard = heard;
  }

  push(chunk: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    for (;;) {
      const head = this.#started ? 1 : 0;
      if (this.#buffer.length < head + 4) return;
      const end = head + this.#buffer.readUInt32BE(head);
      if (this.#buffer.length < end) return;
      const body = this.#buffer.subarray(head + 4, end);
      if (this.#started) this.#take(String.fromCharCode(this.#buffer[0] ?? 0), body);
      else this.#started = body.readUInt32BE(0) >>> 16 === 3;
      this.#buffer = this.#buffer.subarray(end);
    }
  }

  #take(type: string, body: Buffer): void {
    const [first, afterFirst] = cString(body, 0);
    if (type === 'Q') this.#heard({ sql: first, values: [] });
    if (type === 'P') this.#statements.set(first, cString(body, afterFirst)[0]);
    if (type === 'B') {
      const [name, at] = cString(body, afterFirst);
      this.#heard({ sql: this.#statements.get(name) ?? '', values: valuesOf(body, at) });
    }
  }
}

function cString(body: Buffer, at: number): readonly [text: string, next: number] {
  const end = Math.max(body.indexOf(0, at), at);
  return [body.toString('utf8', at, end), end + 1];
}

function valuesOf(body: Buffer, start: number): readonly (string | null)[] {
  const formats = Array.from({ length: body.readUInt16BE(start) }, (_, i) =>
    body.readUInt16BE(start + 2 + 2 * i),
  );
  let at = start + 2 + 2 * formats.length;
  const count = body.readUInt16BE(at);
  at += 2;
  return Array.from({ length: count }, (_, i) => {
    const length = body.readInt32BE(at);
    const value = body.subarray(at + 4, at + 4 + Math.max(length, 0));
    at += 4 + value.length;
    if (length < 0) return null;
    return (formats[formats.length === 1 ? 0 : i] ?? 0) === 0 ? value.toString('utf8') : textOf(value);
  });
}

/** Integers, text, and arrays of them; what is in doubt is plain text if it can be. */
function textOf(value: Buffer): string {
  if (value.length > 0 && value.every((byte) => byte >= 0x20 && byte < 0x7f)) return value.toString('utf8');
  if (value.length === 1) return value[0] === 0 ? 'f' : 't';
  if (value.length === 2) return String(value.readInt16BE(0));
  if (value.length === 4) return String(value.readInt32BE(0));
  if (value.length === 8) return String(value.readBigInt64BE(0));
  const items: string[] = [];
  for (let at = 20; at < value.length; ) {
    const length = value.readInt32BE(at);
    items.push(textOf(value.subarray(at + 4, at + 4 + length)));
    at += 4 + length;
  }
  return `{${items.join(',')}}`;
}
