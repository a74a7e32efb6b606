import { queryError } from 'osl-compiler';
import type { StatementReads } from './statement.js';
import { objectsText } from './upstream-error.js';

/** Relations of the model whose table, or a column of it, is known to be gone from the database. */
export class OutOfService {
  #relations: ReadonlySet<string> = new Set();

  get relations(): ReadonlySet<string> {
    return this.#relations;
  }

  /** Takes the place of what was out of service: from now on these are, and no others. */
  replace(relations: ReadonlySet<string>): void {
    this.#relations = relations;
  }

  /** @throws QueryError `sourceGone` for a statement that reads one of them */
  check({ objects, relations }: StatementReads): void {
    if (this.#relations.size === 0) return;
    if (relations.some((name) => this.#relations.has(name)))
      throw queryError('sourceGone', { objects: objectsText(objects) });
  }
}

/** How many entities and bridges no question reaches, as what they rest on is gone from the database. */
export function objectsOutOfService(
  engines: ReadonlyMap<string, { readonly outOfService: OutOfService }>,
): number {
  return [...engines.values()].reduce((sum, engine) => sum + engine.outOfService.relations.size, 0);
}
