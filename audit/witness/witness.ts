import type { ServiceLog } from '../../src/base/log.js';

/** Stores checkpoints out of reach of anyone who controls the log's disk and key. */
export interface Witness {
  /** Name used in messages; contains no secret. */
  readonly name: string;
  /** Stores a checkpoint; an existing one stays unchanged. */
  keep(checkpoint: WitnessedCheckpoint): Promise<void>;
  /** All stored notes; null if the witness cannot be queried. */
  kept(): Promise<readonly string[]> | null;
  close(): Promise<void>;
}

export interface WitnessedCheckpoint {
  readonly writer: string;
  readonly size: number;
  /** Signed note without the trailing empty line. */
  readonly note: string;
}

/** Parses a checkpoint note without verifying it; null if the text is not a checkpoint of an audit log. */
export function parseCheckpointNote(note: string): WitnessedCheckpoint | null {
  const [, writer = '', size] = /^osl-audit\/([\w.-]{1,64})\n(0|[1-9]\d{0,15})\n/.exec(note) ?? [];
  return size === undefined ? null : { writer, size: Number(size), note };
}

/** Relative path of a note. File names sort by tree size. */
export function nameOf({ writer, size }: WitnessedCheckpoint): string {
  return `${writer}/${String(size).padStart(16, '0')}.note`;
}

/** Timeout for a witness, ms. */
export const WITNESS_MS = 10_000;

/**
 * Sends the newest checkpoint to each witness at intervals and on close. A failing witness delays no request: the
 * failure is logged once, and the next checkpoint covers all missed ones.
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

  /** Called after each checkpoint has become durable. The first one is sent at once. */
  signed(note: string): void {
    const first = this.#newest === null;
    this.#newest = note;
    if (first) this.#give();
  }

  /** Sends the last checkpoint, then closes the witnesses. */
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
    const checkpoint = parseCheckpointNote(note);
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
