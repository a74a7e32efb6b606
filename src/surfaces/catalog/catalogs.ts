import { availableParallelism } from 'node:os';
import type { ParsedText } from 'osl-compiler';
import { BaseImage } from './base-image.js';
import { Classifier, type Lane } from './classify.js';
import { ddlOf } from './ddl.js';
import type { CatalogDoor, Described } from './door.js';
import type { EngineThread } from './engine-thread.js';
import { fault } from './fault.js';
import { CatalogInstance } from './instance.js';
import type { CatalogModel } from './model.js';
import { type Patience, Queue } from './queue.js';

export interface CatalogOptions {
  /** Keeps the base image; made where it is missing. */
  readonly dir: string;
  /** Engines at a time, each about 50 MB. Default 8. */
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
}

export interface CatalogStats {
  readonly engines: number;
  /** Since the start, engines begun anew after a deadline or a cancel included. */
  readonly boots: number;
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

/**
 * The catalogs of all callers: one engine for each access signature, the least recently used one ended first.
 *
 * A subject has one statement under way at a time, whatever engines its tokens lead to. So it stands in each queue once,
 * and first come, first served is fair between subjects.
 */
export class Catalogs implements CatalogDoor {
  readonly maxRows: number;
  readonly #base: BaseImage;
  readonly #options: Required<Omit<CatalogOptions, 'dir'>>;
  readonly #classifier = new Classifier();
  readonly #instances = new Map<string, CatalogInstance>();
  /** Of the engines that there are, by their signatures. */
  readonly #models = new Map<string, CatalogModel>();
  #boots = 0;
  #evictions = 0;
  readonly #waiting = new Set<() => void>();
  readonly #subjects = new Map<string, Queue>();
  readonly #running: Queue;
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
    this.#running = new Queue(this.#options.maxRunning, MOST_ENGINES);
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
  laneOf(text: string, parse: (text: string) => Promise<ParsedText>): Lane | Promise<Lane> {
    return this.#classifier.laneOf(text, parse);
  }

  /** What is known of a statement already, so that no engine need be asked; null otherwise. */
  knows(model: CatalogModel, text: string, parameterTypes: readonly number[]): Described | null {
    return this.#instances.get(model.signature)?.knows(text, parameterTypes) ?? null;
  }

  /**
   * Lends the engine of `model`, booted at its first statement, to `subject`, once its own statements before are done.
   *
   * @throws CatalogFault where none comes free in time
   */
  async use<T>(
    model: CatalogModel,
    subject: string,
    signal: AbortSignal | null,
    work: (instance: CatalogInstance) => Promise<T>,
  ): Promise<T> {
    const patience: Patience = { until: Date.now() + this.#options.waitMs, signal };
    const queue = this.#queueOf(subject);
    const leave = await queue.enter(patience);
    try {
      // INVARIANT: an instance is lent in the same turn in which it is found or made, so nothing ends it before.
      const instance = this.#lendKnown(model) ?? (await this.#make(model, patience));
      try {
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
    return { engines: this.#instances.size, boots: this.#boots, evictions: this.#evictions, memory };
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

  #queueOf(subject: string): Queue {
    let queue = this.#subjects.get(subject);
    if (queue === undefined) {
      queue = new Queue(1, MOST_WAITING);
      this.#subjects.set(subject, queue);
    }
    return queue;
  }

  async #make(model: CatalogModel, { until }: Patience): Promise<CatalogInstance> {
    const { maxEngines, waitMs, statementMs, maxBytes } = this.#options;
    while (this.#instances.size >= maxEngines && !this.#evict()) {
      await this.#waitForTurn(until - Date.now());
      const made = this.#lendKnown(model);
      if (made !== null) return made;
    }
    const instance = new CatalogInstance(() => this.#boot(model), this.#running, {
      waitMs,
      statementMs,
      maxBytes,
    });
    this.#instances.set(model.signature, instance);
    this.#models.set(model.signature, model);
    return instance.lend();
  }

  #boot(model: CatalogModel): Promise<EngineThread> {
    this.#boots += 1;
    return this.#base.boot(ddlOf(model));
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
