import { error, type Portal, WireError, type WireStatement } from '../../../wire/index.js';
import { sessionCommand } from '../../ask/index.js';
import type { StatementNode } from './command.js';
import { argumentsOf, declaredTypeOf } from './execute-arguments.js';
import type { SessionParts } from './session-parts.js';
import { planChanged } from './session-records.js';

type PrepareNode = Extract<StatementNode, { PrepareStmt: unknown }>['PrepareStmt'];
type ExecuteNode = Extract<StatementNode, { ExecuteStmt: unknown }>['ExecuteStmt'];

/** What an EXECUTE made: none runs another, so that no chain of names is as long as a client likes. */
const EXECUTES = new WeakSet<WireStatement>();

/**
 * `PREPARE name [(types)] AS question`. Run, it prepares the question, which is counted and recorded as one that Parse
 * prepared. @throws WireError
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
 * `EXECUTE name [(constants)]`: a run of the statement, decided anew, counted and recorded as the question that it is.
 * @throws WireError
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
      // Between Parse and Bind the name may have come to be that of another.
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

/** Until it runs, the statement is one that was prepared; what it gives is called when it does. */
function held({ service, caller, records }: SessionParts): () => void {
  const call = caller.newCall();
  const unrun = records.hold(call, () => sessionCommand(service, call, 'prepare'));
  return () => {
    records.unrun.release(unrun);
  };
}

/** Faults of the question have their places in a text that the client sent with PREPARE, and not now. */
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
