import { error, type Portal, WireError, type WireStatement } from '../../../wire/index.js';
import { sessionCommand } from '../../ask/index.js';
import type { StatementNode } from './command.js';
import { argumentsOf, declaredTypeOf } from './execute-arguments.js';
import type { SessionParts } from './session-parts.js';
import { planChanged } from './session-records.js';

type PrepareNode = Extract<StatementNode, { PrepareStmt: unknown }>['PrepareStmt'];
type ExecuteNode = Extract<StatementNode, { ExecuteStmt: unknown }>['ExecuteStmt'];

/** Statements made by EXECUTE, which must not EXECUTE each other: this prevents chains of any length. */
const EXECUTES = new WeakSet<WireStatement>();

/**
 * `PREPARE name [(types)] AS query`. Running it prepares the query, counted and recorded like Parse. @throws
 * WireError
 */
export function prepareCommand(
  session: SessionParts,
  { name = '', argtypes = [] }: PrepareNode,
  prepareQuestion: (parameterTypes: readonly number[]) => Promise<WireStatement>,
  text: string,
): WireStatement {
  const parameterTypes = argtypes.map(declaredTypeOf);
  const begin = held(session);
  return {
    parameterTypes: [],
    columns: null,
    open: () => ({
      fetch: async () => {
        begin();
        session.state.block.requireUsable();
        const statement = await prepareQuestion(parameterTypes);
        session.statements.keep(name, statement, text);
        await session.records.unrun.record();
        return { suspended: false, tag: 'PREPARE' };
      },
      close: () => undefined,
    }),
  };
}

/**
 * `EXECUTE name [(constants)]`: a run of the named statement, authorized, counted and recorded as its query. @throws
 * WireError
 */
export function executeStatement(
  session: SessionParts,
  { name = '', params = [] }: ExecuteNode,
): WireStatement {
  const statement = statementNamed(session, name);
  if (EXECUTES.has(statement)) throw error('0A000', `prepared statement "${name}" is an EXECUTE itself`);
  const parameters = argumentsOf(name, params, statement.parameterTypes);
  const parameterFormats = parameters.map(() => 0 as const);
  const begin = held(session);
  const executed: WireStatement = {
    parameterTypes: [],
    columns: statement.columns,
    copy: statement.copy ?? null,
    open: async ({ resultFormats }) => {
      // The name may have been redefined between Parse and Bind.
      if (statementNamed(session, name) !== statement) throw planChanged();
      return unplaced(await statement.open({ parameterFormats, parameters, resultFormats }), begin);
    },
  };
  EXECUTES.add(executed);
  return executed;
}

function statementNamed({ statements }: SessionParts, name: string): WireStatement {
  const statement = statements.statement(name);
  if (statement === undefined) throw error('26000', `prepared statement "${name}" does not exist`);
  return statement;
}

/** Registers a prepared statement; the returned function marks it as run. */
function held({ service, caller, records }: SessionParts): () => void {
  const call = caller.newCall();
  const unrun = records.hold(call, () => sessionCommand(service, call, 'prepare'));
  return () => {
    records.unrun.release(unrun);
  };
}

/** Removes error positions, which refer to the text of PREPARE. */
function unplaced(portal: Portal, begin: () => void): Portal {
  return {
    async fetch(maxRows, rows) {
      begin();
      try {
        return await portal.fetch(maxRows, rows);
      } catch (failure) {
        throw failure instanceof WireError ? failure.unplaced() : failure;
      }
    },
    close: () => portal.close(),
  };
}
