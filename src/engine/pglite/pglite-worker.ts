import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { boundWasmMemory } from '../../base/threads/thread.js';
import type { PgliteEvent, PgliteRequest, PgliteWorkerStart } from './transport.js';

/** Number of bytes collected before they are posted while a statement runs. */
const CHUNK_BYTES = 262_144;
/** Number of unconsumed bytes at which the statement blocks. */
const WINDOW_BYTES = 1_048_576;

const { dataDir, task, maxMemory, outstanding } = workerData as PgliteWorkerStart; // cast: set by the host
const credit = new Int32Array(outstanding);

function post(message: PgliteEvent, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer);
}

let chunk = new Uint8Array(CHUNK_BYTES);
let size = 0;

/** Copies, in chunks, a view of the engine's memory, which is overwritten after the call. */
function collect(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) {
    const piece = bytes.subarray(at, at + CHUNK_BYTES - size);
    chunk.set(piece, size);
    size += piece.length;
    at += piece.length;
    if (size === CHUNK_BYTES) flush();
  }
}

function flush(): void {
  if (size === 0) return;
  const isFull = size === CHUNK_BYTES;
  const bytes = isFull ? chunk : chunk.slice(0, size);
  if (isFull) chunk = new Uint8Array(CHUNK_BYTES);
  size = 0;
  waitForReader();
  Atomics.add(credit, 0, bytes.length);
  post({ kind: 'data', bytes }, [bytes.buffer]);
}

/** Blocks this thread, and with it the statement, until the reader catches up. */
function waitForReader(): void {
  for (let unread = Atomics.load(credit, 0); unread > WINDOW_BYTES; unread = Atomics.load(credit, 0)) {
    Atomics.wait(credit, 0, unread);
  }
}

/**
 * Settings of the server. `shared_buffers` is small, since the engine zeroes its buffers at start, which makes them
 * resident: 128 MB by default. Other pages come from the system's file cache. Synchronized scans would start where the
 * last scan ended; with a single session, rows should come in storage order.
 */
const SETTINGS = ['-c', 'shared_buffers=16MB', '-c', 'synchronize_seqscans=off'];

function open(): Promise<PGlite> {
  const startParams = [...PGlite.defaultStartParams, ...SETTINGS];
  return PGlite.create(dataDir, { extensions: { vector }, startParams });
}

/** Creates the data directory and shuts down cleanly. */
async function createDataDirectory(): Promise<void> {
  const pg = await open();
  await pg.close();
  post({ kind: 'started' });
}

async function serve(): Promise<void> {
  boundWasmMemory(maxMemory);
  const pg = await open();
  parentPort?.on('message', async (message: PgliteRequest) => {
    if (message.kind === 'close') {
      await pg.close();
      process.exit(0);
    }
    await pg.execProtocolRawStream(message.bytes, { syncToFs: false, onRawData: collect });
    if (2 * pg.Module.HEAPU8.length > maxMemory) post({ kind: 'grown' });
    flush();
  });
  post({ kind: 'started' });
}

(task === 'make' ? createDataDirectory() : serve()).catch((error: unknown) => {
  post({ kind: 'failed', reason: reasonOf(error) });
});

/** Emscripten throws objects that are not instances of `Error`; those from its file system have an errno. */
function reasonOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  if (typeof error !== 'object' || error === null) return String(error);
  const errno = 'errno' in error ? ` (errno ${String(error.errno)})` : '';
  return `${'name' in error ? String(error.name) : 'the embedded server failed'}${errno}`;
}
