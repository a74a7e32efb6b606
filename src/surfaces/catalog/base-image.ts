import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PACKAGE_ROOT } from '../../base/package-root.js';
import { deferWasmOptimization } from '../../base/threads/thread.js';
import { EngineThread, type StartedEngine } from './engine-thread.js';
import { HARDENING } from './hardening.js';
import type { WorkerTask } from './worker/catalog-worker.js';
import type { SharedImage } from './worker/image-files.js';

/** Timeout in ms for making a base image, which takes about four seconds of CPU time. */
const MAKE_MS = 120_000;
/** Timeout in ms for filling an engine, which takes about five seconds of CPU time per 10,000 entities. */
export const FILL_MS = 120_000;
/** Timeout for booting in ms, which takes about 250 ms. */
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
  readonly #built: string | null;
  #making: Promise<string> | null = null;
  #engine: Promise<WebAssembly.Module> | null = null;

  /** @param dir created if missing; @param built searched first */
  constructor(dir: string, built: string | null = BUILT_IMAGES) {
    this.#dir = dir;
    this.#built = built;
  }

  /**
   * Returns the path of the image, making it if missing. Concurrent calls share one attempt; after a failure the next
   * call tries again.
   */
  async ready(): Promise<string> {
    const name = `base-${versionOf()}.tar`;
    for (const dir of this.#built === null ? [this.#dir] : [this.#built, this.#dir]) {
      const file = join(dir, name);
      if (existsSync(file)) return file;
    }
    this.#making ??= this.#make(join(this.#dir, name)).finally(() => {
      this.#making = null;
    });
    return this.#making;
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
    await keep(file, await EngineThread.make({ engine, task, maxMemory: MAX_MEMORY }, MAKE_MS));
    return file;
  }

  async #start(task: WorkerTask, deadlineMs: number): Promise<StartedEngine> {
    return EngineThread.start({ engine: await this.#module(), task, maxMemory: MAX_MEMORY }, deadlineMs);
  }

  #module(): Promise<WebAssembly.Module> {
    this.#engine ??= compiledEngine();
    return this.#engine;
  }
}

const PACKAGE = '@electric-sql/pglite';

function engineDir(): string {
  return dirname(createRequire(import.meta.url).resolve(PACKAGE));
}

async function compiledEngine(): Promise<WebAssembly.Module> {
  const bytes = await readFile(join(engineDir(), 'pglite.wasm'));
  deferWasmOptimization();
  return WebAssembly.compile(bytes);
}

/** Cache key of the image, which changes with the engine's version and the hardening scripts. */
function versionOf(): string {
  const manifest = readFileSync(join(engineDir(), '..', 'package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string }; // cast: the engine's package.json
  const hash = createHash('sha256').update(JSON.stringify([version, HARDENING]));
  return `${version}-${hash.digest('hex').slice(0, 16)}`;
}

/** Writes atomically; two processes may write at the same time. */
async function keep(file: string, image: Uint8Array): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const aside = `${file}.${randomUUID()}`;
  try {
    await writeFile(aside, image, { mode: 0o644, flush: true }); // no private data, so default permissions suffice
    await rename(aside, file);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
}
