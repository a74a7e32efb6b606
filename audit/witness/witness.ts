/** Somebody else who keeps checkpoints: what the owner of the log's disk and key cannot take back. */
export interface Witness {
  /** What messages call it: no secret is in it. */
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

/** What a note is of; null for a text that is none. */
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
