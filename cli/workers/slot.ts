import cluster, { type Worker } from 'node:cluster';
import { messageOf } from '../../src/base/thrown.js';
import type { Settings } from '../../src/service/settings.js';
import { EXIT, Failure } from '../exit.js';
import {
  type Handlers,
  Peer,
  PeerGone,
  SUPERVISOR_PROTOCOL,
  type SupervisorProtocol,
  type Texts,
  WORKER_PROTOCOL,
  type WorkerProtocol,
} from './messages.js';

export type WorkerChannel = Peer<SupervisorProtocol, WorkerProtocol>;

export interface SlotEvents {
  handlers(slot: WorkerSlot, texts: Texts): Omit<Handlers<SupervisorProtocol>, 'here' | 'failed'>;
  texts(): Texts;
  /** A worker ended unexpectedly; its replacement starts in `again` ms. */
  ended(slot: WorkerSlot, why: string, again: number): void;
  gone(slot: WorkerSlot): void;
  steady(slot: WorkerSlot): void;
  replaced(slot: WorkerSlot): void;
}

const STEADY_MS = 60_000;
/**
 * Pause before the second consecutive replacement of a worker, doubled for each further one. The first is immediate.
 */
const PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** Consecutive failures of a slot after which the server counts as not ready. */
const MANY = 4;
const START_MS = 120_000;

export class WorkerSlot {
  readonly number: number;
  readonly #settings: Settings;
  readonly #events: SlotEvents;
  #worker: Worker | null = null;
  #peer: WorkerChannel | null = null;
  #upSince: number | null = null;
  /** True once the worker can receive messages; earlier ones are lost. */
  #hears = false;
  #serves = false;
  /** Number of consecutive workers that ended before they were stable. */
  #failures = 0;
  #well: NodeJS.Timeout | null = null;
  #refusal: Failure | null = null;
  #again: NodeJS.Timeout | null = null;
  #closing = false;

  constructor(number: number, settings: Settings, events: SlotEvents) {
    this.number = number;
    this.#settings = settings;
    this.#events = events;
  }

  /** Channel to the worker if it is serving and up to date; otherwise null. */
  get peer(): WorkerChannel | null {
    return this.#serves ? this.#peer : null;
  }

  /** Channel to the worker, whatever its state. */
  get channel(): WorkerChannel | null {
    return this.#peer;
  }

  admitted(): void {
    this.#serves = true;
  }

  get pid(): number | null {
    return this.#worker?.process.pid ?? null;
  }

  get loops(): boolean {
    return this.#failures >= MANY;
  }

  /** Starts a worker; resolves once it is serving. @throws Failure with the worker's reason if it gave one */
  async begin(): Promise<void> {
    const texts = this.#events.texts();
    const worker = cluster.fork();
    let listens: () => void = () => undefined;
    const here = new Promise<void>((resolve, reject) => {
      listens = resolve;
      worker.once('exit', () => reject(new PeerGone('it ended before it listened')));
      worker.once('error', reject); // the process could not be created
    });
    const handlers: Handlers<SupervisorProtocol> = {
      ...this.#events.handlers(this, texts),
      here: () => {
        this.#hears = true;
        listens();
      },
      failed: ({ exit, message }) => {
        this.#refusal = new Failure(exit, message);
      },
    };
    const peer: WorkerChannel = new Peer(SUPERVISOR_PROTOCOL, handlers, WORKER_PROTOCOL, (message) =>
      post(worker, message),
    );
    this.#worker = worker;
    this.#peer = peer;
    this.#refusal = null;
    this.#hears = false;
    worker.on('message', (message: unknown) => this.#heard(worker, peer, message));
    worker.once('exit', (code, signal) =>
      this.#ended(peer, signal === null ? `status ${code ?? '?'}` : `signal ${signal}`),
    );
    // If a process was created, its `exit` event follows.
    worker.on('error', (error) => {
      if (worker.process.pid === undefined) this.#ended(peer, messageOf(error));
    });
    const late = setTimeout(() => this.kill(), START_MS);
    try {
      await here;
      await peer.ask('start', { number: this.number, settings: this.#settings, texts });
      this.#upSince = performance.now();
      this.#well = setTimeout(() => this.#steady(), STEADY_MS).unref();
    } catch (error) {
      if (this.#refusal !== null || !(error instanceof PeerGone)) throw this.#refusal ?? error;
      throw new Failure(EXIT.failed, `error: worker ${this.number} did not start: ${error.message}`);
    } finally {
      clearTimeout(late);
    }
  }

  async stop(deadlineMs: number): Promise<void> {
    this.#closing = true;
    if (this.#again !== null) clearTimeout(this.#again);
    const worker = this.#worker;
    const peer = this.#peer;
    if (worker === null || peer === null) return;
    const gone = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    if (this.#hears) await peer.ask('stop', { deadlineMs }).catch(() => this.kill());
    else this.kill();
    await gone;
  }

  kill(): void {
    this.#worker?.process.kill('SIGKILL');
  }

  /** Handles a message of the worker. A worker that sends an invalid message is killed. */
  #heard(worker: Worker, peer: WorkerChannel, message: unknown): void {
    try {
      peer.heard(message);
    } catch (error) {
      peer.end(messageOf(error));
      worker.process.kill('SIGKILL');
    }
  }

  #ended(peer: WorkerChannel | null, how: string): void {
    const why = this.#refusal?.message ?? how;
    const first = this.#upSince === null && this.#failures === 0;
    if (this.#well !== null) clearTimeout(this.#well);
    this.#worker = null;
    this.#peer = null;
    this.#upSince = null;
    this.#serves = false;
    peer?.end(`the worker ended: ${why}`);
    this.#events.gone(this);
    // A failing first start is reported by `begin`.
    if (this.#closing || first) return;
    this.#failures += 1;
    const doubled = PAUSE_MS * 2 ** (this.#failures - 2);
    const pause = this.#failures === 1 ? 0 : Math.min(doubled, LONGEST_PAUSE_MS);
    this.#events.ended(this, why, pause);
    this.#again = setTimeout(() => {
      this.#again = null;
      this.#replace();
    }, pause);
  }

  #steady(): void {
    this.#failures = 0;
    this.#events.steady(this);
  }

  #replace(): void {
    this.begin().then(
      () => this.#events.replaced(this),
      (error: unknown) => {
        // If a process ended, its `exit` event triggers the next attempt; if none could be created, there is no such
        // event.
        if (error instanceof PeerGone || error instanceof Failure) return;
        if (this.#worker === null && this.#again === null) this.#ended(null, messageOf(error));
        else this.kill();
      },
    );
  }
}

function post(worker: Worker, message: object): void {
  if (worker.isConnected()) worker.send(message, undefined, () => undefined);
}
