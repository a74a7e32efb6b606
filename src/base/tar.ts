/** A tar file is made of such. */
const BLOCK = 512;

export interface TarEntry {
  /** Begins with a slash. */
  readonly path: string;
  /** Null for a directory. */
  readonly content: Uint8Array | null;
}

/** What a plain tar file has: short names, files and directories. @throws Error for anything else */
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

/** The text of a field, up to its NUL. */
function textAt(tar: Uint8Array, at: number, length: number): string {
  return Buffer.from(tar.subarray(at, at + length))
    .toString('latin1')
    .replace(/\0.*$/s, '')
    .trim();
}
