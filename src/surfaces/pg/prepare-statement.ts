import {
  innerQuery,
  oneStatement,
  type ParsedStatement,
  type ParsedText,
  parseText,
  QueryError,
  statementTexts,
} from 'osl-compiler';
import {
  type Awaitable,
  type ColumnDescription,
  error,
  type FetchResult,
  type Portal,
  type RowWriter,
  type SimpleStatement,
  type WireStatement,
} from '../../../wire/index.js';
import { isShort } from '../../ask/index.js';
import { dataRow, rowScheduler } from '../../engine/index.js';
import type { StatementLane } from '../catalog/index.js';
import { catalogStatement } from './catalog-statement.js';
import { commandOf, UNLOCK_ALL } from './command.js';
import { binaryRows, type CopyOptions, copyOptions, questionOf, textRows } from './copy-rows.js';
import { cursorCommandOf, cursorStatement } from './cursor-statement.js';
import { dataStatement } from './data-statement.js';
import { explainStatement } from './explain-statement.js';
import { sessionCommandStatement } from './session-command.js';
import type { SessionParts } from './session-parts.js';
import { executeStatement, prepareCommand } from './sql-prepare.js';

/** Matches texts that can only be queries, which need no parsing before compilation. */
const QUESTION = /^\s*(?:select|with|values)\b/i;

/**
 * Classifies and prepares a statement: query on data or catalog, session command, cursor statement, PREPARE, EXECUTE,
 * EXPLAIN or COPY. Returns null if the text contains no statement.
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
  const question = questionOf(node.CopyStmt) ?? innerQuery(text) ?? text;
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
  const inLane = (judged: StatementLane): Promise<WireStatement> =>
    judged.kind === 'data'
      ? dataStatement(session, text, parameterTypes)
      : catalogStatement(session, catalogs, judged, text, parameterTypes);
  return lane instanceof Promise ? lane.then(inLane) : inLane(lane);
}

function laneOf(session: SessionParts, text: string): Awaitable<StatementLane> {
  return session.catalogs?.laneOf(text, (long) => parseElsewhere(session, long)) ?? { kind: 'data' };
}

/** Splits a Query message into its statements. A single statement, with or without a semicolon, is not parsed. */
export function splitQuery(session: SessionParts, text: string): Awaitable<readonly SimpleStatement[]> {
  const last = text.trimEnd();
  const only = text.indexOf(';');
  if (only < 0 || only === last.length - 1) {
    const start = only < 0 ? last : last.slice(0, -1);
    return start.trim() === '' ? [] : [{ text: start, start: 0 }];
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

/** Handles a text that cannot be split as one query: compiling it fails in the same way and records the denial. */
function asOneQuestion(text: string, failure: unknown): readonly SimpleStatement[] {
  if (failure instanceof QueryError) return [{ text, start: 0 }];
  throw failure;
}

function parseOf(session: SessionParts, text: string): ParsedText | Promise<ParsedText> {
  return isShort(text) ? parseText(text) : parseElsewhere(session, text);
}

function parseElsewhere({ service, caller }: SessionParts, text: string): Promise<ParsedText> {
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

/** `COPY (query) TO STDOUT`: sends the rows of `inner` as CopyData, one message per row. @throws WireError */
function copyStatement(inner: WireStatement, options: CopyOptions): WireStatement {
  const columns = inner.columns ?? [];
  if (inner.parameterTypes.length > 0) throw error('42P02', 'COPY takes no parameters');
  requireColumns(options, columns);
  const format = options.format === 'binary' ? 1 : 0;
  return {
    parameterTypes: [],
    columns: null,
    copy: { columns: columns.length, format },
    open: async () => {
      const resultFormats = columns.map(() => format as 0 | 1);
      const portal = await inner.open({ parameterFormats: [], parameters: [], resultFormats });
      return copyPortal(portal, columns, options);
    },
  };
}

function requireColumns({ forceQuote }: CopyOptions, columns: readonly ColumnDescription[]): void {
  if (forceQuote === '*') return;
  for (const name of forceQuote) {
    if (!columns.some((c) => c.name === name)) throw error('42703', `column "${name}" does not exist`);
  }
}

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const TRAILER = Buffer.from([0xff, 0xff]);

function copyPortal(portal: Portal, columns: readonly ColumnDescription[], options: CopyOptions): Portal {
  const copy = options.format === 'binary' ? binaryCopy : textCopy(columns, options);
  return {
    async fetch(_maxRows, rows) {
      const result = await copy(portal, rows);
      return { ...result, tag: result.tag.replace(/^SELECT/, 'COPY') };
    },
    close: () => portal.close(),
  };
}

type RowCopier = (portal: Portal, rows: RowWriter) => Promise<FetchResult>;

const binaryCopy: RowCopier = async (portal, rows) => {
  // As in Postgres, the signature is not sent as a separate message but before the first row.
  let before = SIGNATURE;
  const first = (message: Buffer): Buffer => {
    const whole = copyData(Buffer.concat([before, message.subarray(HEAD)]));
    before = Buffer.alloc(0);
    return whole;
  };
  const result = await portal.fetch(0, {
    copies: (rows.copies ?? 0) + COPIES,
    write: (messages) => {
      const copied = binaryRows(messages);
      if (before.length === 0) return rows.write(copied);
      const end = 1 + copied.readInt32BE(1);
      return rows.write(Buffer.concat([first(copied.subarray(0, end)), copied.subarray(end)]));
    },
  });
  await rows.write(copyData(Buffer.concat([before, TRAILER])));
  return result;
};

function textCopy(columns: readonly ColumnDescription[], options: CopyOptions): RowCopier {
  const { forceQuote, header } = options;
  const copied = textRows(
    options,
    columns.map((c) => forceQuote === '*' || forceQuote.includes(c.name)),
  );
  const heading = textRows(
    options,
    columns.map(() => false),
  );
  return async (portal, rows) => {
    if (header) await rows.write(heading.whole(dataRow(columns.map((c) => c.name))));
    return portal.fetch(0, {
      copies: (rows.copies ?? 0) + COPIES,
      write: (messages) =>
        messages.length > AT_ONCE_BYTES
          ? inTurns(copied.portions(messages)).then((copy) => rows.write(copy))
          : rows.write(copied.whole(messages)),
    });
  };
}

/** Size in bytes above which a batch of rows is converted in portions. */
const AT_ONCE_BYTES = 65_536;
/** Peak memory of a copy, in multiples of its input: twice for escapes, plus the outgrown buffer. */
const COPIES = 3;

/** Runs a generator to completion, yielding to other work at each `yield`. */
async function inTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    await rowScheduler.wait();
  }
}

const HEAD = 5;

function copyData(body: Uint8Array): Buffer {
  const message = Buffer.allocUnsafe(HEAD + body.length);
  message.write('d', 0, 'latin1');
  message.writeInt32BE(4 + body.length, 1);
  message.set(body, HEAD);
  return message;
}
