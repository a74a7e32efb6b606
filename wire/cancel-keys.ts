import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';

const MAX_KEY_BYTES = 32;
const UNKNOWN_KEY = randomBytes(MAX_KEY_BYTES);

export interface CancelKey {
  /**
   * Random except for the server number: an attacker must guess 31 bits, or 24 with a `CancelDirectory`, in addition to
   * the key, which has only 32 bits in protocol 3.0.
   */
  readonly processId: number;
  readonly key: Buffer;
}

/** Routes cancel requests between servers that share a port. */
export interface CancelDirectory {
  /** The number of this server, 1 to 64, encoded in the process ids of its sessions. */
  readonly server: number;
  /**
   * Forwards a request to the server with number `server`. Returns false if the key is wrong or the server does not
   * exist.
   */
  cancel(server: number, processId: number, key: Buffer): Promise<boolean>;
}

/** Number of random bits in a process id whose upper seven bits contain the server number. */
const RANDOM_BITS = 24;

/** Issues and checks the cancel keys of sessions. Keys are compared in constant time. */
export class CancelKeys {
  readonly #directory: CancelDirectory | null;
  readonly #targets = new Map<number, { key: Buffer; padded: Buffer; cancel: () => void }>();

  constructor(directory: CancelDirectory | null = null) {
    this.#directory = directory;
  }

  /** @param length the key length in bytes: 4 for protocol 3.0, 32 for 3.2 */
  issue(length: 4 | 32, cancel: () => void): CancelKey {
    let processId: number;
    do processId = this.#randomProcessId();
    while (this.#targets.has(processId));
    const key = randomBytes(length);
    this.#targets.set(processId, { key, padded: pad(key), cancel });
    return { processId, key };
  }

  revoke(processId: number): void {
    this.#targets.delete(processId);
  }

  /** Cancels a session of any server. Returns false if the key is wrong. */
  cancel(processId: number, key: Buffer): boolean | Promise<boolean> {
    const directory = this.#directory;
    const server = processId >> RANDOM_BITS;
    if (directory === null || server === directory.server) return this.cancelOwn(processId, key);
    return directory.cancel(server, processId, key);
  }

  #randomProcessId(): number {
    if (this.#directory === null) return randomInt(1, 2 ** 31);
    return this.#directory.server * 2 ** RANDOM_BITS + randomInt(2 ** RANDOM_BITS);
  }

  cancelOwn(processId: number, key: Buffer): boolean {
    const target = this.#targets.get(processId);
    const isEqual = timingSafeEqual(pad(key), target?.padded ?? UNKNOWN_KEY);
    if (!isEqual || target === undefined || key.length !== target.key.length) return false;
    target.cancel();
    return true;
  }
}

function pad(key: Buffer): Buffer {
  const padded = Buffer.alloc(MAX_KEY_BYTES);
  key.copy(padded, 0, 0, MAX_KEY_BYTES);
  return padded;
}
