import { countedBy, type SessionCaps } from '../../../surfaces/pg/index.js';
import type { OfSupervisor } from './messages.js';
import type { Handlers } from './peer.js';

type Asked = 'session' | 'sessionEnded';

/** How many sessions of the wire each subject, and each address, has open, in all workers together. */
export class SharedSessions {
  readonly #caps: SessionCaps;
  /** By what is counted, how many in which worker. */
  readonly #open = new Map<string, Map<number, number>>();

  constructor(caps: SessionCaps) {
    this.#caps = caps;
  }

  handlers(worker: number): Pick<Handlers<OfSupervisor>, Asked> {
    return {
      session: ({ subject, address }) => {
        const counted = countedBy(subject, address, this.#caps);
        if (counted.some(({ key, most }) => this.#count(key) >= most)) return false;
        for (const { key } of counted) this.#begin(key, worker);
        return true;
      },
      sessionEnded: ({ subject, address }) => {
        for (const { key } of countedBy(subject, address, this.#caps)) this.#end(key, worker);
        return null;
      },
    };
  }

  /** A worker has ended, and its connections with it. */
  forget(worker: number): void {
    for (const key of [...this.#open.keys()]) this.#forgetIn(key, worker);
  }

  #count(key: string): number {
    return [...(this.#open.get(key)?.values() ?? [])].reduce((sum, n) => sum + n, 0);
  }

  #begin(key: string, worker: number): void {
    const counts = this.#open.get(key) ?? new Map<number, number>();
    counts.set(worker, (counts.get(worker) ?? 0) + 1);
    this.#open.set(key, counts);
  }

  #end(key: string, worker: number): void {
    const counts = this.#open.get(key);
    const left = (counts?.get(worker) ?? 0) - 1;
    if (left > 0) counts?.set(worker, left);
    else this.#forgetIn(key, worker);
  }

  #forgetIn(key: string, worker: number): void {
    const counts = this.#open.get(key);
    counts?.delete(worker);
    if (counts?.size === 0) this.#open.delete(key);
  }
}
