import { emit, GovernedPlan, InternalError, isKeyLookup, oidOf, queryError, type Slot } from 'osl-compiler';
import { type OutOfService, throwCause } from './out-of-service.js';
import type { Runner } from './runner.js';
import { type ShortStatement, shortStatement } from './short.js';
import type { StandbyReads } from './standby-reads.js';
import {
  type BoundValue,
  type ExecuteOptions,
  type ExecuteResult,
  type IsolationLevel,
  type RowSink,
  readsOf,
  type StatementReads,
  sourceOf,
  type TransactionSnapshot,
  type UpstreamStatement,
} from './statement.js';
import type { EngineStatus } from './status.js';
import { connectionLost } from './upstream-error.js';

interface GovernedParts {
  readonly status: EngineStatus;
  readonly runner: Runner;
  readonly outOfService: OutOfService;
  readonly snapshot: (
    level: IsolationLevel,
    subject: string | null,
    standby: StandbyReads | null,
  ) => TransactionSnapshot | null;
  /** Returns the name of a syntax form in `sql` that the server lacks; null if it supports them all. */
  readonly missingForm: (sql: string) => string | null;
}

/**
 * Runs only a `GovernedPlan`, and refuses every plan until the database is reached (`databaseDown`). Its sessions are
 * in private fields.
 */
export class GovernedEngine {
  readonly #parts: GovernedParts;
  /** Name of the syntax form that the server lacks, for each statement; null if it supports them all. */
  readonly #missingForms = new WeakMap<GovernedStatement, string | null>();

  constructor(parts: GovernedParts) {
    this.#parts = parts;
    Object.freeze(this);
  }

  get status(): EngineStatus {
    return this.#parts.status;
  }

  /** True if standbys of the database may answer queries. */
  get hasStandbys(): boolean {
    return this.#parts.runner.servers.hasStandbys;
  }

  /**
   * Opens a snapshot for one subject's statements, or returns null if the engine does not support snapshots. The
   * caller must end it. No session is used before the first statement, which fails with `overloaded` if too many
   * snapshots are open.
   *
   * @param standby permits a standby to answer all of them; null if only the primary may
   */
  snapshot(
    level: IsolationLevel,
    subject: string | null,
    standby: StandbyReads | null,
  ): TransactionSnapshot | null {
    return this.#parts.snapshot(level, subject, standby);
  }

  /**
   * Runs `plan` read-only, with `values` for its slots in order.
   *
   * Throws QueryError: `execution` (by SQLSTATE only), `databaseDown`, `sourceDenied`, `sourceGone`, `sourceChanged`,
   * `cancelled`, `timedOut`, `overloaded`, `shuttingDown`, `formMissing`, `rowTooLarge`, `answerMemory`,
   * `unresolvable`; ValueError. Throws InternalError if `govern` did not mint `plan`. Errors of the sink are rethrown.
   */
  async execute(
    plan: GovernedPlan,
    values: readonly BoundValue[],
    options: ExecuteOptions,
    sink: RowSink,
  ): Promise<ExecuteResult> {
    const { runner, outOfService } = this.#parts;
    const statement = this.#sendable(plan);
    if (values.length !== statement.parameterOids.length)
      throw new InternalError(`${values.length} values for ${statement.parameterOids.length} slots`);
    outOfService.check(statement.reads);
    return runner
      .runStatement(statement, values, options, sink)
      .catch((error: unknown) => throwCause(error, runner, plan, statement.reads, options));
  }

  /**
   * Sends the text lines of EXPLAIN (without ANALYZE) to `sink`, for the generic plan of the statement, which does not
   * depend on the values of its slots. @throws the errors of `execute`
   */
  async explain(
    plan: GovernedPlan,
    options: Omit<ExecuteOptions, 'resultFormats' | 'snapshot'>,
    sink: RowSink,
  ): Promise<ExecuteResult> {
    const { runner } = this.#parts;
    const { reads, ...statement } = this.#sendable(plan);
    const settings = [...(options.settings ?? []), GENERIC_PLAN];
    return runner
      .runStatement(
        { ...statement, reads, output: 'plan' },
        [],
        { ...options, resultFormats: [], settings },
        sink,
      )
      .catch((error: unknown) => throwCause(error, runner, plan, reads, options));
  }

  /**
   * Returns the statement of `plan` in a form that can run on shared sessions while the statement counts as short; null
   * if it cannot. Throws InternalError if `plan` was not minted by `govern`.
   */
  short(plan: GovernedPlan): ShortStatement | null {
    const { outOfService, runner } = this.#parts;
    const { servers, rules } = runner;
    const statement = statementOf(plan);
    // `execute` reports the error for plans that must be refused.
    if (servers.primary.lanes === null || !this.status.reached || this.#missingFormOf(statement) !== null)
      return null;
    return shortStatement({ servers, outOfService, ...rules }, statement);
  }

  /**
   * Throws like `execute` if a relation read by `plan` is out of service; call this before reusing a cached answer.
   * Throws InternalError if `plan` was not minted by `govern`.
   */
  requireInService(plan: GovernedPlan): void {
    this.#parts.outOfService.check(statementOf(plan).reads);
  }

  #sendable(plan: GovernedPlan): GovernedStatement {
    const statement = statementOf(plan);
    if (!this.status.reached) throw connectionLost();
    const form = this.#missingFormOf(statement);
    if (form !== null) throw queryError('formMissing', { form });
    return statement;
  }

  #missingFormOf(statement: GovernedStatement): string | null {
    const cached = this.#missingForms.get(statement);
    if (cached !== undefined) return cached;
    const form = this.#parts.missingForm(statement.sql);
    this.#missingForms.set(statement, form);
    return form;
  }
}

/** Forces a generic plan, since a plan for specific values could reveal keys and the values of callers and policies. */
const GENERIC_PLAN = ['plan_cache_mode', 'force_generic_plan'] as const;

/** The statement of each query. Plans that differ only in values (see `withValues`) share a query. */
const STATEMENTS = new WeakMap<GovernedPlan['query'], GovernedStatement>();

type GovernedStatement = UpstreamStatement & { readonly reads: StatementReads };

/** The OID of a slot's value; a client's value has the type that the client declared. */
function oidOfSlot(slot: Slot): number {
  return slot.kind === 'client' && slot.declared !== null ? slot.declared.oid : oidOf(slot.type);
}

/** Returns the statement of `plan`. Throws InternalError if `govern` did not mint the plan. */
function statementOf(plan: GovernedPlan): GovernedStatement {
  // INVARIANT: the type alone can be forged by a spread; the private field cannot.
  if (!GovernedPlan.is(plan)) throw new InternalError('an ungoverned plan reached the engine');
  const cached = STATEMENTS.get(plan.query);
  if (cached !== undefined) return cached;
  const { sql, slots } = emit(plan);
  const statement: GovernedStatement = {
    sql,
    output: 'rows',
    planMode: isKeyLookup(plan.query) ? 'auto' : 'force_custom_plan',
    parameterOids: slots.map(oidOfSlot),
    columnOids: plan.outputs.map((output) => oidOf(output.type)),
    reads: readsOf(plan),
    sources: slots.map(sourceOf),
  };
  STATEMENTS.set(plan.query, statement);
  return statement;
}
