import type { OfSupervisor } from './messages.js';
import type { Handlers } from './peer.js';

type Asked = 'session' | 'sessionEnded';

/** How many sessions of the wire each subject has open, in all workers together. */
export class SharedSessions {
  readonly #most: number;
  /** By subject, how many in which worker. */
  readonly #open = new Map<string, Map<number, number>>();

  constructor(most: number) {
    this.#most = most;
  }

  handlers(worker: number): Pick<Handlers<OfSupervisor>, Asked> {
    return {
      session: ({ subject }) => {
        const counts = this.#open.get(subject) ?? new Map<number, number>();
        if ([...counts.values()].reduce((sum, n) => sum + n, 0) >= this.#most) return false;
        counts.set(worker, (counts.get(worker) ?? 0) + 1);
        this.#open.set(subject, counts);
        return true;
      },
      sessionEnded: ({ subject }) => {
        const counts = this.#open.get(subject);
        const left = (counts?.get(worker) ?? 0) - 1;
        if (left > 0) counts?.set(worker, left);
        else this.#forgetIn(subject, worker);
        return null;
      },
    };
  }

  /** A worker has ended, and its connections with it. */
  forget(worker: number): void {
    for (const subject of [...this.#open.keys()]) this.#forgetIn(subject, worker);
  }

  #forgetIn(subject: string, worker: number): void {
    const counts = this.#open.get(subject);
    counts?.delete(worker);
    if (counts?.size === 0) this.#open.delete(subject);
  }
}
