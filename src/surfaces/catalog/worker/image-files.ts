/// <reference lib="es2024.sharedmemory" />
import { readFile } from 'node:fs/promises';
import { MemoryFS, PGlite } from '@electric-sql/pglite';
import { tarEntries } from '../../../base/tar-stream.js';

export interface SharedImage {
  readonly bytes: number;
  readonly directories: readonly string[];
  readonly files: readonly { readonly path: string; readonly content: Uint8Array }[];
}

interface FileNode {
  contents: Uint8Array;
  /** Number of bytes in use; the rest of `contents` is spare capacity. */
  usedBytes: number;
  readonly stream_ops: StreamOperations;
  readonly node_ops: NodeOperations;
}

/** File operations, shared by all regular files of an engine. */
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

const GROWTH_STEP = 65_536;
/** Reserved address space of a growing file, in multiples of its size; only used pages take memory. */
const RESERVE_FACTOR = 4;

/**
 * In-memory data directory of one engine, loaded from a base image or a shared image. Files of a shared image are
 * copied on first write. Growing files grow in place.
 */
export class ImageFiles extends MemoryFS {
  readonly #image: string | SharedImage;
  /** Files whose bytes are shared, and therefore copied before the first write. */
  readonly #shared = new WeakSet<FileNode>();
  #isIntercepted = false;

  /** @param image path of an archive from `dumpDataDir('none')`, or the result of `share` */
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
      const target = PGlite.paths.PGDATA + path;
      this.#fs.mkdirTree(content === null ? target : target.slice(0, target.lastIndexOf('/')));
      if (content !== null) this.#create(target, content);
    }
  }

  share(): SharedImage {
    const directories: string[] = [];
    const nodes = new Map<string, FileNode>();
    this.#walk(PGlite.paths.PGDATA, directories, nodes);
    const small = [...nodes.values()].filter(({ contents }) => !isShared(contents.buffer));
    const sharedMemory = new SharedArrayBuffer(small.reduce((sum, { usedBytes }) => sum + usedBytes, 0));
    let at = 0;
    for (const node of small) {
      const bytes = new Uint8Array(sharedMemory, at, node.usedBytes);
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
    const node = this.#fs.lookupPath(path, {}).node as unknown as FileNode; // its types omit the file's contents
    if (!this.#isIntercepted) this.#interceptWrites(node);
    return node;
  }

  /** Intercepts the operations of all files, so that changes go to memory owned by this engine. */
  #interceptWrites({ stream_ops, node_ops }: FileNode): void {
    this.#isIntercepted = true;
    const { write } = stream_ops;
    stream_ops.write = (stream, from, offset, length, position, canOwn) => {
      this.#ensureCapacity(stream.node, position + length);
      return write(stream, from, offset, length, position, canOwn);
    };
    const { setattr } = node_ops;
    node_ops.setattr = (node, attributes) => {
      const { size } = attributes;
      if (size === undefined || size <= node.usedBytes || node.usedBytes === 0)
        return setattr(node, attributes);
      this.#ensureCapacity(node, size);
      node.contents.fill(0, node.usedBytes, size);
      node.usedBytes = size;
    };
  }

  #ensureCapacity(node: FileNode, needed: number): void {
    const { contents, usedBytes } = node;
    if (this.#shared.delete(node)) node.contents = contents.slice(0, usedBytes);
    if (needed <= node.contents.length) return;
    const size = Math.ceil(needed / GROWTH_STEP) * GROWTH_STEP;
    const { buffer } = node.contents;
    if (isShared(buffer) && buffer.growable && size <= buffer.maxByteLength) {
      buffer.grow(size);
      return;
    }
    if (needed < GROWTH_STEP) return;
    const grown = new Uint8Array(new SharedArrayBuffer(size, { maxByteLength: size * RESERVE_FACTOR }));
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
