import { dirname, join } from 'node:path';
import type { Random } from './random.js';

/** Folder of the simulated disks. Other paths are read from the real one, as the package's own files. */
export const SIMULATED = '/sim';

const SECTOR = 512;
/** A file, or the name of a Unix socket. */
export class Inode {
  readonly kind: 'file' | 'socket';
  /** Bytes up to this offset are on disk, if it was written from the start. */
  syncedTo = 0;
  data = Buffer.alloc(0);
  size = 0;
  /** Undoes what is not synced, oldest first. */
  readonly unsynced: (() => void)[] = [];

  constructor(kind: 'file' | 'socket') {
    this.kind = kind;
  }

  get bytes(): Buffer {
    return this.data.subarray(0, this.size);
  }

  write(bytes: Uint8Array, at: number, isSynced: boolean): void {
    const end = at + bytes.length;
    if (!isSynced) {
      this.#remember(at, end);
      this.syncedTo = Math.min(this.syncedTo, at);
    }
    if (end > this.data.length) {
      const larger = Buffer.alloc(Math.max(end, 2 * this.data.length));
      this.data.copy(larger, 0, 0, this.size);
      this.data = larger;
    }
    this.data.set(bytes, at);
    this.size = Math.max(this.size, end);
    if (isSynced && this.unsynced.length === 0) this.syncedTo = Math.max(this.syncedTo, end);
  }

  truncate(size: number): void {
    const { bytes } = this;
    const before = Buffer.from(bytes.subarray(Math.min(size, bytes.length)));
    const from = Math.min(size, bytes.length);
    const old = bytes.length;
    this.unsynced.push(() => {
      this.write(before, from, true);
      this.size = old;
    });
    if (size > this.data.length) this.write(Buffer.alloc(size - old), old, true);
    this.data.fill(0, size);
    this.size = size;
  }

  /** One undo for each sector, since a power failure may keep any of them. */
  #remember(at: number, end: number): void {
    for (let from = at; from < end; from = (Math.floor(from / SECTOR) + 1) * SECTOR) {
      const to = Math.min(end, (Math.floor(from / SECTOR) + 1) * SECTOR);
      const old = Buffer.from(this.bytes.subarray(Math.min(from, this.size), Math.min(to, this.size)));
      const { size } = this;
      const start = from;
      this.unsynced.push(() => {
        this.data.fill(0, start, to);
        this.data.set(old, start);
        if (size < to && this.size === to) this.size = size;
      });
    }
  }

  sync(): void {
    this.unsynced.length = 0;
    this.syncedTo = this.size;
  }
}

interface NameChange {
  readonly dir: string;
  undo(): void;
}

/** Faults of a disk, which a run switches on for a while. */
export interface DiskFaults {
  /** Error of writes, such as ENOSPC; null for none. */
  write: string | null;
  sync: string | null;
  /** Extra time of each write and sync, in ms. */
  slowMs: number;
}

/** A disk of one machine. It outlives processes; a power failure takes what is not synced, in part or whole. */
export class Disk {
  readonly faults: DiskFaults = { write: null, sync: null, slowMs: 0 };
  readonly #files = new Map<string, Inode>();
  readonly #dirs = new Set<string>([SIMULATED, '/']);
  /** Changes of names that are not synced, oldest first. */
  #changes: NameChange[] = [];
  /** Writes under way, which the end of their process may cut off. */
  readonly underWay = new Set<(part: number) => void>();
  /** Called after each write and sync of a file. */
  onWritten: (path: string, inode: Inode) => void = () => undefined;

  find(path: string): Inode | null {
    return this.#files.get(path) ?? null;
  }

  isDir(path: string): boolean {
    return this.#dirs.has(path);
  }

  mkdir(path: string, recursive: boolean): string | undefined {
    if (this.#dirs.has(path) || this.#files.has(path)) {
      if (recursive && this.#dirs.has(path)) return undefined;
      throw failure('EEXIST', 'mkdir', path);
    }
    const parent = dirname(path);
    let first: string | undefined;
    if (!this.#dirs.has(parent)) {
      if (!recursive) throw failure('ENOENT', 'mkdir', path);
      first = this.mkdir(parent, true);
    }
    this.#dirs.add(path);
    this.#changes.push({ dir: parent, undo: () => this.#dirs.delete(path) });
    return first ?? path;
  }

  put(path: string, inode: Inode): void {
    if (!this.#dirs.has(dirname(path))) throw failure('ENOENT', 'open', path);
    const before = this.#files.get(path) ?? null;
    this.#files.set(path, inode);
    this.#changes.push({ dir: dirname(path), undo: () => this.#restore(path, before) });
  }

  remove(path: string): void {
    const before = this.#files.get(path);
    if (before === undefined) throw failure('ENOENT', 'unlink', path);
    this.#files.delete(path);
    this.#changes.push({ dir: dirname(path), undo: () => this.#restore(path, before) });
  }

  removeAll(path: string): void {
    for (const name of [...this.#files.keys()]) if (name.startsWith(`${path}/`)) this.remove(name);
    for (const name of [...this.#dirs])
      if (name === path || name.startsWith(`${path}/`)) this.#dirs.delete(name);
  }

  rename(from: string, to: string): void {
    const file = this.#files.get(from);
    if (file !== undefined) {
      const before = this.#files.get(to) ?? null;
      this.#files.delete(from);
      this.#files.set(to, file);
      this.#changes.push({
        dir: dirname(to),
        undo: () => {
          this.#restore(to, before);
          this.#files.set(from, file);
        },
      });
      return;
    }
    if (!this.#dirs.has(from)) throw failure('ENOENT', 'rename', from);
    const moved = (name: string): string => to + name.slice(from.length);
    for (const name of [...this.#dirs].filter((d) => d === from || d.startsWith(`${from}/`))) {
      this.#dirs.delete(name);
      this.#dirs.add(moved(name));
    }
    for (const [name, inode] of [...this.#files].filter(([name]) => name.startsWith(`${from}/`))) {
      this.#files.delete(name);
      this.#files.set(moved(name), inode);
    }
  }

  names(dir: string): readonly string[] {
    if (!this.#dirs.has(dir)) throw failure('ENOENT', 'scandir', dir);
    const all = [...this.#files.keys(), ...this.#dirs].filter(
      (name) => name !== dir && dirname(name) === dir,
    );
    return all.map((name) => name.slice(dir.length + 1)).sort();
  }

  syncNames(dir: string): void {
    this.#changes = this.#changes.filter((change) => change.dir !== dir);
  }

  /** Ends the writes under way, each after a part of its bytes. */
  cutWrites(random: Random): void {
    for (const finish of this.underWay) finish(random.next());
    this.underWay.clear();
  }

  /** Takes what is not synced: any sector of any file, and the newest changes of names. */
  powerFailure(random: Random): void {
    const kept = random.between(0, this.#changes.length);
    for (const change of this.#changes.splice(kept).reverse()) change.undo();
    this.#changes = [];
    for (const inode of new Set(this.#files.values())) {
      for (const undo of inode.unsynced.splice(0).reverse()) if (random.chance(0.5)) undo();
    }
  }

  #restore(path: string, before: Inode | null): void {
    if (before === null) this.#files.delete(path);
    else this.#files.set(path, before);
  }
}

export function failure(code: string, syscall: string, path = ''): NodeJS.ErrnoException {
  const error: NodeJS.ErrnoException = new Error(`${code}: ${syscall}${path === '' ? '' : ` '${path}'`}`);
  return Object.assign(error, { code, syscall, path, errno: -1 });
}

/** Path of a file in the data directory of a gateway. */
export function dataPath(machine: string, ...names: readonly string[]): string {
  return join(SIMULATED, machine, ...names);
}
