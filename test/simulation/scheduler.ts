import { setImmediate as realTurn } from 'node:timers/promises';
import { Random } from './random.js';

/** A process of the simulated world, or the world itself. What belongs to a dead one no longer happens. */
export interface Party {
  readonly name: string;
  readonly alive: boolean;
}

interface Happening {
  /** Virtual time in µs before which it does not happen. */
  readonly at: number;
  readonly label: string;
  /** A promise is awaited before anything else happens. */
  readonly run: () => unknown;
}

/**
 * Things that happen one after another: timers of a process, or what one end of a connection sends. The order between
 * channels is up to the scheduler.
 */
export class Channel {
  readonly party: Party;
  readonly #scheduler: Scheduler;
  readonly #waiting: Happening[] = [];
  /** True while nothing of it may happen, as when the receiver of a connection does not read. */
  isBlocked = false;

  constructor(scheduler: Scheduler, party: Party) {
    this.#scheduler = scheduler;
    this.party = party;
  }

  get first(): Happening | null {
    return this.#waiting[0] ?? null;
  }

  /** Appends a happening, no earlier than the one before it. */
  add(delay: number, label: string, run: Happening['run']): void {
    const at = Math.max(this.#scheduler.now + delay, this.#waiting.at(-1)?.at ?? 0);
    this.#waiting.push({ at, label, run });
    this.#scheduler.activate(this);
  }

  /** Inserts a happening by its time, after others of the same time. */
  insert(at: number, label: string, run: Happening['run']): Happening {
    const happening = { at, label, run };
    let i = this.#waiting.length;
    for (
      let before = this.#waiting[i - 1];
      before !== undefined && before.at > at;
      before = this.#waiting[i - 1]
    )
      i -= 1;
    this.#waiting.splice(i, 0, happening);
    this.#scheduler.activate(this);
    return happening;
  }

  remove(happening: Happening): void {
    const i = this.#waiting.indexOf(happening);
    if (i >= 0) this.#waiting.splice(i, 1);
  }

  take(): Happening | null {
    return this.#waiting.shift() ?? null;
  }

  clear(): void {
    this.#waiting.length = 0;
  }
}

/** Largest virtual time that one step takes, in µs. */
const STEP_US = 40;

/**
 * Decides what happens next, and when: virtual time advances only here. All that happens follows from the seed, so a
 * run with the same seed is the same run.
 */
export class Scheduler {
  readonly random: Random;
  /** Virtual time in µs since the start. */
  now = 0;
  steps = 0;
  /** Digest of all labels so far, by which runs are compared. */
  digest = 0;
  /** Receives a line for each step; null: nobody wants them. */
  trace: ((line: string) => void) | null = null;
  #active: Channel[] = [];
  readonly #activated = new Set<Channel>();

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  channel(party: Party): Channel {
    return new Channel(this, party);
  }

  activate(channel: Channel): void {
    if (this.#activated.has(channel)) return;
    this.#activated.add(channel);
    this.#active.push(channel);
  }

  /** Runs something once, apart from everything else. */
  after(party: Party, delay: number, label: string, run: Happening['run']): void {
    this.channel(party).add(delay, label, run);
  }

  /** Waits in virtual time. */
  pause(party: Party, delay: number, label: string): Promise<void> {
    return new Promise((resolve) => this.after(party, delay, label, resolve));
  }

  /**
   * Waits for something that happens outside of the simulation, such as a signature that a thread of Node computes. When
   * it is seen depends on the seed alone.
   */
  outside<T>(party: Party, work: Promise<T>, label: string): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settled = work.then(
        (value) => () => resolve(value),
        (error: unknown) => () => reject(error),
      );
      this.after(party, this.random.between(20, 300), label, async () => (await settled)());
    });
  }

  /** Lets the next thing happen; false if there is nothing left. */
  async step(): Promise<boolean> {
    const channel = this.#choose();
    const happening = channel?.take() ?? null;
    if (channel === null || happening === null) return false;
    this.now += this.random.below(STEP_US);
    this.steps += 1;
    this.#note(channel, happening);
    await happening.run();
    // Whatever follows from it in the same turn of the event loop happens now.
    await realTurn();
    return true;
  }

  #choose(): Channel | null {
    let earliest = Number.POSITIVE_INFINITY;
    const ready: Channel[] = [];
    const left: Channel[] = [];
    for (const channel of this.#active) {
      const { first } = channel;
      if (first === null || !channel.party.alive) {
        if (!channel.party.alive) channel.clear();
        this.#activated.delete(channel);
        continue;
      }
      left.push(channel);
      if (channel.isBlocked) continue;
      if (first.at <= this.now) ready.push(channel);
      else earliest = Math.min(earliest, first.at);
    }
    this.#active = left;
    const chosen = ready[this.random.below(ready.length)];
    if (chosen !== undefined) return chosen;
    if (earliest === Number.POSITIVE_INFINITY) return null;
    this.now = earliest;
    return this.#choose();
  }

  #note(channel: Channel, { label }: Happening): void {
    for (let i = 0; i < label.length; i++)
      this.digest = (Math.imul(this.digest, 31) + label.charCodeAt(i)) | 0;
    this.digest = (Math.imul(this.digest, 31) + (this.now | 0)) | 0;
    this.trace?.(`${(this.now / 1000).toFixed(3)} ${channel.party.name}: ${label}`);
  }
}
