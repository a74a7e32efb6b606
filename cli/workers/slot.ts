import cluster, { type Worker } from 'node:cluster';
import { messageOf } from '../../src/base/thrown.js';
import type { Settings } from '../../src/service/settings.js';
import { Failure } from '../exit.js';
import { OF_SUPERVISOR, OF_WORKER, type OfSupervisor, type OfWorker, type Texts } from './messages.js';
import { type Handlers, Peer, PeerGone } from './peer.js';

/** What the supervisor calls the channel to a worker. */
export type WorkerChannel = Peer<OfSupervisor, OfWorker>;

/** What becomes of a worker, told to the supervisor. */
export interface SlotEvents {
  /** What a worker of this slot may ask. */
  handlers(slot: WorkerSlot, texts: Texts): Omit<Handlers<OfSupervisor>, 'here' | 'failed'>;
  /** What one that begins now is to serve. */
  texts(): Texts;
  /** It has ended, `again` ms before the next one begins. */
  ended(slot: WorkerSlot, why: string, again: number): void;
  /** Its worker has ended, for whatever reason. */
  gone(slot: WorkerSlot): void;
  /** It has served for so long that it counts as well. */
  steady(slot: WorkerSlot): void;
  /** One that took another's place serves. */
  replaced(slot: WorkerSlot): void;
}

/** A worker that has served for so long was well. */
const STEADY_MS = 60_000;
/** Before the second attempt in a row; it doubles with each. The first is made at once. */
const PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** Workers of one slot that end in a row before the server counts as not ready. */
const MANY = 4;
/** For a worker to open its service and to listen. */
const START_MS = 120_000;

/** The place of one worker: whoever is in it now, and who comes after it. */
export class WorkerSlot {
  readonly number: number;
  readonly #settings: Settings;
  readonly #events: SlotEvents;
  #worker: Worker | null = null;
  #peer: WorkerChannel | null = null;
  #upSince: number | null = null;
  #serves = false;
  /** Workers that ended in a row, none of which had served for long. */
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

  /** The channel to the worker that serves what all serve; null while none does. */
  get peer(): WorkerChannel | null {
    return this.#serves ? this.#peer : null;
  }

  /** The channel to whatever worker is there. */
  get channel(): WorkerChannel | null {
    return this.#peer;
  }

  /** It has taken up what the others serve. */
  admitted(): void {
    this.#serves = true;
  }

  get pid(): number | null {
    return this.#worker?.process.pid ?? null;
  }

  /** Its workers end one after another. */
  get loops(): boolean {
    return this.#failures >= MANY;
  }

  /** Begins a worker, and resolves once it serves. @throws Failure where it says why it cannot, PeerGone */
  async begin(): Promise<void> {
    const texts = this.#events.texts();
    const worker = cluster.fork();
    let listens: () => void = () => undefined;
    const here = new Promise<void>((resolve, reject) => {
      listens = resolve;
      worker.once('exit', () => reject(new PeerGone('it ended before it listened')));
      worker.once('error', reject); // the system gives no process
    });
    const handlers: Handlers<OfSupervisor> = {
      ...this.#events.handlers(this, texts),
      here: () => {
        listens();
        return null;
      },
      failed: ({ exit, message }) => {
        this.#refusal = new Failure(exit, message);
        return null;
      },
    };
    const peer: WorkerChannel = new Peer(OF_SUPERVISOR, handlers, OF_WORKER, (message) =>
      post(worker, message),
    );
    this.#worker = worker;
    this.#peer = peer;
    this.#refusal = null;
    worker.on('message', (message: unknown) => this.#heard(worker, peer, message));
    worker.once('exit', (code, signal) =>
      this.#ended(peer, signal === null ? `status ${code ?? '?'}` : `signal ${signal}`),
    );
    // Of one that was begun its exit follows.
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
      throw this.#refusal ?? error;
    } finally {
      clearTimeout(late);
    }
  }

  /** Lets it end what runs; resolves when its process is gone. */
  async stop(deadlineMs: number): Promise<void> {
    this.#closing = true;
    if (this.#again !== null) clearTimeout(this.#again);
    const worker = this.#worker;
    const peer = this.#peer;
    if (worker === null || peer === null) return;
    const gone = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    await peer.ask('stop', { deadlineMs }).catch(() => this.kill());
    await gone;
  }

  /** Ends it at once. */
  kill(): void {
    this.#worker?.process.kill('SIGKILL');
  }

  /** What is no message comes from a process that is not well. */
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
    // Whoever began the first one hears of it by itself.
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
        // That it has ended is told by its end; of one that could not even be begun nothing else is.
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
