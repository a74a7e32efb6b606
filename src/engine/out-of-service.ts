import { type GovernedPlan, InternalError, queryError, sourceProbes } from 'osl-compiler';
import type { Runner } from './runner.js';
import type { ExecuteOptions, StatementReads } from './statement.js';
import { objectsText, StatementFault } from './upstream-error.js';

/** `gone`: the table or a column no longer exists; `changed`: a column has another type. */
export type OutOfServiceCause = 'gone' | 'changed';

/** Relations of the model whose table or columns are missing or changed in the database. */
export class OutOfService {
  #relations: ReadonlyMap<string, OutOfServiceCause> = new Map();

  get relations(): ReadonlyMap<string, OutOfServiceCause> {
    return this.#relations;
  }

  /** Replaces the set of relations that are out of service. */
  replace(relations: ReadonlyMap<string, OutOfServiceCause>): void {
    this.#relations = relations;
  }

  /** @throws QueryError `sourceGone`, `sourceChanged` if the statement reads a relation that is out of service */
  check({ objects, relations }: StatementReads): void {
    if (this.#relations.size === 0) return;
    const causes = relations.map((name) => this.#relations.get(name));
    if (causes.includes('gone')) throw queryError('sourceGone', { objects: objectsText(objects) });
    if (causes.includes('changed')) throw queryError('sourceChanged', { objects: objectsText(objects) });
  }
}

/** Number of entities and bridges in all databases whose queries are refused: tables or columns are gone or changed. */
export function objectsOutOfService(
  engines: ReadonlyMap<string, { readonly outOfService: ReadonlyMap<string, OutOfServiceCause> }>,
): number {
  return [...engines.values()].reduce((sum, engine) => sum + engine.outOfService.size, 0);
}

const PROBE_MS = 5_000;
const DROP_ROWS = { write: () => undefined };

/**
 * Rethrows the `error` from a run of `plan`. If the database could not interpret the statement, the tables are checked
 * first: if one differs from the manifest, the operator must fix that; otherwise the generated SQL is wrong, which is
 * never reported as the database's fault.
 *
 * @throws QueryError `sourceGone`, `sourceChanged`; InternalError if the generated SQL is wrong
 */
export async function throwCause(
  error: unknown,
  runner: Runner,
  { query }: GovernedPlan,
  reads: StatementReads,
  { subject, signal }: Pick<ExecuteOptions, 'subject' | 'signal'>,
): Promise<never> {
  if (!(error instanceof StatementFault)) throw error;
  const options = { subject, signal, resultFormats: [], maxRows: 0, maxBytes: 0, timeoutMs: PROBE_MS };
  for (const { sql, columnOids } of sourceProbes(query)) {
    const probe = { sql, columnOids, reads, output: 'rows', planMode: 'auto', parameterOids: [] } as const;
    await runner.runStatement(probe, [], options, DROP_ROWS);
  }
  if (error.inText === null) throw error;
  throw new InternalError(`the database does not understand a statement of ours: ${error.inText}`);
}
