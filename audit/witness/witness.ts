import type { ServiceLog } from '../../src/base/log.js';

/** Somebody else who keeps checkpoints: what the owner of the log's disk and key cannot take back. */
export interface Witness {
  /** Name used in messages; contains no secret. */
  readonly name: string;
  /** Keeps a checkpoint of a log; one that is there already stays as it is. */
  keep(checkpoint: WitnessedSize): Promise<void>;
  /** All that it keeps; null where it cannot be asked. */
  kept(): Promise<readonly string[]> | null;
  close(): Promise<void>;
}

export interface WitnessedSize {
  /** Id of the log's writer. */
  readonly writer: string;
  readonly size: number;
  /** The signed note, without its empty line. */
  readonly note: string;
}

/** Log and size that a note is about; null if the text is not a note. */
export function witnessed(note: string): WitnessedSize | null {
  const [, writer = '', size] = /^osl-audit\/([\w.-]{1,64})\n(0|[1-9]\d{0,15})\n/.exec(note) ?? [];
  return size === undefined ? null : { writer, size: Number(size), note };
}

/** Name of a note where names sort by size. */
export function nameOf({ writer, size }: WitnessedSize): string {
  return `${writer}/${String(size).padStart(16, '0')}.note`;
}

/** For an answer of a witness, ms. */
export const WITNESS_MS = 10_000;

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
