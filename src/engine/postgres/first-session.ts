import { setTimeout as sleep } from 'node:timers/promises';
import { StartProblem } from '../../base/start-problem.js';
import type { ServingOptions } from '../engine.js';
import type { ConnectionStatus } from '../reach.js';
import type { RoleReport } from './role.js';

/** Between two tries to have it, at least. ms */
const AGAIN_MS = 500;
/** A start waits for a server that says nothing for so long; then the server is waited for beside it. ms */
const START_MS = 3_000;

/**
 * The first session with a server, in which its role is looked at. INVARIANT: nothing runs there before it was had and
 * admitted, at the start or when a server that was away comes back.
 */
export class FirstSession {
  readonly whenReached: Promise<void>;
  readonly #look: () => Promise<RoleReport>;
  readonly #reach: ConnectionStatus;
  #report: RoleReport | null = null;
  #reached: () => void = () => undefined;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  /** @param look connects, and gives what was found */
  constructor(look: () => Promise<RoleReport>, reach: ConnectionStatus) {
    this.#look = look;
    this.#reach = reach;
    this.whenReached = new Promise((resolve) => {
      this.#reached = resolve;
    });
  }

  /** What it found; null until then. */
  get report(): RoleReport | null {
    return this.#report;
  }

  /** Tries once, and for who serves again and again. @throws StartProblem, and what `look` rejects with where nobody serves */
  async begin(serving: ServingOptions | null): Promise<void> {
    let starts = true;
    const had = this.#try(serving).catch((error: unknown) => {
      if (serving === null || (starts && error instanceof StartProblem)) throw error;
      this.#later(serving);
    });
    if (serving === null) return had;
    await Promise.race([had, sleep(START_MS, undefined, { ref: false })]);
    starts = false;
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #try(serving: ServingOptions | null): Promise<void> {
    const report = serving === null ? await this.#look() : await this.#reach.attempt(this.#look);
    await serving?.admit();
    this.#report = report;
    this.#reached();
  }

  #later(serving: ServingOptions): void {
    if (this.#closed) return;
    const again = (): void => void this.#try(serving).catch(() => this.#later(serving));
    this.#timer = setTimeout(again, Math.max(AGAIN_MS, this.#reach.restMs)).unref();
  }
}
