import { availableParallelism } from 'node:os';
import { LRUCache } from 'lru-cache';
import type { ParsedText } from 'osl-compiler';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';
import type { CatalogProvider, CatalogQuery, StatementDescription } from './catalog-requests.js';
import { Classifier, type StatementLane } from './classify.js';
import { BaseImage, FILL_MS, type StartedEngine } from './engine-thread.js';
import { CatalogInstance, StatementQueue, type WaitLimit } from './instance.js';
import type { CatalogModel } from './model.js';
import { CatalogFault, fault } from './reply.js';
import type { SharedImage } from './worker/image-files.js';

export interface CatalogOptions {
  readonly dir: string;
  /** Maximum number of engines, about 60 MiB each; one with thousands of entities counts as several. Default 8. */
  readonly maxEngines?: number;
  /** Statement timeout in ms. Default 5,000. */
  readonly statementMs?: number;
  /**
   * Maximum time in ms of each wait: for the subject's earlier statements, for an engine, and for a free slot to run
   * the statement. The first may be longer if the engine is not ready yet. Default 15,000.
   */
  readonly waitMs?: number;
  /** Maximum number of statements running concurrently in all engines. Default: number of processors, at least two. */
  readonly maxRunning?: number;
  /** Idle time in ms after which an engine is shut down. Default 600,000. */
  readonly idleMs?: number;
  readonly maxRows?: number;
  /** Maximum bytes per answer. Default 32 MiB. */
  readonly maxBytes?: number;
  readonly log?: Pick<ServiceLog, 'error'>;
}

export interface CatalogStats {
  readonly engines: number;
  /** Number of engine starts so far, including restarts after a timeout or cancellation. */
  readonly boots: number;
  /** Number of starts that built a catalog. */
  readonly fills: number;
  readonly evictions: number;
  /** Total WebAssembly memory of all engines in bytes, not counting other memory of their threads. */
  readonly memory: number;
}

const MIB = 1_048_576;
export const MAX_ROWS = 100_000;
const MAX_WAITING_PER_SUBJECT = 100;
/** Maximum number of statements waiting for a processor; each already holds its engine. */
const MAX_QUEUED = 10_000;
/** Maximum catalog size: building such a catalog takes about 600 MiB of memory, keeping it takes half of that. */
const MAX_ENTITIES = 25_000;
const MAX_COLUMNS = 300_000;
/** Number of columns above which catalogs are filled one at a time, since that takes memory and CPU time. */
const LARGE_COLUMNS = 20_000;
/**
 * A catalog takes one of the `maxEngines` slots, and another slot for every `COLUMNS_PER_SLOT` columns. An entity counts
 * as `COLUMNS_PER_ENTITY` additional columns.
 */
const COLUMNS_PER_SLOT = 80_000;
const COLUMNS_PER_ENTITY = 12;
/** Bounds of the limit on temporary files per engine, in MiB. */
const MIN_SPILL_MIB = 32;
const MAX_SPILL_MIB = 160;
const COLUMNS_PER_SPILLED_MIB = 600;
/** Pause in ms before building a failed catalog again; doubled after each failure. */
const FIRST_PAUSE_MS = 30_000;
const MAX_PAUSE_MS = 600_000;
const MAX_FAILURES = 1_000;

interface CatalogFailure {
  readonly fault: CatalogFault;
  readonly pauseMs: number;
  readonly until: number;
}

/**
 * Catalogs of all callers: one engine for all callers with the same access signature, with LRU eviction.
 *
 * A subject runs one statement at a time, regardless of which engines its tokens lead to. It therefore has at most one
 * entry in each queue, so serving the queues in FIFO order is fair between subjects.
 */
export class Catalogs implements CatalogProvider {
  readonly maxRows: number;
  readonly #base: BaseImage;
  readonly #options: Required<Omit<CatalogOptions, 'dir' | 'log'>>;
  readonly #log: CatalogOptions['log'];
  readonly #classifier = new Classifier();
  readonly #instances = new Map<string, CatalogInstance>();
  readonly #models = new Map<string, CatalogModel>();
  /** Failures by signature. A new model version has a different signature, so it is tried immediately. */
  readonly #failures = new LRUCache<string, CatalogFailure>({ max: MAX_FAILURES });
  readonly #smallFills: StatementQueue;
  readonly #largeFills = new StatementQueue(1, MAX_QUEUED);
  #boots = 0;
  #fills = 0;
  #evictions = 0;
  readonly #waiting = new Set<() => void>();
  readonly #subjects = new Map<string, StatementQueue>();
  readonly #running: StatementQueue;
  readonly #sweeper: NodeJS.Timeout;

  constructor(options: CatalogOptions) {
    this.#options = {
      maxEngines: 8,
      statementMs: 5_000,
      waitMs: 15_000,
      maxRunning: Math.max(2, availableParallelism()),
      idleMs: 600_000,
      maxRows: MAX_ROWS,
      maxBytes: 32 * MIB,
      ...options,
    };
    this.maxRows = this.#options.maxRows;
    this.#log = options.log;
    this.#running = new StatementQueue(this.#options.maxRunning, MAX_QUEUED);
    this.#smallFills = new StatementQueue(this.#options.maxRunning, MAX_QUEUED);
    this.#base = new BaseImage(options.dir);
    const { idleMs } = this.#options;
    this.#sweeper = setInterval(
      () => {
        while (this.#evict(Date.now() - idleMs));
      },
      Math.min(idleMs, 60_000),
    );
    this.#sweeper.unref();
  }

  async warm(): Promise<void> {
    await this.#base.ready();
  }

  laneOf(text: string, parse: (text: string) => Promise<ParsedText>): StatementLane | Promise<StatementLane> {
    return this.#classifier.laneOf(text, parse);
  }

  cachedDescription(model: CatalogModel, statement: CatalogQuery): StatementDescription | null {
    return this.#instances.get(model.signature)?.cachedDescription(statement) ?? null;
  }

  /**
   * Waits for the subject's earlier statements, then runs `work` with the engine of `model`, which is built on first
   * use.
   *
   * @throws CatalogFault 53300 if no engine becomes available in time, 54000 if the catalog cannot be built
   */
  async use<T>(
    model: CatalogModel,
    subject: string,
    signal: AbortSignal | null,
    work: (instance: CatalogInstance) => Promise<T>,
  ): Promise<T> {
    const { waitMs } = this.#options;
    // All users of an engine wait while it is filled, so their time limit is longer until then.
    const isFilled = this.#instances.get(model.signature)?.filled === true;
    const waitLimit: WaitLimit = { until: Date.now() + waitMs + (isFilled ? 0 : FILL_MS), signal };
    const queue = this.#queueOf(subject);
    const release = await queue.enter(waitLimit);
    try {
      // INVARIANT: an instance is reserved synchronously after it is found or made, so nothing can shut it down in
      // between.
      const instance = this.#acquireExisting(model) ?? (await this.#make(model));
      try {
        await this.#awaitStart(model, instance, signal);
        return await work(instance);
      } finally {
        instance.release();
        if (instance.idle) this.#wakeOne();
      }
    } finally {
      release();
      if (queue.unused) this.#subjects.delete(subject);
    }
  }

  /** Returns the model of the engine with this signature; null if no such engine exists. */
  modelOf(signature: string): CatalogModel | null {
    return this.#models.get(signature) ?? null;
  }

  stats(): CatalogStats {
    let memory = 0;
    for (const instance of this.#instances.values()) memory += instance.memory;
    return {
      engines: this.#instances.size,
      boots: this.#boots,
      fills: this.#fills,
      evictions: this.#evictions,
      memory,
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    const instances = [...this.#instances.values()];
    this.#instances.clear();
    this.#models.clear();
    await Promise.all(instances.map((i) => i.close()));
  }

  #acquireExisting(model: CatalogModel): CatalogInstance | null {
    const instance = this.#instances.get(model.signature);
    if (instance === undefined) return null;
    this.#instances.delete(model.signature);
    this.#instances.set(model.signature, instance);
    return instance.acquire();
  }

  #queueOf(subject: string): StatementQueue {
    let queue = this.#subjects.get(subject);
    if (queue === undefined) {
      queue = new StatementQueue(1, MAX_WAITING_PER_SUBJECT);
      this.#subjects.set(subject, queue);
    }
    return queue;
  }

  async #make(model: CatalogModel): Promise<CatalogInstance> {
    const { waitMs, statementMs, maxBytes } = this.#options;
    const until = Date.now() + waitMs;
    this.#requireBuildable(model);
    while (!this.#hasRoomFor(model)) {
      if (this.#evict()) continue;
      await this.#waitForTurn(until - Date.now());
      const existing = this.#acquireExisting(model);
      if (existing !== null) return existing;
      this.#requireBuildable(model);
    }
    const instance = new CatalogInstance((image) => this.#start(model, image), this.#running, {
      waitMs,
      statementMs,
      maxBytes,
    });
    this.#instances.set(model.signature, instance);
    this.#models.set(model.signature, model);
    return instance.acquire();
  }

  #hasRoomFor(model: CatalogModel): boolean {
    const { maxEngines } = this.#options;
    let slots = Math.min(engineShare(model), maxEngines);
    for (const loadedModel of this.#models.values()) slots += engineShare(loadedModel);
    return slots <= maxEngines;
  }

  async #start(model: CatalogModel, image: SharedImage | null): Promise<StartedEngine> {
    this.#boots += 1;
    if (image !== null) return this.#base.resume(image, tempFileMib(model));
    this.#fills += 1;
    const queue = model.columns + model.entities > LARGE_COLUMNS ? this.#largeFills : this.#smallFills;
    const release = await queue.enter({ until: Date.now() + FILL_MS, signal: null });
    try {
      return await this.#base.fill(model.parts, tempFileMib(model));
    } finally {
      release();
    }
  }

  async #awaitStart(
    model: CatalogModel,
    instance: CatalogInstance,
    signal: AbortSignal | null,
  ): Promise<void> {
    const { signature } = model;
    try {
      await instance.ready(signal);
      this.#failures.delete(signature);
    } catch (error) {
      if (error instanceof CatalogFault) throw error;
      if (this.#instances.get(signature) === instance) {
        this.#instances.delete(signature);
        this.#models.delete(signature);
      }
      throw this.#recordFailure(model, error).fault;
    }
  }

  /** @throws CatalogFault 54000 */
  #requireBuildable({ signature, entities, columns }: CatalogModel): void {
    if (entities > MAX_ENTITIES || columns > MAX_COLUMNS)
      throw fault(
        '54000',
        `the catalog of what you may see has ${entities} entities with ${columns} columns: more than it can show`,
        `At most ${MAX_ENTITIES} entities with ${MAX_COLUMNS} columns. Log in with fewer roles; questions about data have no such limit.`,
      );
    const failure = this.#failures.get(signature);
    if (failure !== undefined && Date.now() < failure.until) throw failure.fault;
  }

  #recordFailure({ signature, entities, columns }: CatalogModel, error: unknown): CatalogFailure {
    const previous = this.#failures.get(signature);
    if (previous !== undefined && Date.now() < previous.until) return previous;
    const pauseMs = Math.min((previous?.pauseMs ?? FIRST_PAUSE_MS / 2) * 2, MAX_PAUSE_MS);
    const failure: CatalogFailure = {
      pauseMs,
      until: Date.now() + pauseMs,
      fault: fault(
        '54000',
        `the catalog of the ${entities} entities that you may see, with ${columns} columns, could not be built`,
        `It is tried again after ${pauseMs / 1_000} s. The operator's log has the cause; questions about data are answered.`,
      ),
    };
    this.#failures.set(signature, failure);
    if (previous === undefined)
      this.#log?.error('a catalog could not be built', { entities, columns, error: messageOf(error) });
    return failure;
  }

  /**
   * Shuts down the idle engine that was used least recently, and before `latest` (epoch ms); false if there is none.
   */
  #evict(latest = Number.POSITIVE_INFINITY): boolean {
    for (const [signature, instance] of this.#instances) {
      if (!instance.idle || instance.lastUsed > latest) continue;
      this.#instances.delete(signature);
      this.#models.delete(signature);
      this.#evictions += 1;
      void instance.close();
      return true;
    }
    return false;
  }

  #wakeOne(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    this.#waiting.delete(first);
    first();
  }

  async #waitForTurn(ms: number): Promise<void> {
    const isWoken = await new Promise<boolean>((resolve) => {
      const wake = (): void => {
        clearTimeout(timeout);
        resolve(true);
      };
      const timeout = setTimeout(
        () => {
          this.#waiting.delete(wake);
          resolve(false);
        },
        Math.max(ms, 0),
      );
      this.#waiting.add(wake);
    });
    if (!isWoken) throw fault('53300', 'every catalog engine is busy', 'try again');
  }
}

/** Limit on temporary files in MiB: enough to sort a list of all columns with the attributes that tools query. */
function tempFileMib({ columns }: CatalogModel): number {
  return Math.min(MIN_SPILL_MIB + Math.ceil(columns / COLUMNS_PER_SPILLED_MIB), MAX_SPILL_MIB);
}

function engineShare({ entities, columns }: CatalogModel): number {
  return 1 + Math.floor((columns + entities * COLUMNS_PER_ENTITY) / COLUMNS_PER_SLOT);
}
