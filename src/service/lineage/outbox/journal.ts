import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { bytesOf, syncNames, writeWhole } from '../../../base/files.js';

/**
 * A file of groups. Each line is `<first 16 hex digits of SHA-256 of the rest> <JSON>`; a group ends with the line of
 * `null`, and counts whole or not at all: what a crash left behind the last whole group is cut off.
 */
const END = lineOf(null);

function lineOf(entry: unknown): string {
  const json = JSON.stringify(entry);
  return `${checkOf(json)} ${json}\n`;
}

function checkOf(json: string): string {
  return createHash('sha256').update(json).digest('hex').slice(0, 16);
}

function groupOf(entries: readonly unknown[]): Buffer {
  return Buffer.from(`${entries.map(lineOf).join('')}${END}`);
}

const NOTHING = Buffer.alloc(0);

export interface Journal<Entry> {
  /** Bytes of the file. */
  readonly size: number;
  /**
   * Adds one group. With `durable` it is on disk when this resolves. Where it rejects nothing was added, and the same
   * group can be tried again.
   */
  append(entries: readonly Entry[], durable: boolean): Promise<void>;
  /** Puts `entries` in the place of everything, on disk when it resolves. */
  rewrite(entries: readonly Entry[]): Promise<void>;
  close(): Promise<void>;
}

/** The entries of the whole groups in `text`, and where the last one ends, in bytes. */
function readGroups<Entry>(bytes: Buffer): {
  readonly entries: readonly Entry[];
  readonly end: number;
} {
  const entries: Entry[] = [];
  let open: Entry[] = [];
  let end = 0;
  let at = 0;
  for (let next = bytes.indexOf(0x0a, at); next !== -1; next = bytes.indexOf(0x0a, at)) {
    const line = bytes.toString('utf8', at, next);
    const json = line.slice(17);
    if (line[16] !== ' ' || line.slice(0, 16) !== checkOf(json)) break;
    at = next + 1;
    const entry: unknown = JSON.parse(json);
    if (entry !== null) {
      open.push(entry as Entry); // the check says that a writer of this format made the line
      continue;
    }
    entries.push(...open);
    open = [];
    end = at;
  }
  return { entries, end };
}

/** The entries of a journal that another process may be writing; none where there is no file. */
export async function readJournal<Entry>(file: string): Promise<readonly Entry[]> {
  return readGroups<Entry>((await bytesOf(file)) ?? NOTHING).entries;
}

/** Opens a journal for writing, and cuts off what is no whole group. */
export async function openJournal<Entry>(
  file: string,
): Promise<{ readonly journal: Journal<Entry>; readonly entries: readonly Entry[]; readonly cut: number }> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const bytes = (await bytesOf(file)) ?? NOTHING;
  const { entries, end } = readGroups<Entry>(bytes);
  const handle = await open(file, 'a+', 0o600);
  await handle.truncate(end);
  await handle.sync();
  await syncNames(dirname(file));
  return { journal: new FileJournal<Entry>(file, handle, end), entries, cut: bytes.length - end };
}

class FileJournal<Entry> implements Journal<Entry> {
  readonly #file: string;
  #handle: FileHandle;
  #size: number;

  constructor(file: string, handle: FileHandle, size: number) {
    this.#file = file;
    this.#handle = handle;
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  async append(entries: readonly Entry[], durable: boolean): Promise<void> {
    const group = groupOf(entries);
    try {
      await this.#handle.appendFile(group);
      if (durable) await this.#handle.datasync();
    } catch (error) {
      await this.#handle.truncate(this.#size).catch(() => undefined); // the first error is the one to tell
      throw error;
    }
    this.#size += group.length;
  }

  async rewrite(entries: readonly Entry[]): Promise<void> {
    const group = groupOf(entries);
    await writeWhole(this.#file, group);
    await this.#handle.close();
    this.#handle = await open(this.#file, 'a+', 0o600);
    this.#size = group.length;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
