import { availableParallelism } from 'node:os';
import { LRUCache } from 'lru-cache';
import type { ParsedText } from 'osl-compiler';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';
import { BaseImage, FILL_MS } from './base-image.js';
import { Classifier, type StatementLane } from './classify.js';
import type { CatalogDoor, StatementDescription } from './door.js';
import type { StartedEngine } from './engine-thread.js';
import { CatalogFault, fault } from './fault.js';
import { CatalogInstance } from './instance.js';
import type { CatalogModel } from './model.js';
import { type Patience, StatementQueue } from './queue.js';
import type { SharedImage } from './worker/image-files.js';

export interface CatalogOptions {
  /** Keeps the base image; made where it is missing. */
  readonly dir: string;
  /** Engines at a time, each about 60 MiB; one that shows thousands of entities counts as several. Default 8. */
  readonly maxEngines?: number;
  /** How long a statement may run, from its start to its last row. Default 5,000. */
  readonly statementMs?: number;
  /** How long a statement may wait for its subject's turn and an engine, and for its turn there. Default 15,000. */
  readonly waitMs?: number;
  /** Statements that run at a time, of all engines. Default as many as there are processors, and two at least. */
  readonly maxRunning?: number;
  /** An engine that nobody asked for so long is ended. Default 600,000. */
  readonly idleMs?: number;
  /** Rows of one answer. Default 100,000. */
  readonly maxRows?: number;
  /** Bytes of one answer. Default 32 MiB. */
  readonly maxBytes?: number;
  /** Hears of catalogs that cannot be built. */
  readonly log?: Pick<ServiceLog, 'error'>;
}

export interface CatalogStats {
  readonly engines: number;
  /** Since the start, engines begun anew after a deadline or a cancel included. */
  readonly boots: number;
  /** Those of them that were filled with a catalog. */
  readonly fills: number;
  readonly evictions: number;
  /** Bytes that the engines' memories have grown to; what else a thread takes is not counted. */
  readonly memory: number;
}

const MIB = 1_048_576;
/** Rows of one answer, unless told. */
export const MAX_ROWS = 100_000;
/** Statements of one subject that may wait. */
const MOST_WAITING = 100;
/** Statements that may wait for a processor: each has the turn of an engine. */
const MOST_ENGINES = 10_000;
/** Most that one catalog shows: it takes some 600 MiB while it is built, and half of that later. */
const MAX_ENTITIES = 25_000;
const MAX_COLUMNS = 300_000;
/** A catalog with more is filled while no other such one is: it takes seconds of processor, and memory. */
const LARGE = 20_000;
/** Columns of a place, each entity counted as `COLUMNS_OF_ENTITY` for what it has beside its columns. */
const COLUMNS_OF_PLACE = 80_000;
const COLUMNS_OF_ENTITY = 12;
/** MiB. */
const LEAST_SPILL = 32;
const MOST_SPILL = 160;
const COLUMNS_OF_SPILLED_MIB = 600;
/** After a failure the same catalog is not tried for so long, then twice as long each time. */
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 600_000;
const MAX_FAILURES = 1_000;

/** A catalog that could not be built. */
interface CatalogFailure {
  readonly fault: CatalogFault;
  readonly pauseMs: number;
  /** ms since the epoch. */
  readonly until: number;
}

/**
 * The catalogs of all callers: one engine for each access signature, the least recently used one ended first.
 *
 * A subject has one statement under way at a time, whatever engines its tokens lead to. So it stands in each queue once,
 * and first come, first served is fair between subjects.
 */
export class Catalogs implements CatalogDoor {
  readonly maxRows: number;
  readonly #base: BaseImage;
  readonly #options: Required<Omit<CatalogOptions, 'dir' | 'log'>>;
  readonly #log: CatalogOptions['log'];
  readonly #classifier = new Classifier();
  readonly #instances = new Map<string, CatalogInstance>();
  /** Of the engines that there are, by their signatures. */
  readonly #models = new Map<string, CatalogModel>();
  /** By signature, which is that of its contents: the next version of a model is tried at once. */
  readonly #failures = new LRUCache<string, CatalogFailure>({ max: MAX_FAILURES });
  readonly #fillingSmall: StatementQueue;
  readonly #fillingLarge = new StatementQueue(1, MOST_ENGINES);
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
    this.#running = new StatementQueue(this.#options.maxRunning, MOST_ENGINES);
    this.#fillingSmall = new StatementQueue(this.#options.maxRunning, MOST_ENGINES);
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

  /** Makes the base image, if it is not there yet, so that no caller waits for it. */
  async warm(): Promise<void> {
    await this.#base.ready();
  }

  /** Who answers `text`. */
  laneOf(text: string, parse: (text: string) => Promise<ParsedText>): StatementLane | Promise<StatementLane> {
    return this.#classifier.laneOf(text, parse);
  }

  /** What is known of a statement already, so that no engine need be asked; null otherwise. */
  knows(model: CatalogModel, text: string, parameterTypes: readonly number[]): StatementDescription | null {
    return this.#instances.get(model.signature)?.knows(text, parameterTypes) ?? null;
  }

  /**
   * Lends the engine of `model`, filled at its first statement, to `subject`, once its own statements before are done.
   *
   * @throws CatalogFault 53300 where none comes free in time, 54000 where the catalog cannot be built
   */
  async use<T>(
    model: CatalogModel,
    subject: string,
    signal: AbortSignal | null,
    work: (instance: CatalogInstance) => Promise<T>,
  ): Promise<T> {
    const { waitMs } = this.#options;
    // While it is filled, all who share it wait for the same.
    const isFilled = this.#instances.get(model.signature)?.filled === true;
    const patience: Patience = { until: Date.now() + waitMs + (isFilled ? 0 : FILL_MS), signal };
    const queue = this.#queueOf(subject);
    const leave = await queue.enter(patience);
    try {
      // INVARIANT: an instance is lent in the same turn in which it is found or made, so nothing ends it before.
      const instance = this.#lendKnown(model) ?? (await this.#make(model));
      try {
        await this.#started(model, instance, signal);
        return await work(instance);
      } finally {
        instance.giveBack();
        if (instance.idle) this.#wakeOne();
      }
    } finally {
      leave();
      if (queue.unused) this.#subjects.delete(subject);
    }
  }

  /** The model of an engine that there is; null where there is none of this signature. */
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

  /** Lends the engine of `model` if there is one, which thereby is the most recently used. */
  #lendKnown(model: CatalogModel): CatalogInstance | null {
    const instance = this.#instances.get(model.signature);
    if (instance === undefined) return null;
    this.#instances.delete(model.signature);
    this.#instances.set(model.signature, instance);
    return instance.lend();
  }

  #queueOf(subject: string): StatementQueue {
    let queue = this.#subjects.get(subject);
    if (queue === undefined) {
      queue = new StatementQueue(1, MOST_WAITING);
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
      const made = this.#lendKnown(model);
      if (made !== null) return made;
      this.#requireBuildable(model);
    }
    const instance = new CatalogInstance((image) => this.#start(model, image), this.#running, {
      waitMs,
      statementMs,
      maxBytes,
    });
    this.#instances.set(model.signature, instance);
    this.#models.set(model.signature, model);
    return instance.lend();
  }

  #hasRoomFor(model: CatalogModel): boolean {
    const { maxEngines } = this.#options;
    let places = Math.min(placesOf(model), maxEngines);
    for (const other of this.#models.values()) places += placesOf(other);
    return places <= maxEngines;
  }

  async #start(model: CatalogModel, image: SharedImage | null): Promise<StartedEngine> {
    this.#boots += 1;
    if (image !== null) return this.#base.resume(image, spillOf(model));
    this.#fills += 1;
    const queue = model.columns + model.entities > LARGE ? this.#fillingLarge : this.#fillingSmall;
    const leave = await queue.enter({ until: Date.now() + FILL_MS, signal: null });
    try {
      return await this.#base.fill(model.parts, spillOf(model));
    } finally {
      leave();
    }
  }

  /** Waits until the engine is there; that it could not be started is remembered. @throws CatalogFault */
  async #started(model: CatalogModel, instance: CatalogInstance, signal: AbortSignal | null): Promise<void> {
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
      throw this.#failed(model, error).fault;
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

  /** Remembers a failure, of which all who wait for the same engine tell. */
  #failed({ signature, entities, columns }: CatalogModel, error: unknown): CatalogFailure {
    const before = this.#failures.get(signature);
    if (before !== undefined && Date.now() < before.until) return before;
    const pauseMs = Math.min((before?.pauseMs ?? FIRST_PAUSE_MS / 2) * 2, LONGEST_PAUSE_MS);
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
    if (before === undefined)
      this.#log?.error('a catalog could not be built', { entities, columns, error: messageOf(error) });
    return failure;
  }

  /** Ends the engine that was used longest ago among those that do nothing; only if before `latest`, in ms. */
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
    const ended = await new Promise<boolean>((resolve) => {
      const wake = (): void => {
        clearTimeout(late);
        resolve(true);
      };
      const late = setTimeout(
        () => {
          this.#waiting.delete(wake);
          resolve(false);
        },
        Math.max(ms, 0),
      );
      this.#waiting.add(wake);
    });
    if (!ended) throw fault('53300', 'every catalog engine is busy', 'try again');
  }
}

/** MiB of temporary files: a sorted list of all columns, with what tools ask of each, has to fit. */
function spillOf({ columns }: CatalogModel): number {
  return Math.min(LEAST_SPILL + Math.ceil(columns / COLUMNS_OF_SPILLED_MIB), MOST_SPILL);
}

/** Of `maxEngines`: an engine takes some 60 MiB, and so much again for each so many columns. */
function placesOf({ entities, columns }: CatalogModel): number {
  return 1 + Math.floor((columns + entities * COLUMNS_OF_ENTITY) / COLUMNS_OF_PLACE);
}
