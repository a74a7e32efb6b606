import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { PACKAGE_ROOT } from '../../base/package-root.js';
import { deferWasmOptimization, startThread } from '../../base/threads/thread.js';
import { HARDENING } from './hardening.js';
import type {
  CatalogWorkerStart,
  FromCatalogWorker,
  ToCatalogWorker,
  WorkerTask,
} from './worker/catalog-worker.js';
import type { SharedImage } from './worker/image-files.js';

export type EndReason = 'deadline' | 'cancelled' | 'overflow' | 'broken';

export class EngineEnded extends Error {
  override readonly name = 'EngineEnded';
  readonly reason: EndReason;

  constructor(reason: EndReason, detail: string = reason) {
    super(`the catalog engine ended: ${detail}`);
    this.reason = reason;
  }
}

export interface ExecLimits {
  readonly deadlineMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal | null;
}

export interface EngineResult {
  readonly bytes: Uint8Array;
  readonly memory: number;
}

export interface StartedEngine {
  readonly thread: EngineThread;
  /** Image of the filled engine, from which it boots if it has to be restarted. */
  readonly image: SharedImage;
}

interface PendingExecution {
  readonly resolve: (result: EngineResult) => void;
  readonly reject: (error: EngineEnded) => void;
}

/** An embedded engine in its own thread. A running statement can only be stopped by terminating the thread. */
export class EngineThread {
  readonly exited: Promise<void>;
  readonly #worker: Worker;
  #pending: PendingExecution | null = null;
  #alive = true;

  private constructor(worker: Worker) {
    this.#worker = worker;
    this.exited = new Promise((resolve) => worker.once('exit', () => resolve()));
    this.exited.then(() => this.end('broken'));
  }

  static start(data: CatalogWorkerStart, deadlineMs: number): Promise<StartedEngine> {
    return EngineThread.#launch(data, deadlineMs, (message, thread) =>
      message.kind === 'started' ? { thread, image: message.image } : null,
    );
  }

  static makeImage(data: CatalogWorkerStart, deadlineMs: number): Promise<Uint8Array> {
    return EngineThread.#launch(data, deadlineMs, (message, thread) => {
      if (message.kind !== 'made') return null;
      thread.end('cancelled');
      return message.image;
    });
  }

  static #launch<T>(
    data: CatalogWorkerStart,
    deadlineMs: number,
    read: (message: FromCatalogWorker, thread: EngineThread) => T | null,
  ): Promise<T> {
    const file = new URL('./worker/catalog-worker.js', import.meta.url);
    const limits = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 8 };
    const worker = startThread(file, limits, data);
    const thread = new EngineThread(worker);
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        thread.end('broken');
        reject(new Error(`the catalog engine did not start: ${reason}`));
      };
      const timeout = setTimeout(fail, deadlineMs, 'it took too long');
      worker.on('message', (message: FromCatalogWorker) => {
        clearTimeout(timeout);
        const result = read(message, thread);
        if (result !== null) resolve(result);
        else if (message.kind === 'failed') fail(message.reason);
        else thread.#finish(message);
      });
      thread.exited.then(() => fail('its thread ended'));
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  /**
   * Sends frontend messages and returns the reply; only one call may be active at a time. Rejects with EngineEnded if
   * the thread has terminated.
   */
  async exec(bytes: Uint8Array, limits: ExecLimits): Promise<EngineResult> {
    if (!this.#alive) throw new EngineEnded('broken');
    const timeout = setTimeout(() => this.end('deadline'), limits.deadlineMs);
    const cancel = (): void => this.end('cancelled');
    limits.signal?.addEventListener('abort', cancel, { once: true });
    this.#worker.ref();
    try {
      return await new Promise((resolve, reject) => {
        this.#pending = { resolve, reject };
        const message: ToCatalogWorker = {
          kind: 'exec',
          bytes: new Uint8Array(bytes),
          maxBytes: limits.maxBytes,
        };
        this.#worker.postMessage(message);
      });
    } finally {
      this.#pending = null;
      this.#worker.unref();
      clearTimeout(timeout);
      limits.signal?.removeEventListener('abort', cancel);
    }
  }

  end(reason: EndReason, detail?: string): void {
    if (this.#alive) {
      this.#alive = false;
      void this.#worker.terminate();
    }
    this.#pending?.reject(new EngineEnded(reason, detail));
  }

  #finish(message: FromCatalogWorker): void {
    if (message.kind === 'done') this.#pending?.resolve({ bytes: message.bytes, memory: message.memory });
    else if (message.kind === 'overflow') this.end('overflow');
    else this.end('broken', message.kind === 'broken' ? message.reason : `an unexpected ${message.kind}`);
  }
}

/** Timeout in ms for making a base image, which takes about four seconds of CPU time. */
const MAKE_MS = 120_000;
/** Timeout in ms for filling an engine, which takes about five seconds of CPU time per 10,000 entities. */
export const FILL_MS = 120_000;
/** Timeout in ms for booting an engine, which takes about 250 ms. */
const BOOT_MS = 60_000;
const MIB = 1_048_576;
/** Maximum memory of one engine in bytes; half of it is allocated at startup. */
const MAX_MEMORY = 256 * MIB;

/**
 * Directory of the image made by `npm run build`. Making it at run time would take about 550 MiB, more than small
 * containers have.
 */
export const BUILT_IMAGES = join(PACKAGE_ROOT, 'dist', 'catalog');

/**
 * Hardened image that every catalog engine boots from: shipped with the package, otherwise made once and cached in a
 * file.
 */
export class BaseImage {
  readonly #dir: string;
  readonly #builtDir: string | null;
  #pendingImage: Promise<string> | null = null;
  #engine: Promise<WebAssembly.Module> | null = null;

  /** @param dir created if missing; @param builtDir searched first */
  constructor(dir: string, builtDir: string | null = BUILT_IMAGES) {
    this.#dir = dir;
    this.#builtDir = builtDir;
  }

  /**
   * Returns the path of the image, making it if missing. Concurrent calls share one attempt; after a failure the next
   * call tries again.
   */
  async ready(): Promise<string> {
    const name = `base-${imageVersion()}.tar`;
    for (const dir of this.#builtDir === null ? [this.#dir] : [this.#builtDir, this.#dir]) {
      const file = join(dir, name);
      if (existsSync(file)) return file;
    }
    this.#pendingImage ??= this.#make(join(this.#dir, name)).finally(() => {
      this.#pendingImage = null;
    });
    return this.#pendingImage;
  }

  /** Starts an engine and fills it with contents in the format of `ContentsWriter`. */
  async fill(parts: readonly Uint8Array[], spillMib: number): Promise<StartedEngine> {
    return this.#start({ kind: 'fill', image: await this.ready(), parts, spillMib }, FILL_MS);
  }

  resume(image: SharedImage, spillMib: number): Promise<StartedEngine> {
    return this.#start({ kind: 'resume', image, spillMib }, BOOT_MS);
  }

  async #make(file: string): Promise<string> {
    const engine = await this.#module();
    const task: WorkerTask = { kind: 'make', scripts: HARDENING };
    await writeImage(file, await EngineThread.makeImage({ engine, task, maxMemory: MAX_MEMORY }, MAKE_MS));
    return file;
  }

  async #start(task: WorkerTask, deadlineMs: number): Promise<StartedEngine> {
    return EngineThread.start({ engine: await this.#module(), task, maxMemory: MAX_MEMORY }, deadlineMs);
  }

  #module(): Promise<WebAssembly.Module> {
    this.#engine ??= compileEngine().catch((error: unknown) => {
      this.#engine = null;
      throw error;
    });
    return this.#engine;
  }
}

const PACKAGE = '@electric-sql/pglite';

function engineDir(): string {
  return dirname(createRequire(import.meta.url).resolve(PACKAGE));
}

async function compileEngine(): Promise<WebAssembly.Module> {
  const bytes = await readFile(join(engineDir(), 'pglite.wasm'));
  deferWasmOptimization();
  return WebAssembly.compile(bytes);
}

/** Cache key of the image, which changes with the engine's version and the hardening scripts. */
function imageVersion(): string {
  const manifest = readFileSync(join(engineDir(), '..', 'package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string }; // cast: the engine's package.json
  const hash = createHash('sha256').update(JSON.stringify([version, HARDENING]));
  return `${version}-${hash.digest('hex').slice(0, 16)}`;
}

/** Writes atomically; two processes may write at the same time. */
async function writeImage(file: string, image: Uint8Array): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const temporary = `${file}.${randomUUID()}`;
  try {
    await writeFile(temporary, image, { mode: 0o644, flush: true }); // no private data, so default permissions suffice
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
