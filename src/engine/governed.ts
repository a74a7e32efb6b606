import { emit, GovernedPlan, InternalError, oidOf } from 'osl-compiler';
import type { GovernedDoor } from './engine.js';
import type { Statement } from './execution.js';
import type { Runner } from './runner.js';

/** The door that takes a `GovernedPlan` and nothing else. */
export function governedDoor(runner: Runner): GovernedDoor {
  return {
    async execute(plan, values, options, sink) {
      const statement = statementOf(plan);
      if (values.length !== statement.parameterOids.length) {
        throw new InternalError(`${values.length} values for ${statement.parameterOids.length} slots`);
      }
      return runner.runStatement(statement, values, options, sink);
    },
  };
}

const STATEMENTS = new WeakMap<GovernedPlan, Statement>();

/** The statement of `plan`, made once. Throws InternalError where `govern` did not mint it. */
function statementOf(plan: GovernedPlan): Statement {
  const known = STATEMENTS.get(plan);
  if (known !== undefined) return known;
  // INVARIANT: the type alone can be forged by a spread; the private field cannot.
  if (!GovernedPlan.is(plan)) throw new InternalError('an ungoverned plan reached the engine');
  const { sql, slots } = emit(plan);
  const statement: Statement = {
    sql,
    parameterOids: slots.map((slot) => oidOf(slot.type)),
    columnOids: plan.outputs.map((output) => oidOf(output.type)),
  };
  STATEMENTS.set(plan, statement);
  return statement;
}
