import { queryError } from 'osl-compiler';
import type { GovernedEngine, IsolationLevel, TransactionSnapshot } from '../../engine/index.js';

/** The snapshots of one transaction of a caller: one of each connector that it asks. */
export class Snapshots {
  readonly #level: IsolationLevel;
  readonly #subject: string;
  readonly #byEngine = new Map<GovernedEngine, TransactionSnapshot>();

  constructor(level: IsolationLevel, subject: string) {
    this.#level = level;
    this.#subject = subject;
  }

  /** @throws QueryError E0511 where the engine keeps none */
  of(engine: GovernedEngine): TransactionSnapshot {
    const known = this.#byEngine.get(engine);
    if (known !== undefined) return known;
    const begun = engine.snapshot(this.#level, this.#subject);
    if (begun === null)
      throw queryError('unresolvable', {
        detail: 'the embedded engine keeps no snapshot for the statements of a transaction',
        hint: 'ask in READ COMMITTED',
      });
    this.#byEngine.set(engine, begun);
    return begun;
  }

  end(): void {
    for (const snapshot of this.#byEngine.values()) snapshot.end();
    this.#byEngine.clear();
  }
}
