import { EventEmitter } from 'node:events';
import * as realFs from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import type { Random } from './random.js';
import type { Party, Scheduler } from './scheduler.js';

/** Folder of the simulated disks. Other paths are read from the real one, as the package's own files. */
export const SIMULATED = '/sim';

const SECTOR = 512;
const { constants } = realFs;

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

interface OpenFile {
  readonly path: string;
  /** Null for a directory. */
  readonly inode: Inode | null;
  readonly isSynced: boolean;
  readonly appends: boolean;
}

/** `node:fs` and `node:fs/promises` of one process. */
export class FileSystem {
  readonly #disk: Disk;
  readonly #scheduler: Scheduler;
  readonly #party: Party;
  readonly #open = new Map<number, OpenFile>();
  #nextFd = 1_000;

  constructor(disk: Disk, scheduler: Scheduler, party: Party) {
    this.#disk = disk;
    this.#scheduler = scheduler;
    this.#party = party;
  }

  /** Paths of open files, for the check that all are closed in the end. */
  get openPaths(): readonly string[] {
    return [...this.#open.values()].map(({ path }) => path);
  }

  /** The path without `/proc/self/fd/N`; null if it is not on a simulated disk. */
  locate(path: unknown): string | null {
    const text = normalize(path instanceof URL ? path.pathname : String(path));
    const [, fd, rest = ''] = /^\/proc\/self\/fd\/(\d+)(\/.*)?$/.exec(text) ?? [];
    const at = fd === undefined ? text : `${this.#open.get(Number(fd))?.path ?? ''}${rest}`;
    return at === SIMULATED || at.startsWith(`${SIMULATED}/`) ? at.replace(/\/$/, '') : null;
  }

  #here(path: unknown): string {
    const at = this.locate(path);
    if (at === null) throw failure('EROFS', 'write', String(path));
    return at;
  }

  /** Creates a file entry for a Unix socket. */
  addSocket(path: string): string {
    const at = this.#here(path);
    if (this.#disk.find(at) !== null) throw failure('EADDRINUSE', 'listen', at);
    this.#disk.put(at, new Inode('socket'));
    return at;
  }

  isSocket(path: string): boolean {
    return this.#disk.find(path)?.kind === 'socket';
  }

  #openNow(path: unknown, flags: string | number = 'r'): number {
    const at = this.locate(path);
    if (at === null) throw failure('EROFS', 'open', String(path));
    const { creates, truncates, exclusive, synced, appends } = flagsOf(flags);
    let inode = this.#disk.find(at);
    if (inode === null && !this.#disk.isDir(at)) {
      if (!creates) throw failure('ENOENT', 'open', at);
      inode = new Inode('file');
      this.#disk.put(at, inode);
    } else if (exclusive) throw failure('EEXIST', 'open', at);
    if (truncates) inode?.truncate(0);
    const fd = this.#nextFd++;
    this.#open.set(fd, { path: at, inode, isSynced: synced, appends });
    return fd;
  }

  #file(fd: number): OpenFile {
    const file = this.#open.get(fd);
    if (file === undefined) throw failure('EBADF', 'write');
    return file;
  }

  #sync(fd: number): void {
    const { inode, path } = this.#file(fd);
    if (this.#disk.faults.sync !== null) throw failure(this.#disk.faults.sync, 'fsync', path);
    if (inode === null) {
      this.#disk.syncNames(path);
      return;
    }
    inode.sync();
    this.#disk.onWritten(path, inode);
  }

  #write(fd: number, bytes: Uint8Array, position: number | null, part = 1): number {
    const { inode, isSynced, appends, path } = this.#file(fd);
    if (inode === null) throw failure('EISDIR', 'write', path);
    if (this.#disk.faults.write !== null) throw failure(this.#disk.faults.write, 'write', path);
    const taken = part === 1 ? bytes : bytes.subarray(0, Math.floor(part * bytes.length));
    inode.write(taken, appends || position === null ? inode.size : position, isSynced);
    this.#disk.onWritten(path, inode);
    return taken.length;
  }

  /** Performs an operation after a while, as a thread would. */
  #later<T>(label: string, kind: 'quick' | 'write' | 'sync', work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#scheduler.after(this.#party, this.#delay(kind), `${label}`, () => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  #delay(kind: 'quick' | 'write' | 'sync'): number {
    const { random } = this.#scheduler;
    const slow = kind === 'quick' ? 0 : 1_000 * this.#disk.faults.slowMs;
    return slow + (kind === 'sync' ? random.between(80, 3_000) : random.between(5, 200));
  }

  #writeLater(fd: number, bytes: Uint8Array, position: number | null): Promise<number> {
    const file = this.#file(fd);
    // The end of the process cuts the write off; the bytes are read when it is done.
    const cut = (part: number): void => {
      file.inode?.write(
        bytes.subarray(0, Math.floor(part * bytes.length)),
        position ?? file.inode.size,
        false,
      );
    };
    this.#disk.underWay.add(cut);
    // A disk takes less than it is given now and then.
    const part = bytes.length > 1 && this.#scheduler.random.chance(0.02) ? 0.5 : 1;
    return this.#later(`write ${bytes.length}`, file.isSynced ? 'sync' : 'write', () => {
      this.#disk.underWay.delete(cut);
      return this.#write(fd, bytes, position, part);
    });
  }

  #handle(fd: number): object {
    // As in Node, a handle is closed once what it does has ended.
    const running = new Set<Promise<unknown>>();
    const held = <T>(work: Promise<T>): Promise<T> => {
      running.add(work);
      const over = (): void => void running.delete(work);
      work.then(over, over);
      return work;
    };
    const close = async (): Promise<void> => {
      while (running.size > 0) await Promise.allSettled(running);
      await this.#later('close', 'quick', () => {
        this.#open.delete(fd);
      });
    };
    const all = async (data: Uint8Array | string): Promise<void> => {
      const bytes = Buffer.from(data as string);
      for (let at = 0; at < bytes.length; ) at += await this.#writeLater(fd, bytes.subarray(at), null);
    };
    return Object.assign(new EventEmitter(), {
      fd,
      close,
      [Symbol.asyncDispose]: close,
      writeFile: (data: string) => held(all(data)),
      appendFile: (data: string) => held(all(data)),
      sync: () => held(this.#later('sync', 'sync', () => this.#sync(fd))),
      datasync: () => held(this.#later('datasync', 'sync', () => this.#sync(fd))),
      truncate: (size = 0) =>
        held(this.#later('truncate', 'write', () => this.#file(fd).inode?.truncate(size))),
      stat: () => held(this.#later('fstat', 'quick', () => this.#stat(this.#file(fd).path))),
      readFile: (encoding?: unknown) =>
        held(
          this.#later('read', 'quick', () =>
            decoded(this.#file(fd).inode?.bytes ?? Buffer.alloc(0), encoding),
          ),
        ),
      write: async (
        buffer: Uint8Array,
        offset = 0,
        length = buffer.length - offset,
        position: number | null = null,
      ) => ({
        bytesWritten: await held(this.#writeLater(fd, buffer.subarray(offset, offset + length), position)),
        buffer,
      }),
      read: (buffer: Uint8Array, offset = 0, length = buffer.length - offset, position = 0) =>
        held(
          this.#later('read', 'quick', () => {
            const bytes =
              this.#file(fd).inode?.bytes.subarray(position, position + length) ?? Buffer.alloc(0);
            buffer.set(bytes, offset);
            return { bytesRead: bytes.length, buffer };
          }),
        ),
    });
  }

  #stat(path: unknown): object {
    const at = this.locate(path);
    if (at === null) return realFs.statSync(String(path));
    const inode = this.#disk.find(at);
    if (inode === null && !this.#disk.isDir(at)) throw failure('ENOENT', 'stat', at);
    return {
      size: inode?.size ?? 0,
      mtimeMs: 0,
      ino: 1,
      dev: 1,
      isFile: () => inode?.kind === 'file',
      isDirectory: () => inode === null,
    };
  }

  #read(path: unknown, encoding?: unknown): Buffer | string {
    const at = this.locate(path);
    if (at === null) return realFs.readFileSync(path as string, encoding as 'utf8');
    const inode = this.#disk.find(at);
    if (inode === null) throw failure(this.#disk.isDir(at) ? 'EISDIR' : 'ENOENT', 'open', at);
    return decoded(inode.bytes, encoding);
  }

  #writeWhole(path: unknown, data: Uint8Array | string, options?: unknown): void {
    const flag =
      typeof options === 'object' && options !== null && 'flag' in options ? String(options.flag) : 'w';
    const fd = this.#openNow(path, flag);
    this.#write(fd, Buffer.from(data as string), null);
    if (typeof options === 'object' && options !== null && 'flush' in options) this.#sync(fd);
    this.#open.delete(fd);
  }

  #remove(path: unknown, { force = false, recursive = false } = {}): void {
    const at = this.#here(path);
    if (this.#disk.isDir(at)) {
      if (!recursive) throw failure('EISDIR', 'rm', at);
      this.#disk.removeAll(at);
    } else if (!force || this.#disk.find(at) !== null) this.#disk.remove(at);
  }

  #link(from: unknown, to: unknown): void {
    const inode = this.#disk.find(this.#here(from));
    if (inode === null) throw failure('ENOENT', 'link', String(from));
    if (this.#disk.find(this.#here(to)) !== null) throw failure('EEXIST', 'link', String(to));
    this.#disk.put(this.#here(to), inode);
  }

  #names(path: unknown): readonly string[] {
    const at = this.locate(path);
    return at === null ? realFs.readdirSync(String(path)) : this.#disk.names(at);
  }

  #exists(path: unknown): boolean {
    const at = this.locate(path);
    return at === null
      ? realFs.existsSync(String(path))
      : this.#disk.find(at) !== null || this.#disk.isDir(at);
  }

  #temporary(prefix: string): string {
    const path = `${prefix}${this.#scheduler.random.below(2 ** 32).toString(36)}`;
    this.#disk.mkdir(this.#here(path), true);
    return path;
  }

  /** Replaces `node:fs`. */
  module(): object {
    return {
      ...realFs,
      constants,
      promises: this.promises(),
      existsSync: (path: unknown) => this.#exists(path),
      openSync: (path: unknown, flags?: string) => this.#openNow(path, flags),
      closeSync: (fd: number) => void this.#open.delete(fd),
      fsyncSync: (fd: number) => this.#sync(fd),
      writeSync: (fd: number, data: Uint8Array, offset: number, length: number, position: number) =>
        this.#write(fd, data.subarray(offset, offset + length), position),
      write: (
        fd: number,
        data: Uint8Array,
        offset: number,
        length: number,
        position: number,
        done: (error: Error | null, written: number) => void,
      ) =>
        void this.#writeLater(fd, data.subarray(offset, offset + length), position).then(
          (written) => done(null, written),
          (error: Error) => done(error, 0),
        ),
      renameSync: (from: unknown, to: unknown) => this.#disk.rename(this.#here(from), this.#here(to)),
      mkdirSync: (path: unknown, options?: { recursive?: boolean }) =>
        this.#disk.mkdir(this.#here(path), options?.recursive === true),
      mkdtempSync: (prefix: string) => this.#temporary(prefix),
      readFileSync: (path: unknown, encoding?: unknown) => this.#read(path, encoding),
      writeFileSync: (path: unknown, data: string, options?: unknown) =>
        this.#writeWhole(path, data, options),
      readdirSync: (path: unknown) => this.#names(path),
      statSync: (path: unknown) => this.#stat(path),
      statfsSync: () => ({ type: 0xef53 }),
      unlinkSync: (path: unknown) => this.#remove(path),
      rmSync: (path: unknown, options?: object) => this.#remove(path, options),
      linkSync: (from: unknown, to: unknown) => this.#link(from, to),
    };
  }

  /** Replaces `node:fs/promises`. */
  promises(): object {
    const later =
      <A extends readonly unknown[], T>(label: string, work: (...args: A) => T) =>
      (...args: A): Promise<T> =>
        this.#later(label, 'quick', () => work(...args));
    const writeFile = async (path: unknown, data: string, options?: unknown): Promise<void> => {
      await this.#later('write file', 'write', () => this.#writeWhole(path, data, options));
    };
    return {
      constants,
      open: later('open', (path: unknown, flags?: string) => this.#handle(this.#openNow(path, flags))),
      readFile: later('read', (path: unknown, encoding?: unknown) => this.#read(path, encoding)),
      writeFile,
      appendFile: (path: unknown, data: string) => writeFile(path, data, { flag: 'a' }),
      rename: later('rename', (from: unknown, to: unknown) =>
        this.#disk.rename(this.#here(from), this.#here(to)),
      ),
      rm: later('rm', (path: unknown, options?: object) => this.#remove(path, options)),
      unlink: later('unlink', (path: unknown) => this.#remove(path)),
      link: later('link', (from: unknown, to: unknown) => this.#link(from, to)),
      mkdir: later('mkdir', (path: unknown, options?: { recursive?: boolean }) =>
        this.#disk.mkdir(this.#here(path), options?.recursive === true),
      ),
      readdir: later('readdir', (path: unknown) => this.#names(path)),
      stat: later('stat', (path: unknown) => this.#stat(path)),
      access: later('access', (path: unknown) => void this.#stat(path)),
      realpath: later('realpath', (path: unknown) => String(path)),
      copyFile: later('copy', (from: unknown, to: unknown) =>
        this.#writeWhole(to, Buffer.from(this.#read(from) as string)),
      ),
    };
  }
}

function decoded(bytes: Buffer, encoding: unknown): Buffer | string {
  const name =
    typeof encoding === 'object' && encoding !== null && 'encoding' in encoding
      ? encoding.encoding
      : encoding;
  return typeof name === 'string' ? bytes.toString(name as 'utf8') : Buffer.from(bytes);
}

function flagsOf(flags: string | number) {
  if (typeof flags === 'string') {
    return {
      creates: /[wa]/.test(flags),
      truncates: flags.startsWith('w'),
      exclusive: flags.includes('x'),
      synced: false,
      appends: flags.startsWith('a'),
    };
  }
  const has = (bit: number): boolean => (flags & bit) !== 0;
  return {
    creates: has(constants.O_CREAT),
    truncates: has(constants.O_TRUNC),
    exclusive: has(constants.O_EXCL),
    synced: (flags & constants.O_DSYNC) === constants.O_DSYNC,
    appends: has(constants.O_APPEND),
  };
}

/** Path of a file in the data directory of a gateway. */
export function dataPath(machine: string, ...names: readonly string[]): string {
  return join(SIMULATED, machine, ...names);
}
