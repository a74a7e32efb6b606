/** How often it is looked who has taken too long, ms: so much longer a question may take than it is allowed. */
const EVERY_MS = 100;

/** What may take no longer than it is allowed. */
export interface Limited {
  stopIfLate(now: number): void;
}

/** One clock for all questions that are under way, in the place of a timer for each. */
export class Sweep {
  readonly #open = new Set<Limited>();
  #timer: NodeJS.Timeout | null = null;

  add(one: Limited): void {
    this.#open.add(one);
    this.#timer ??= setInterval(() => this.#look(), EVERY_MS).unref();
  }

  delete(one: Limited): void {
    this.#open.delete(one);
  }

  #look(): void {
    if (this.#open.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
    const now = performance.now();
    for (const one of [...this.#open]) one.stopIfLate(now);
  }
}
