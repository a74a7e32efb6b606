/// <reference lib="es2024.sharedmemory" />
import { readFile } from 'node:fs/promises';
import { MemoryFS, PGlite } from '@electric-sql/pglite';
import { tarEntries } from '../../../base/tar-stream.js';

/** A data directory in memory that threads share. None of them writes into it. */
export interface SharedImage {
  /** Of all files. */
  readonly bytes: number;
  readonly directories: readonly string[];
  readonly files: readonly { readonly path: string; readonly content: Uint8Array }[];
}

/** A regular file, as Emscripten's file system in memory keeps it. */
interface FileNode {
  contents: Uint8Array;
  /** Of `contents`; the rest is room to grow. */
  usedBytes: number;
  readonly stream_ops: StreamOperations;
  readonly node_ops: NodeOperations;
}

/** All regular files of an engine have the same. */
interface NodeOperations {
  setattr(node: FileNode, attributes: { readonly size?: number }): void;
}

interface StreamOperations {
  write(
    stream: { readonly node: FileNode },
    from: Uint8Array,
    offset: number,
    length: number,
    position: number,
    canOwn?: boolean,
  ): number;
}

/** Bytes by which a file grows. */
const STEP = 65_536;
/** Address space of a file that grows, in multiples of what it needs; only what is used takes memory. */
const RESERVE = 4;

/**
 * The data directory of one engine, in memory: of a base image, whose bytes are this engine's alone, or of a shared
 * image, where the engine gets its own copy of each file that it writes to. A file that grows does so in place.
 */
export class ImageFiles extends MemoryFS {
  readonly #image: string | SharedImage;
  /** Files whose bytes are shared: copied before the first write. */
  readonly #shared = new WeakSet<FileNode>();
  #watched = false;

  /** @param image a file, as `dumpDataDir('none')` wrote it, or what `share` gave */
  constructor(image: string | SharedImage) {
    super();
    this.#image = image;
  }

  override async initialSyncFs(): Promise<void> {
    if (typeof this.#image !== 'string') {
      for (const path of this.#image.directories) this.#fs.mkdirTree(path);
      for (const { path, content } of this.#image.files) this.#shared.add(this.#create(path, content));
      return;
    }
    for (const { path, content } of tarEntries(await readFile(this.#image))) {
      const at = PGlite.paths.PGDATA + path;
      this.#fs.mkdirTree(content === null ? at : at.slice(0, at.lastIndexOf('/')));
      if (content !== null) this.#create(at, content);
    }
  }

  /** The data directory as it is now, for other threads. */
  share(): SharedImage {
    const directories: string[] = [];
    const nodes = new Map<string, FileNode>();
    this.#walk(PGlite.paths.PGDATA, directories, nodes);
    const small = [...nodes.values()].filter(({ contents }) => !isShared(contents.buffer));
    const room = new SharedArrayBuffer(small.reduce((sum, { usedBytes }) => sum + usedBytes, 0));
    let at = 0;
    for (const node of small) {
      const bytes = new Uint8Array(room, at, node.usedBytes);
      bytes.set(node.contents.subarray(0, node.usedBytes));
      node.contents = bytes;
      at += node.usedBytes;
    }
    const files = [...nodes].map(([path, node]) => {
      this.#shared.add(node);
      return {
        path,
        content: new Uint8Array(node.contents.buffer, node.contents.byteOffset, node.usedBytes),
      };
    });
    return { directories, files, bytes: files.reduce((sum, { content }) => sum + content.length, 0) };
  }

  get #fs() {
    if (this.pg === undefined) throw new Error('the files of an engine were asked for before it had begun');
    return this.pg.Module.FS;
  }

  #create(path: string, content: Uint8Array): FileNode {
    this.#fs.writeFile(path, new Uint8Array(0));
    const node = this.#nodeAt(path);
    node.contents = content;
    node.usedBytes = content.length;
    return node;
  }

  #nodeAt(path: string): FileNode {
    const node = this.#fs.lookupPath(path, {}).node as unknown as FileNode; // its types leave out what a file consists of
    if (!this.#watched) this.#watch(node);
    return node;
  }

  /** Has each change of a file, of which `node` is one, find room in bytes that are the engine's own. */
  #watch({ stream_ops, node_ops }: FileNode): void {
    this.#watched = true;
    const { write } = stream_ops;
    stream_ops.write = (stream, from, offset, length, position, canOwn) => {
      this.#makeRoom(stream.node, position + length);
      return write(stream, from, offset, length, position, canOwn);
    };
    const { setattr } = node_ops;
    node_ops.setattr = (node, attributes) => {
      const { size } = attributes;
      if (size === undefined || size <= node.usedBytes || node.usedBytes === 0)
        return setattr(node, attributes);
      this.#makeRoom(node, size);
      node.contents.fill(0, node.usedBytes, size);
      node.usedBytes = size;
    };
  }

  #makeRoom(node: FileNode, needed: number): void {
    const { contents, usedBytes } = node;
    if (this.#shared.delete(node)) node.contents = contents.slice(0, usedBytes);
    if (needed <= node.contents.length) return;
    const size = Math.ceil(needed / STEP) * STEP;
    const { buffer } = node.contents;
    if (isShared(buffer) && buffer.growable && size <= buffer.maxByteLength) {
      buffer.grow(size);
      return;
    }
    if (needed < STEP) return;
    const grown = new Uint8Array(new SharedArrayBuffer(size, { maxByteLength: size * RESERVE }));
    grown.set(node.contents.subarray(0, usedBytes));
    node.contents = grown;
  }

  #walk(directory: string, directories: string[], nodes: Map<string, FileNode>): void {
    directories.push(directory);
    for (const name of this.#fs.readdir(directory)) {
      if (name === '.' || name === '..') continue;
      const path = `${directory}/${name}`;
      if (this.#fs.isDir(this.#fs.lookupPath(path, {}).node.mode)) this.#walk(path, directories, nodes);
      else nodes.set(path, this.#nodeAt(path));
    }
  }
}

function isShared(buffer: ArrayBufferLike): buffer is SharedArrayBuffer {
  return buffer instanceof SharedArrayBuffer;
}
