/**
 * The protocol once more, written independently of `wire/`: builds what a client sends and turns what a server
 * sends into one line per message, so that a test is a table a person can read.
 */
export const int16 = (n: number) => {
  const b = Buffer.alloc(2);
  b.writeUInt16BE(n & 0xffff);
  return b;
};
export const int32 = (n: number) => {
  const b = Buffer.alloc(4);
  b.writeUInt32BE(n >>> 0);
  return b;
};
export const text = (s: string) => Buffer.from(`${s}\0`);
export const join = (...parts: (Buffer | string)[]) =>
  Buffer.concat(parts.map((p) => (typeof p === 'string' ? Buffer.from(p) : p)));

/** A typed message. */
export const message = (type: string, ...parts: (Buffer | string)[]) => {
  const body = join(...parts);
  return join(type, int32(body.length + 4), body);
};
/** An untyped packet. */
export const packet = (code: number, ...parts: (Buffer | string)[]) => {
  const body = join(int32(code), ...parts);
  return join(int32(body.length + 4), body);
};

export const version = (major: number, minor: number) => (major << 16) | minor;
export const sslRequest = packet(80877103);
export const gssRequest = packet(80877104);
export const cancelRequest = (pid: number, key: Buffer) => packet(80877102, int32(pid), key);
export const startup = (parameters: Record<string, string>, code = version(3, 0)) =>
  packet(code, ...Object.entries(parameters).flatMap(([k, v]) => [text(k), text(v)]), '\0');
export const password = (p: string) => message('p', text(p));
export const query = (sql: string) => message('Q', text(sql));
export const parse = (name: string, sql: string, types: number[] = []) =>
  message('P', text(name), text(sql), int16(types.length), Buffer.concat(types.map(int32)));
export interface BindOptions {
  values?: (string | Buffer | null)[];
  formats?: number[];
  results?: number[];
}
export const bind = (portal: string, statement: string, options: BindOptions = {}) => {
  const { values = [], formats = [], results = [] } = options;
  return message(
    'B',
    text(portal),
    text(statement),
    int16(formats.length),
    Buffer.concat(formats.map(int16)),
    int16(values.length),
    Buffer.concat(values.map((v) => (v === null ? int32(-1) : join(int32(Buffer.byteLength(v)), v)))),
    int16(results.length),
    Buffer.concat(results.map(int16)),
  );
};
export const describe = (kind: 'S' | 'P', name = '') => message('D', kind, text(name));
export const execute = (portal = '', maxRows = 0) => message('E', text(portal), int32(maxRows));
export const close = (kind: 'S' | 'P', name = '') => message('C', kind, text(name));
export const sync = message('S');
export const flush = message('H');
export const terminate = message('X');

/** One line per whole message: `Z I`, `D 1|x`, `E ERROR 26000 text`, `T n:23:text`. */
export function readable(type: string, body: Buffer): string {
  switch (type) {
    case 'R':
      return `R ${body.readInt32BE(0)}`;
    case 'K':
      return `K ${body.length - 4}-byte key`;
    case 'S': {
      const [name, value] = strings(body);
      return `S ${name}=${value}`;
    }
    case 'Z':
      return `Z ${body.toString()}`;
    case 'C':
      return `C ${strings(body)[0]}`;
    case 'E':
    case 'N':
      return `${type} ${report(body)}`;
    case 'D':
      return `D ${values(body).join('|')}`;
    case 'T':
      return `T ${columns(body).join(' ')}`;
    case 't':
      return `t ${[...Array(body.readUInt16BE(0)).keys()].map((i) => body.readUInt32BE(2 + 4 * i)).join(',')}`;
    case 'v':
      return `v ${body.readUInt16BE(0)}.${body.readUInt16BE(2)} ${strings(body.subarray(8)).join(',')}`.trim();
    case 'd':
      return `d ${body.toString()}`;
    case 'H':
      return `H ${body.readUInt8(0)}:${body.readInt16BE(1)}`;
    default:
      return type;
  }
}

function strings(body: Buffer): string[] {
  return body.toString().split('\0').slice(0, -1);
}

/** `ERROR 26000 message`, with detail, hint and position in brackets where there are any. */
function report(body: Buffer): string {
  const fields = new Map<string, string>();
  for (const field of strings(body)) fields.set(field.slice(0, 1), field.slice(1));
  const extras = ['D', 'H', 'P', 'R'].flatMap((k) => (fields.has(k) ? [` [${k} ${fields.get(k)}]`] : []));
  if (fields.get('S') !== fields.get('V')) extras.push(' [S and V differ]');
  return `${fields.get('S')} ${fields.get('C')} ${fields.get('M')}${extras.join('')}`;
}

function values(body: Buffer): string[] {
  const found: string[] = [];
  let at = 2;
  for (let i = body.readUInt16BE(0); i > 0; i--) {
    const length = body.readInt32BE(at);
    at += 4;
    found.push(length < 0 ? 'NULL' : body.subarray(at, at + length).toString());
    at += Math.max(0, length);
  }
  return found;
}

/** `name:type:format`; table OID and attribute number only if they are not 0, which is a leak. */
function columns(body: Buffer): string[] {
  const found: string[] = [];
  let at = 2;
  for (let i = body.readUInt16BE(0); i > 0; i--) {
    const end = body.indexOf(0, at);
    const name = body.subarray(at, end).toString();
    const table = body.readInt32BE(end + 1) + body.readInt16BE(end + 5);
    const format = body.readInt16BE(end + 17) === 0 ? 'text' : 'binary';
    found.push(`${name}:${body.readUInt32BE(end + 7)}:${format}${table === 0 ? '' : ':LEAK'}`);
    at = end + 19;
  }
  return found;
}
