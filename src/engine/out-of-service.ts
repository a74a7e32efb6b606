import { queryError } from 'osl-compiler';
import type { StatementReads } from './statement.js';
import { objectsText } from './upstream-error.js';

/** `gone`: the table or a column no longer exists; `changed`: it has another type. */
export type OutOfServiceCause = 'gone' | 'changed';

/** Relations of the model whose table or column is missing or changed in the database. */
export class OutOfService {
  #relations: ReadonlyMap<string, OutOfServiceCause> = new Map();

  get relations(): ReadonlyMap<string, OutOfServiceCause> {
    return this.#relations;
  }

  /** Replaces the whole set. */
  replace(relations: ReadonlyMap<string, OutOfServiceCause>): void {
    this.#relations = relations;
  }

  /** @throws QueryError `sourceGone`, `sourceChanged` if the statement reads one of them */
  check({ objects, relations }: StatementReads): void {
    if (this.#relations.size === 0) return;
    const causes = relations.map((name) => this.#relations.get(name));
    if (causes.includes('gone')) throw queryError('sourceGone', { objects: objectsText(objects) });
    if (causes.includes('changed')) throw queryError('sourceChanged', { objects: objectsText(objects) });
  }
}

/** Number of entities and bridges that cannot be queried because their tables or columns changed. */
export function objectsOutOfService(
  engines: ReadonlyMap<string, { readonly outOfService: ReadonlyMap<string, OutOfServiceCause> }>,
): number {
  return [...engines.values()].reduce((sum, engine) => sum + engine.outOfService.size, 0);
}
