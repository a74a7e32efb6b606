import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { PACKAGE_ROOT } from '../../base/package-root.js';
import { EngineThread, type StartedEngine } from './engine-thread.js';
import { HARDENING } from './hardening.js';
import type { SharedImage } from './worker/image-files.js';
import type { WorkerTask } from './worker/messages.js';

/** Making a base image takes about four seconds of processor. */
const MAKE_MS = 120_000;
/** Filling an engine takes some five seconds of processor for 10,000 entities. */
export const FILL_MS = 120_000;
/** Booting takes a fourth of a second. */
const BOOT_MS = 60_000;
const MIB = 1_048_576;
/** Bytes that one engine's memory may grow to; it starts with half of that. */
const MAX_MEMORY = 256 * MIB;

/** Where `npm run build` leaves the image: to make it takes some 550 MiB, more than a small container has. */
export const BUILT_IMAGES = join(PACKAGE_ROOT, 'dist', 'catalog');

/** The hardened image that every catalog engine boots from: made with the package, else once, and kept in a file. */
export class BaseImage {
  readonly #dir: string;
  readonly #built: string | null;
  #making: Promise<string> | null = null;
  #engine: Promise<WebAssembly.Module> | null = null;

  /** @param dir made where it is missing; @param built looked into first */
  constructor(dir: string, built: string | null = BUILT_IMAGES) {
    this.#dir = dir;
    this.#built = built;
  }

  /** The image's file, which is made where there is none. Later calls wait for the first; after a failure the next one tries again. */
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

  /** An engine with these contents, as `ContentsWriter` writes them. */
  async fill(parts: readonly Uint8Array[], spillMib: number): Promise<StartedEngine> {
    return this.#start({ kind: 'fill', image: await this.ready(), parts, spillMib }, FILL_MS);
  }

  /** An engine as one that was filled began. */
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

/**
 * Work after which a function of WebAssembly is optimised, in V8's own unit: a few seconds of it. Sooner, the large
 * functions of Postgres would be optimised while an engine boots, which keeps 100 MB and makes no catalog question
 * faster.
 */
const TIERING_BUDGET = 1_000_000_000;

/** INVARIANT: what was compiled before, such as the parser and the engine of the data, keeps its own budget. */
async function compiledEngine(): Promise<WebAssembly.Module> {
  const bytes = await readFile(join(engineDir(), 'pglite.wasm'));
  setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET}`);
  return WebAssembly.compile(bytes);
}

/** Changes with the engine and with what is done to it. */
function versionOf(): string {
  const manifest = readFileSync(join(engineDir(), '..', 'package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string }; // npm's own file
  const hash = createHash('sha256').update(JSON.stringify([version, HARDENING]));
  return `${version}-${hash.digest('hex').slice(0, 16)}`;
}

/** Whole or not at all; two processes may do the same at once. */
async function keep(file: string, image: Uint8Array): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const aside = `${file}.${randomUUID()}`;
  try {
    await writeFile(aside, image, { mode: 0o644, flush: true }); // nothing in it is anybody's
    await rename(aside, file);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
}
