import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';

const LONGEST_KEY = 32;
const NOBODY = randomBytes(LONGEST_KEY);

export interface CancelKey {
  /** Random too, so that even a 4-byte key of protocol 3.0 is one of 2⁶³. */
  readonly processId: number;
  readonly key: Buffer;
}

/** Which session a CancelRequest means. A wrong guess takes as long as a right one and tells nothing. */
export class CancelKeys {
  readonly #targets = new Map<number, { key: Buffer; padded: Buffer; cancel: () => void }>();

  /** `length` in bytes: 4 for protocol 3.0, 32 for 3.2. */
  issue(length: 4 | 32, cancel: () => void): CancelKey {
    let processId: number;
    do processId = randomInt(1, 2 ** 31);
    while (this.#targets.has(processId));
    const key = randomBytes(length);
    this.#targets.set(processId, { key, padded: pad(key), cancel });
    return { processId, key };
  }

  revoke(processId: number): void {
    this.#targets.delete(processId);
  }

  /** False if the key is not that session's. */
  cancel(processId: number, key: Buffer): boolean {
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
