import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

/** Reads and writes tar files (POSIX ustar) as streams. Supports only plain files and directories. */

const BLOCK = 512;
const CHUNK = 1024 * 1024;
/** Maximum file size in bytes, since the size field has eleven octal digits. */
const MOST = 8 ** 11 - 1;

/** Writes a tar archive to `file`, starting at its beginning. */
export class TarWriter {
  readonly #file: FileHandle;
  #at = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  get position(): number {
    return this.#at;
  }

  /** Removes everything after `position`, so that an entry can be written again. */
  async rewind(position: number): Promise<void> {
    await this.#file.truncate(position);
    this.#at = position;
  }

  directory(path: string): Promise<void> {
    return this.#put(header(`${path}/`, 0, '5'));
  }

  /**
   * Appends a file.
   *
   * @param chunks `size` bytes in total
   * @returns their SHA-256 in hex
   * @throws RangeError if there are more or fewer bytes
   */
  async file(
    path: string,
    size: number,
    chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<string> {
    await this.#put(header(path, size, '0'));
    const hash = createHash('sha256');
    let rest = size;
    for await (const chunk of chunks) {
      rest -= chunk.length;
      if (rest < 0) break;
      hash.update(chunk);
      await this.#put(chunk);
    }
    if (rest !== 0) throw new RangeError(`${path} has changed its size`);
    await this.#put(Buffer.alloc(padding(size)));
    return hash.digest('hex');
  }

  async end(): Promise<void> {
    await this.#put(Buffer.alloc(2 * BLOCK));
    await this.#file.sync();
  }

  async #put(bytes: Uint8Array): Promise<void> {
    let done = 0;
    while (done < bytes.length) {
      const { bytesWritten } = await this.#file.write(bytes, done, bytes.length - done, this.#at);
      done += bytesWritten;
      this.#at += bytesWritten;
    }
  }
}

export interface TarPart {
  readonly path: string;
  readonly kind: 'file' | 'directory';
  readonly size: number;
  /** The contents. Read them to the end before requesting the next entry, or do not read them at all. */
  bytes(): AsyncGenerator<Buffer, void, void>;
}

/** The tar file is incomplete, or was not written by `TarWriter`. */
export class TarDamaged extends Error {
  override readonly name = 'TarDamaged';
}

/** Yields the entries of a file written by `TarWriter`, checking its headers, padding and end. @throws TarDamaged */
export async function* tarParts(file: FileHandle): AsyncGenerator<TarPart, void, void> {
  const { size: end } = await file.stat();
  let at = 0;
  for (;;) {
    const block = await blockAt(file, at, BLOCK);
    if (block.every((byte) => byte === 0)) break;
    const { path, kind, size } = readHeader(block, at);
    const from = at + BLOCK;
    at = from + size + padding(size);
    if (at > end) throw new TarDamaged('the archive is cut off');
    yield { path, kind, size, bytes: () => chunksOf(file, from, size) };
    requireZeros(await blockAt(file, from + size, padding(size)), from + size);
  }
  if (at + 2 * BLOCK !== end) throw new TarDamaged('the archive does not end where it should');
  requireZeros(await blockAt(file, at, 2 * BLOCK), at);
}

/** Yields bytes [`from`, `from + size`) in chunks. @throws TarDamaged if the file is shorter */
export async function* chunksOf(
  file: FileHandle,
  from: number,
  size: number,
): AsyncGenerator<Buffer, void, void> {
  for (let done = 0; done < size; ) {
    const chunk = await blockAt(file, from + done, Math.min(CHUNK, size - done));
    done += chunk.length;
    yield chunk;
  }
}

async function blockAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const block = Buffer.alloc(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(block, done, length - done, at + done);
    if (bytesRead === 0) throw new TarDamaged('the archive is cut off');
    done += bytesRead;
  }
  return block;
}

function requireZeros(bytes: Buffer, at: number): void {
  if (!bytes.every((byte) => byte === 0))
    throw new TarDamaged(`bytes that should be empty are not, at ${at}`);
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

function header(path: string, size: number, kind: '0' | '5'): Buffer {
  if (size > MOST) throw new RangeError(`${path} is too large for a tar file`);
  const [prefix, name] = split(path);
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0, 'utf8');
  block.write(kind === '5' ? '0000700' : '0000600', 100, 'latin1');
  block.write('0000000', 108, 'latin1');
  block.write('0000000', 116, 'latin1');
  block.write(size.toString(8).padStart(11, '0'), 124, 'latin1');
  block.write('00000000000', 136, 'latin1');
  block.write(kind, 156, 'latin1');
  block.write('ustar\u000000', 257, 'latin1');
  block.write(prefix, 345, 'utf8');
  block.write(checksumOf(block), 148, 'latin1');
  return block;
}

/** Splits a long path at a slash, with at most 155 bytes before the slash and 100 after it. */
function split(path: string): readonly [prefix: string, name: string] {
  if (Buffer.byteLength(path) <= 100) return ['', path];
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100 && name !== '')
      return [prefix, name];
  }
  throw new RangeError(`the path ${path} is too long for a tar file`);
}

/** Returns the checksum field: the sum of all bytes, with the field itself counted as spaces. */
function checksumOf(block: Buffer): string {
  const sum = block.reduce((all, byte, i) => all + (i >= 148 && i < 156 ? 0x20 : byte), 0);
  return `${sum.toString(8).padStart(6, '0')}\0 `;
}

function readHeader(block: Buffer, at: number): Pick<TarPart, 'path' | 'kind' | 'size'> {
  const fault = (): TarDamaged => new TarDamaged(`there is no entry of a tar file at ${at}`);
  if (textOf(block, 257, 5) !== 'ustar' || block.toString('latin1', 148, 156) !== checksumOf(block))
    throw fault();
  const [name, prefix] = [textOf(block, 0, 100), textOf(block, 345, 155)];
  const size = Number.parseInt(textOf(block, 124, 12), 8);
  const kind = textOf(block, 156, 1);
  const path = prefix === '' ? name : `${prefix}/${name}`;
  if (!(size >= 0) || path === '' || (kind !== '0' && kind !== '5') || (kind === '5' && size > 0))
    throw fault();
  return { path: path.replace(/\/$/, ''), kind: kind === '0' ? 'file' : 'directory', size };
}

function textOf(block: Buffer, at: number, length: number): string {
  const bytes = block.subarray(at, at + length);
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end < 0 ? length : end);
}

interface TarEntry {
  readonly path: string;
  readonly content: Uint8Array | null;
}

/**
 * Yields the entries of a tar archive in memory. Paths must be absolute and at most 100 bytes long. @throws Error for
 * other archives
 */
export function* tarEntries(tar: Uint8Array): Generator<TarEntry> {
  for (let at = 0; tar[at] !== undefined && tar[at] !== 0; ) {
    const path = textAt(tar, at, 100);
    const size = Number.parseInt(textAt(tar, at + 124, 12), 8);
    const kind = textAt(tar, at + 156, 1);
    const from = at + BLOCK;
    if (!path.startsWith('/') || !(from + size <= tar.length)) throw new Error('the image is not whole');
    if (kind === '5') yield { path, content: null };
    else if (kind === '0') yield { path, content: tar.subarray(from, from + size) };
    else throw new Error(`the image has an entry of the kind ${kind}`);
    at = from + Math.ceil(size / BLOCK) * BLOCK;
  }
}

function textAt(tar: Uint8Array, at: number, length: number): string {
  return Buffer.from(tar.subarray(at, at + length))
    .toString('latin1')
    .replace(/\0.*$/s, '')
    .trim();
}
