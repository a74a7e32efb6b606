import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { bytesOf, syncNames, writeWhole } from '../../../base/files.js';

/**
 * File format: each line is `<first 16 hex digits of SHA-256 of the rest> <JSON>`; a line `null` ends a group. Groups
 * are atomic, so an incomplete one is cut off.
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
  readonly size: number;
  /** Appends a group, which is on disk when this resolves if `durable`. If it rejects, nothing was added. */
  append(entries: readonly Entry[], durable: boolean): Promise<void>;
  /** Replaces all entries, durably. */
  rewrite(entries: readonly Entry[]): Promise<void>;
  close(): Promise<void>;
}

/** Returns the entries of complete groups, and the offset at which they end. */
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
      open.push(entry as Entry); // cast: the checksum matches
      continue;
    }
    entries.push(...open);
    open = [];
    end = at;
  }
  return { entries, end };
}

/** Reads a journal that another process may be writing; empty if the file does not exist. */
export async function readJournal<Entry>(file: string): Promise<readonly Entry[]> {
  return readGroups<Entry>((await bytesOf(file)) ?? NOTHING).entries;
}

/** Opens a journal for writing; cuts off an incomplete group. */
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
      await this.#handle.truncate(this.#size).catch(() => undefined); // the first error is reported
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
