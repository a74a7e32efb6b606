import {
  innerQuery,
  oneStatement,
  type ParsedStatement,
  type ParsedText,
  parseText,
  QueryError,
  statementTexts,
} from 'osl-compiler';
import type { Awaitable, SimpleStatement, WireStatement } from '../../../wire/index.js';
import { isShort } from '../../ask/index.js';
import type { StatementLane } from '../catalog/index.js';
import { catalogStatement } from './catalog-statement.js';
import { commandOf, UNLOCK_ALL } from './command.js';
import { copyOptions, copyStatement, relationQuery } from './copy.js';
import { cursorCommandOf, cursorStatement } from './cursor-statement.js';
import { dataStatement } from './data-statement.js';
import { explainStatement } from './explain-statement.js';
import { sessionCommandStatement } from './session-command.js';
import type { SessionParts } from './session-state.js';
import { executeStatement, prepareCommand } from './sql-prepare.js';

/** Matches texts that can only be queries, which need no parsing before compilation. */
const QUESTION = /^\s*(?:select|with|values)\b/i;

/**
 * Classifies and prepares a statement: a query on data or a catalog, a session command, a cursor statement, PREPARE,
 * EXECUTE, EXPLAIN or COPY. Returns null if the text contains no statement.
 *
 * @throws WireError
 */
export function prepareStatement(
  session: SessionParts,
  text: string,
  parameterTypes: readonly number[],
): Promise<WireStatement | null> {
  if (!QUESTION.test(text) || text.includes(UNLOCK_ALL)) return prepareOther(session, text, parameterTypes);
  session.state.block.requireUsable();
  return questionStatement(session, text, parameterTypes);
}

async function prepareOther(
  session: SessionParts,
  text: string,
  parameterTypes: readonly number[],
): Promise<WireStatement | null> {
  if (text.trim() === '') return null;
  const node = await nodeOf(session, text);
  if (node === 'empty') return null;
  const command = node === null ? null : commandOf(node);
  if (command !== null) return sessionCommandStatement(session, command);
  session.state.block.requireUsable();
  if (node === null) return questionStatement(session, text, parameterTypes);
  return prepareNode(session, node, text, parameterTypes);
}

async function prepareNode(
  session: SessionParts,
  node: ParsedStatement['node'],
  text: string,
  parameterTypes: readonly number[],
): Promise<WireStatement> {
  const cursor = cursorCommandOf(node);
  if (cursor !== null)
    return cursorStatement(session, cursor, text, () =>
      questionStatement(session, innerQuery(text) ?? text, parameterTypes),
    );
  if ('PrepareStmt' in node)
    return prepareCommand(
      session,
      node.PrepareStmt,
      (types) => questionStatement(session, innerQuery(text) ?? text, types),
      text,
    );
  if ('ExecuteStmt' in node) return executeStatement(session, node.ExecuteStmt);
  if ('ExplainStmt' in node && (await laneOf(session, text)).kind === 'data')
    return explainStatement(session, node.ExplainStmt, innerQuery(text) ?? text, parameterTypes);
  if (!('CopyStmt' in node)) return questionStatement(session, text, parameterTypes);
  const options = copyOptions(node.CopyStmt);
  const question = relationQuery(node.CopyStmt) ?? innerQuery(text) ?? text;
  return copyStatement(await questionStatement(session, question, []), options);
}

function questionStatement(
  session: SessionParts,
  text: string,
  parameterTypes: readonly number[],
): Promise<WireStatement> {
  const { catalogs } = session;
  if (catalogs === null) return dataStatement(session, text, parameterTypes);
  const lane = laneOf(session, text);
  const prepareInLane = (statementLane: StatementLane): Promise<WireStatement> =>
    statementLane.kind === 'data'
      ? dataStatement(session, text, parameterTypes)
      : catalogStatement(session, catalogs, statementLane, text, parameterTypes);
  return lane instanceof Promise ? lane.then(prepareInLane) : prepareInLane(lane);
}

function laneOf(session: SessionParts, text: string): Awaitable<StatementLane> {
  return session.catalogs?.laneOf(text, (longText) => parseInWorker(session, longText)) ?? { kind: 'data' };
}

/** Splits a Query message into its statements. A single statement, with or without a semicolon, is not parsed. */
export function splitQuery(session: SessionParts, text: string): Awaitable<readonly SimpleStatement[]> {
  const trimmed = text.trimEnd();
  const semicolon = text.indexOf(';');
  if (semicolon < 0 || semicolon === trimmed.length - 1) {
    const statement = semicolon < 0 ? trimmed : trimmed.slice(0, -1);
    return statement.trim() === '' ? [] : [{ text: statement, start: 0 }];
  }
  try {
    const parsed = parseOf(session, text);
    if (!(parsed instanceof Promise)) return statementsIn(parsed);
    return parsed.then(statementsIn).catch((failure: unknown) => asOneQuestion(text, failure));
  } catch (failure) {
    return asOneQuestion(text, failure);
  }
}

function statementsIn(parsed: ParsedText): readonly SimpleStatement[] {
  return statementTexts(parsed).map((s) => ({ text: s.text, start: s.offset }));
}

/** Treats a text that does not parse as a single query: compiling it fails in the same way and records the denial. */
function asOneQuestion(text: string, failure: unknown): readonly SimpleStatement[] {
  if (failure instanceof QueryError) return [{ text, start: 0 }];
  throw failure;
}

function parseOf(session: SessionParts, text: string): ParsedText | Promise<ParsedText> {
  return isShort(text) ? parseText(text) : parseInWorker(session, text);
}

function parseInWorker({ service, caller }: SessionParts, text: string): Promise<ParsedText> {
  return service.parsing.parse(text, caller.identity.subject);
}

/** Returns the syntax tree of the text, null if it does not parse, or `empty` if it contains no statement. */
async function nodeOf(
  session: SessionParts,
  text: string,
): Promise<ParsedStatement['node'] | 'empty' | null> {
  try {
    return oneStatement(await parseOf(session, text)).node;
  } catch (failure) {
    if (failure instanceof QueryError && failure.entry === 'noStatement') return 'empty';
    // Compilation will fail in the same way and record the denial.
    if (failure instanceof QueryError) return null;
    throw failure;
  }
}
