import type { FileHandle } from 'node:fs/promises';
import { isObject } from '../../src/base/is-object.js';
import { TarDamaged, type TarPart, TarWriter, tarParts } from '../../src/base/tar-stream.js';
import { codeOf } from '../../src/base/thrown.js';

/**
 * A backup is a tar file that contains `osl-backup.json`, then the data directory below `data/`, then `SHA256SUMS` for
 * all of these, in the format of `sha256sum`.
 */
export const HEAD = 'osl-backup.json';
export const SUMS = 'SHA256SUMS';
export const DATA = 'data';

export interface BackupHead {
  readonly format: 1;
  /** Time of the backup, RFC 3339. */
  readonly made: string;
  /** Version of the gateway that wrote the backup. */
  readonly version: string;
  /** Tenant of the data directory; null if no server has started in it. */
  readonly tenant: string | null;
  readonly keys: boolean;
}

/** A file changed while it was copied, so it must be copied again. */
export class ChangedDuringCopy extends Error {
  override readonly name = 'Changed';
}

/** Writes a backup. Before an attempt is repeated, the files that it wrote are removed from the archive. */
export class BackupWriter {
  readonly #tar: TarWriter;
  #sums: string[] = [];

  constructor(file: FileHandle) {
    this.#tar = new TarWriter(file);
  }

  get files(): number {
    return this.#sums.length;
  }

  get bytes(): number {
    return this.#tar.position;
  }

  directory(path: string): Promise<void> {
    return this.#tar.directory(`${DATA}/${path}`);
  }

  /** Adds a file. @throws ChangedDuringCopy if it does not have exactly `size` bytes */
  async file(
    path: string,
    size: number,
    chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<void> {
    try {
      this.#sums.push(sumLine(`${DATA}/${path}`, await this.#tar.file(`${DATA}/${path}`, size, chunks)));
    } catch (error) {
      throw error instanceof TarDamaged || error instanceof RangeError
        ? new ChangedDuringCopy(error.message)
        : error;
    }
  }

  bytesOf(path: string, bytes: Uint8Array): Promise<void> {
    return this.file(path, bytes.length, [bytes]);
  }

  async begin(head: BackupHead): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify(head, null, 2)}\n`);
    this.#sums.push(sumLine(HEAD, await this.#tar.file(HEAD, bytes.length, [bytes])));
  }

  async end(): Promise<void> {
    const bytes = Buffer.from(this.#sums.join(''));
    await this.#tar.file(SUMS, bytes.length, [bytes]);
    await this.#tar.end();
  }

  /**
   * Runs `work`, and repeats it while files change during the copy, until `deadline`.
   *
   * @param deadline on the clock of `performance.now`
   * @throws ChangedDuringCopy if files still change at the deadline
   */
  async retryWhileChanging(deadline: number, work: () => Promise<void>): Promise<void> {
    const [position, files] = [this.#tar.position, this.#sums.length];
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        const gone = codeOf(error) === 'ENOENT';
        if (!(error instanceof ChangedDuringCopy) && !gone) throw error;
        if (performance.now() > deadline) throw gone ? new ChangedDuringCopy('files come and go') : error;
        await this.#tar.rewind(position);
        this.#sums = this.#sums.slice(0, files);
      }
    }
  }
}

function sumLine(path: string, sum: string): string {
  return `${sum}  ${path}\n`;
}

export interface WholeBackup {
  readonly head: BackupHead;
  /** SHA-256 in hex by path, for every file except the list itself. */
  readonly sums: ReadonlyMap<string, string>;
}

/** Reads a backup to its end and verifies it. @throws TarDamaged if any byte differs from what was written */
export async function checkBackup(
  file: FileHandle,
  hashed: (part: TarPart) => Promise<string>,
): Promise<WholeBackup> {
  const found = new Map<string, string>();
  let head: BackupHead | null = null;
  let sums: string | null = null;
  for await (const part of tarParts(file)) {
    if (sums !== null) throw new TarDamaged(`something follows ${SUMS}`);
    if (part.kind === 'directory') continue;
    if (part.path === SUMS) sums = (await whole(part)).toString();
    else if (found.has(part.path)) throw new TarDamaged(`${part.path} is there twice`);
    else {
      found.set(part.path, await hashed(part));
      if (part.path === HEAD) head = headOf(await whole(part));
    }
  }
  if (head === null) throw new TarDamaged(`this is no backup of osl: there is no ${HEAD}`);
  const wanted = [...found].map(([path, sum]) => sumLine(path, sum)).join('');
  if (sums === null) throw new TarDamaged(`the archive has no ${SUMS}`);
  if (sums !== wanted) throw new TarDamaged(`${differing(sums, wanted)} is not what was written`);
  return { head, sums: found };
}

function differing(sums: string, wanted: string): string {
  const lines = new Set(sums.split('\n'));
  return (
    wanted
      .split('\n')
      .find((line) => line !== '' && !lines.has(line))
      ?.slice(66) ?? SUMS
  );
}

function headOf(bytes: Buffer): BackupHead {
  const value: unknown = JSON.parse(bytes.toString());
  if (!isObject(value) || value['format'] !== 1)
    throw new TarDamaged('this backup has a form that this version does not know');
  const { made, version, tenant, keys } = value;
  return {
    format: 1,
    made: String(made),
    version: String(version),
    tenant: typeof tenant === 'string' ? tenant : null,
    keys: keys === true,
  };
}

const MOST_HELD = 256 * 1024 * 1024;

async function whole(part: TarPart): Promise<Buffer> {
  if (part.size > MOST_HELD) throw new TarDamaged(`${part.path} is too large`);
  const chunks: Buffer[] = [];
  for await (const chunk of part.bytes()) chunks.push(chunk);
  return Buffer.concat(chunks);
}
