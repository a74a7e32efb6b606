import {
  emit,
  GovernedPlan,
  InternalError,
  isKeyLookUp,
  oidOf,
  queryError,
  relationsRead,
  type Slot,
} from 'osl-compiler';
import type { GovernedDoor } from './doors.js';
import type { OutOfService } from './out-of-service.js';
import type { Runner } from './runner.js';
import { shortStatement } from './short.js';
import { throwCause } from './source-check.js';
import type { StatementReads, UpstreamStatement, ValueSource } from './statement.js';
import { connectionLost } from './upstream-error.js';

/** The door that takes a `GovernedPlan` and nothing else. While it is not open all of them are refused (`databaseDown`). */
export function governedDoor(
  runner: Runner,
  outOfService: OutOfService,
  snapshot: GovernedDoor['snapshot'],
  lacking: (sql: string) => string | null = () => null,
  isOpen: () => boolean = () => true,
): GovernedDoor {
  /** What the database's grammar lacks for each statement that was asked for. */
  const lacks = new WeakMap<GovernedStatement, string | null>();
  const lackOf = (statement: GovernedStatement): string | null => {
    const known = lacks.get(statement);
    if (known !== undefined) return known;
    const found = lacking(statement.sql);
    lacks.set(statement, found);
    return found;
  };
  const sendable = (plan: GovernedPlan): GovernedStatement => {
    const statement = statementOf(plan);
    if (!isOpen()) throw connectionLost();
    const form = lackOf(statement);
    if (form !== null) throw queryError('formMissing', { form });
    return statement;
  };
  return {
    snapshot,
    short(plan) {
      const { lanes, backstopSeconds, onUpstreamError } = runner;
      const statement = statementOf(plan);
      // What is refused is refused where it is executed.
      if (lanes === null || !isOpen() || lackOf(statement) !== null) return null;
      return shortStatement({ lanes, outOfService, backstopSeconds, onUpstreamError }, statement);
    },
    execute(plan, values, options, sink) {
      try {
        const statement = sendable(plan);
        if (values.length !== statement.parameterOids.length) {
          throw new InternalError(`${values.length} values for ${statement.parameterOids.length} slots`);
        }
        outOfService.check(statement.reads);
        return runner
          .runStatement(statement, values, options, sink)
          .catch((error: unknown) => throwCause(error, runner, plan, statement.reads, options));
      } catch (error) {
        return Promise.reject(error);
      }
    },
    requireInService: (plan) => outOfService.check(statementOf(plan).reads),
    explain(plan, options, sink) {
      try {
        const { reads, ...statement } = sendable(plan);
        const settings = [...(options.settings ?? []), WHATEVER_THE_VALUES];
        return runner
          .runStatement(
            { ...statement, reads, asks: 'plan' },
            [],
            { ...options, resultFormats: [], settings },
            sink,
          )
          .catch((error: unknown) => throwCause(error, runner, plan, reads, options));
      } catch (error) {
        return Promise.reject(error);
      }
    },
  };
}

/** A plan made for the very values would show them: a caller's, those of policy, and keys. */
const WHATEVER_THE_VALUES = ['plan_cache_mode', 'force_generic_plan'] as const;

/** The statement of each query: plans that differ in values alone, as those of one shape, have one statement. */
const STATEMENTS = new WeakMap<GovernedPlan['query'], GovernedStatement>();

type GovernedStatement = UpstreamStatement & { readonly reads: StatementReads };

/** A client's value comes as the type that it declared. */
function oidOfSlot(slot: Slot): number {
  return slot.kind === 'client' && slot.declared !== null ? slot.declared.oid : oidOf(slot.type);
}

/** The statement of `plan`. Throws InternalError where `govern` did not mint it. */
function statementOf(plan: GovernedPlan): GovernedStatement {
  // INVARIANT: the type alone can be forged by a spread; the private field cannot.
  if (!GovernedPlan.is(plan)) throw new InternalError('an ungoverned plan reached the engine');
  const known = STATEMENTS.get(plan.query);
  if (known !== undefined) return known;
  const { sql, slots } = emit(plan);
  const statement: GovernedStatement = {
    sql,
    asks: 'rows',
    planMode: isKeyLookUp(plan.query) ? 'auto' : 'force_custom_plan',
    parameterOids: slots.map(oidOfSlot),
    columnOids: plan.outputs.map((output) => oidOf(output.type)),
    reads: readsOf(plan),
    sources: slots.map(sourceOf),
  };
  STATEMENTS.set(plan.query, statement);
  return statement;
}

/** What policy, a metric or the compiler has put there is the gateway's. */
function sourceOf(slot: Slot): ValueSource {
  if (slot.kind === 'client') return { kind: 'client', type: slot.type, number: slot.index + 1 };
  return slot.kind === 'literal' && slot.written ? { kind: 'literal', type: slot.type } : { kind: 'gateway' };
}

function readsOf({ query, objects, outputs }: GovernedPlan): StatementReads {
  const relations = relationsRead(query);
  return {
    objects: namedIn(objects),
    relations: relations.map((r) => r.name),
    tables: relations.map((r) => `${r.schema}.${r.table}`),
    columns: outputs.map((output) => output.source ?? output.name),
  };
}

const METRICS = 'osl.metrics.';

/** Who asks for a metric need not know what it is worked out from. */
function namedIn(objects: readonly string[]): readonly string[] {
  const metrics = objects.filter((name) => name.startsWith(METRICS));
  return (metrics.length > 0 ? metrics : objects).map((name) => name.slice(name.lastIndexOf('.') + 1));
}
