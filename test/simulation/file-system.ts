import { EventEmitter } from 'node:events';
import * as realFs from 'node:fs';
import { normalize } from 'node:path';
import { type Disk, failure, Inode, SIMULATED } from './disk.js';
import type { Party, Scheduler } from './scheduler.js';

const { constants } = realFs;

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
