import type { ServiceLog } from '../../src/base/log.js';
import { type Witness, witnessed } from './witness.js';

/**
 * Hands the newest checkpoint to each witness, at intervals and at the end. A witness that does not take it delays
 * nobody's answer: the operator hears it once, and the next checkpoint covers all that it missed.
 */
export class Witnesses {
  readonly #witnesses: readonly Witness[];
  readonly #log: ServiceLog;
  readonly #timer: NodeJS.Timeout;
  readonly #silent = new Set<Witness>();
  readonly #given = new Map<Witness, string>();
  #newest: string | null = null;
  #giving: Promise<void> = Promise.resolve();

  constructor(witnesses: readonly Witness[], intervalMs: number, log: ServiceLog) {
    this.#witnesses = witnesses;
    this.#log = log;
    this.#timer = setInterval(() => this.#give(), intervalMs).unref();
  }

  /** A checkpoint is durable in the log. */
  signed(note: string): void {
    const first = this.#newest === null;
    this.#newest = note;
    if (first) this.#give();
  }

  /** Hands out the last one. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#give();
    await this.#giving;
    await Promise.all(this.#witnesses.map((witness) => witness.close()));
  }

  #give(): void {
    const note = this.#newest;
    if (note === null) return;
    this.#giving = this.#giving.then(async () => {
      await Promise.all(this.#witnesses.map((witness) => this.#giveTo(witness, note)));
    });
  }

  async #giveTo(witness: Witness, note: string): Promise<void> {
    const checkpoint = witnessed(note);
    if (checkpoint === null || this.#given.get(witness) === note) return;
    try {
      await witness.keep(checkpoint);
      this.#given.set(witness, note);
      if (this.#silent.delete(witness))
        this.#log.warn('the witness takes checkpoints again', { witness: witness.name });
    } catch (error) {
      if (this.#silent.has(witness)) return;
      this.#silent.add(witness);
      const cause = error instanceof Error ? error.message : String(error);
      this.#log.error('a witness does not take checkpoints of the audit log', {
        witness: witness.name,
        cause,
      });
    }
  }
}
