import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { boundWasmMemory, yieldToOthers } from '../../../base/threads/thread.js';
import { parseContents } from '../engine-contract.js';
import { fill } from './fill.js';
import { ImageFiles, type SharedImage } from './image-files.js';

const { engine, task, maxMemory } = workerData as CatalogWorkerStart; // cast: set by the host

/** Server settings, with small buffers: a catalog takes a few megabytes, and there are many engines. */
const SETTINGS = [
  'shared_buffers=1MB',
  'max_connections=5',
  'min_wal_size=2MB',
  'max_wal_size=2MB',
  // Files do not outlive the thread, so crash safety and replication are turned off.
  'full_page_writes=off',
  'wal_level=minimal',
  'max_wal_senders=0',
  'wal_init_zero=off',
  'work_mem=4MB',
  'max_stack_depth=100kB',
  'track_activities=off',
  'track_counts=off',
  'io_method=sync',
  'max_worker_processes=0',
  'max_parallel_workers=0',
  'max_parallel_workers_per_gather=0',
  'max_parallel_maintenance_workers=0',
  'log_checkpoints=false',
  'exit_on_error=false',
  'timezone=UTC',
];
const SERVING_SETTINGS = ['search_path=entities', 'default_transaction_read_only=on', 'extra_float_digits=1'];

function post(message: FromCatalogWorker, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer);
}

function boot(files: ImageFiles | null, extraSettings: readonly string[]): Promise<PGlite> {
  const settings = [...SETTINGS, ...extraSettings];
  const flags = files === null ? ['--single', '-F', '-O', '-j'] : ['--single', '-F', '-j'];
  return PGlite.create({
    pgliteWasmModule: engine,
    startParams: [...flags, ...settings.flatMap((s) => ['-c', s])],
    initDbStartParams: ['--wal-segsize=1'],
    ...(files === null ? {} : { fs: files, database: 'osl' }),
  });
}

/** Exit status with which the engine abandons a failed statement; any other exception is a trap. */
const LONGJMP = 100;

let trap: string | null = null;

function watchForTraps(pg: PGlite): void {
  const engine = pg.Module;
  const original = engine._PostgresMainLoopOnce;
  engine._PostgresMainLoopOnce = () => {
    try {
      return original();
    } catch (error) {
      const status = typeof error === 'object' && error !== null && 'status' in error ? error.status : null;
      if (status !== LONGJMP) trap ??= error instanceof Error ? error.message : String(error);
      throw error;
    }
  };
}

async function exec(pg: PGlite, message: ToCatalogWorker): Promise<void> {
  const parts: Uint8Array[] = [];
  let size = 0;
  let overflowed = false;
  await pg.execProtocolRawStream(message.bytes, {
    syncToFs: false,
    onRawData: (bytes) => {
      if (overflowed) return;
      size += bytes.length;
      if (size > message.maxBytes) {
        overflowed = true;
        post({ kind: 'overflow' });
      } else {
        parts.push(bytes.slice()); // copied, because `bytes` is a view of the engine's memory
      }
    },
  });
  if (trap !== null) return post({ kind: 'broken', reason: trap });
  if (overflowed) return;
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  post({ kind: 'done', bytes, memory: pg.Module.HEAPU8.length }, [bytes.buffer]);
}

async function make(scripts: readonly string[]): Promise<void> {
  const pg = await boot(null, []);
  for (const script of scripts) await pg.exec(script);
  const dump = await pg.dumpDataDir('none');
  const image = new Uint8Array(await dump.arrayBuffer());
  post({ kind: 'made', image }, [image.buffer]);
}

async function serve(): Promise<void> {
  yieldToOthers();
  boundWasmMemory(maxMemory);
  if (task.kind === 'make') return make(task.scripts);
  const files = new ImageFiles(task.image);
  const pg = await boot(files, [...SERVING_SETTINGS, `temp_file_limit=${task.spillMib}MB`]);
  if (task.kind === 'fill') await fill(pg, parseContents(task.parts));
  watchForTraps(pg);
  parentPort?.on('message', (message: ToCatalogWorker) => {
    exec(pg, message).catch((error: unknown) => post({ kind: 'broken', reason: String(error) }));
  });
  post({ kind: 'started', image: task.kind === 'fill' ? files.share() : task.image });
}

serve().catch((error: unknown) => post({ kind: 'failed', reason: describeError(error) }));

/** Describes an error; Emscripten's file system throws objects that are not `Error`s. */
function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : (JSON.stringify(error) ?? String(error));
}

export interface CatalogWorkerStart {
  readonly engine: WebAssembly.Module;
  readonly task: WorkerTask;
  /** Maximum memory of the engine in bytes. */
  readonly maxMemory: number;
}

/** `spillMib` limits the temporary files of statements, which are kept in memory. */
export type WorkerTask =
  /** Makes a base image by running these scripts. */
  | { readonly kind: 'make'; readonly scripts: readonly string[] }
  /** Boots from a base image file and fills the engine with contents in the format of `ContentsWriter`. */
  | {
      readonly kind: 'fill';
      readonly image: string;
      readonly parts: readonly Uint8Array[];
      readonly spillMib: number;
    }
  /** Boots from the image of an engine that was already filled. */
  | { readonly kind: 'resume'; readonly image: SharedImage; readonly spillMib: number };

export type ToCatalogWorker =
  /** Frontend messages ending in Sync or Query. `maxBytes` limits the reply. */
  { readonly kind: 'exec'; readonly bytes: Uint8Array; readonly maxBytes: number };

export type FromCatalogWorker =
  | { readonly kind: 'made'; readonly image: Uint8Array<ArrayBuffer> }
  /** The engine is ready; later engines can boot from `image`. */
  | { readonly kind: 'started'; readonly image: SharedImage }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Complete reply; `memory` is the size of the engine's memory in bytes. */
  | { readonly kind: 'done'; readonly bytes: Uint8Array<ArrayBuffer>; readonly memory: number }
  /** The reply exceeds `maxBytes`. */
  | { readonly kind: 'overflow' }
  /** The engine trapped and must not be used again. */
  | { readonly kind: 'broken'; readonly reason: string };
