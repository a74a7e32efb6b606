import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';

const LONGEST_KEY = 32;
const NOBODY = randomBytes(LONGEST_KEY);

export interface CancelKey {
  /** Random too, so that even a 4-byte key of protocol 3.0 is one of 2⁶³. */
  readonly processId: number;
  readonly key: Buffer;
}

/** Owner of a cancel key, if several servers share a port. */
export interface CancelDirectory {
  /** Of this server, from 1 to 64. It stands in the process ids of its sessions. */
  readonly server: number;
  /** Passes a request on to the server of that number. False if the key is not its session's, or nobody is there. */
  cancel(server: number, processId: number, key: Buffer): Promise<boolean>;
}

/** Bits of a process id that are random where it names its server: seven are left for that. */
const RANDOM_BITS = 24;

/** Session that a CancelRequest addresses. A wrong guess takes as long as a right one and reveals nothing. */
export class CancelKeys {
  readonly #directory: CancelDirectory | null;
  readonly #targets = new Map<number, { key: Buffer; padded: Buffer; cancel: () => void }>();

  constructor(directory: CancelDirectory | null = null) {
    this.#directory = directory;
  }

  /** `length` in bytes: 4 for protocol 3.0, 32 for 3.2. */
  issue(length: 4 | 32, cancel: () => void): CancelKey {
    let processId: number;
    do processId = this.#number();
    while (this.#targets.has(processId));
    const key = randomBytes(length);
    this.#targets.set(processId, { key, padded: pad(key), cancel });
    return { processId, key };
  }

  revoke(processId: number): void {
    this.#targets.delete(processId);
  }

  /** Of whatever server the session is. False if the key is not that session's. */
  cancel(processId: number, key: Buffer): boolean | Promise<boolean> {
    const directory = this.#directory;
    const server = processId >> RANDOM_BITS;
    if (directory === null || server === directory.server) return this.cancelOwn(processId, key);
    return directory.cancel(server, processId, key);
  }

  #number(): number {
    if (this.#directory === null) return randomInt(1, 2 ** 31);
    return this.#directory.server * 2 ** RANDOM_BITS + randomInt(2 ** RANDOM_BITS);
  }

  /** Of this server's own. */
  cancelOwn(processId: number, key: Buffer): boolean {
    const target = this.#targets.get(processId);
    const same = timingSafeEqual(pad(key), target?.padded ?? NOBODY);
    if (!same || target === undefined || key.length !== target.key.length) return false;
    target.cancel();
    return true;
  }
}

function pad(key: Buffer): Buffer {
  const padded = Buffer.alloc(LONGEST_KEY);
  key.copy(padded, 0, 0, LONGEST_KEY);
  return padded;
}
