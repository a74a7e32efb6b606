import { isEvaluationFault, NEGATIVE_COUNTS, QueryError, queryError } from 'osl-compiler';
import type { UpstreamStatement } from './statement.js';
import { type ErrorSource, RIGHTS_FAULTS, type UpstreamError } from './upstream-report.js';

/** Returns the fields of an ErrorResponse or NoticeResponse body, by type letter. */
export function reportFields(body: Buffer): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  let at = 0;
  while (at < body.length && body[at] !== 0) {
    const end = body.indexOf(0, at + 1);
    if (end < 0) break;
    fields.set(String.fromCharCode(body[at] ?? 0), body.toString('utf8', at + 1, end));
    at = end + 1;
  }
  return fields;
}

export function parseErrorResponse(body: Buffer): UpstreamError {
  const fields = reportFields(body);
  return {
    sqlstate: fields.get('C') ?? 'XX000',
    message: fields.get('M') ?? '',
    routine: fields.get('R') ?? null,
    schema: fields.get('s') ?? null,
    table: fields.get('t') ?? null,
    column: fields.get('c') ?? null,
    constraint: fields.get('n') ?? null,
    dataType: fields.get('d') ?? null,
    parameter: parameterIn(fields.get('W')),
    position: Number(fields.get('P') ?? 0) || null,
  };
}

/** Returns the parameter number in the last, outermost line of the error's context, in any language; null if none. */
function parameterIn(context: string | undefined): number | null {
  const number = /\$(\d+)/.exec(context?.slice(context.lastIndexOf('\n') + 1) ?? '')?.[1];
  return number === undefined ? null : Number(number);
}

/** Creates an upstream error for a fault that the gateway itself detected, such as a lost connection. */
export function localError(sqlstate: string, message: string): UpstreamError {
  return parseErrorResponse(Buffer.from(`C${sqlstate}\0M${message}\0\0`));
}

/** Returns the error for connection failures and server shutdowns, which look the same to a caller. */
export function connectionLost(): QueryError {
  return queryError('databaseDown', {});
}

/** Returns the error for a setting that the gateway accepts but the upstream does not, such as a time zone it lacks. */
export function unknownSetting(): QueryError {
  return queryError('unresolvable', {
    detail: 'the database of this query does not know a setting of this session, such as its time zone',
    hint: 'SET another one, or RESET it',
  });
}

/** Returns an error for the operator: the type of an output column differs from the type that the manifest declares. */
export function changedColumn(column: string | null): UpstreamError {
  return { ...localError('42804', 'the database has another type for a column than the manifest'), column };
}

const MAX_LISTED = 5;

/** Lists the objects of a query for an error message, at most `MAX_LISTED`. */
export function objectsText(objects: readonly string[]): string {
  if (objects.length === 0) return 'the question';
  const named = objects.slice(0, MAX_LISTED).map((name) => `\`${name}\``);
  return [...named, ...(objects.length > named.length ? ['…'] : [])].join(' or ');
}

/** SQLSTATEs for a missing table, schema or column, or for a name that our SQL should not have used. */
const GONE: ReadonlySet<string> = new Set(['42P01', '3F000', '42703']);
/** SQLSTATEs that our SQL causes if a column's type is not as declared, or if the SQL is wrong. */
const CHANGED: ReadonlySet<string> = new Set(['42804', '42846', '42883', '42725', '42P18', '42P22']);
/** SQLSTATEs that only invalid SQL causes: syntax, ambiguous names, misplaced aggregates. */
const INVALID_SQL: ReadonlySet<string> = new Set([
  '42601',
  '42611',
  '42702',
  '42712',
  '42803',
  '42809',
  '42P09',
  '42P10',
  '42P19',
  '42P20',
]);
const DENIED = '42501';
/** Messages of our row security functions. */
const RIGHTS_MESSAGES: ReadonlySet<string> = new Set(Object.values(RIGHTS_FAULTS));

/**
 * The database could not interpret a statement, or returns columns of other types than planned. `throwCause` passes
 * this error to the caller only if a table differs from the manifest or `inText` is null.
 */
export class StatementFault extends QueryError {
  /** The SQLSTATE and the part of our SQL that the database refuses, for the log; null if the fault is elsewhere. */
  readonly inText: string | null;

  constructor(error: QueryError, inText: string | null) {
    super(error.entry, error.message, error);
    this.inText = inText;
  }
}

/** The database could not parse a value of the query, or could not compute with it. */
export class ValueError extends QueryError {
  /** Index of the faulty parameter, starting at 0; null if it is unknown or the statement computed the value. */
  readonly parameter: number | null;

  constructor(error: QueryError, parameter: number | null) {
    super(error.entry, error.message, error);
    this.parameter = parameter;
  }

  withoutParameter(): QueryError {
    return new QueryError(this.entry, this.message, this);
  }
}

/**
 * Converts an upstream error to the caller's error.
 *
 * @param isParsed true if the database accepted the text, so that the error is about values
 */
export function executionError(
  error: Pick<UpstreamError, 'sqlstate' | 'message' | 'parameter' | 'position'>,
  { backstopSeconds, refusalOf }: ErrorSource,
  statement: Partial<Pick<UpstreamStatement, 'reads' | 'sources' | 'sql'>> = {},
  isParsed = true,
): QueryError {
  const { sqlstate, message } = error;
  if (sqlstate === '57014') return queryError('timedOut', { seconds: backstopSeconds });
  if (sqlstate.startsWith('57P') || (sqlstate.startsWith('08') && sqlstate !== MALFORMED))
    return connectionLost();
  const { reads } = statement;
  const explained = refusalOf(error) ?? (isParsed ? valueErrorOf(error, statement) : null);
  if (explained !== null) return explained;
  if (RIGHTS_MESSAGES.has(message)) return queryError('execution', { sqlstate });
  // A statement without tables cannot be missing one.
  const entry = reads === undefined || reads.tables.length === 0 ? 'execution' : entryOf(sqlstate);
  const reply =
    entry === 'execution'
      ? queryError(entry, { sqlstate })
      : queryError(entry, { objects: objectsText(reads?.objects ?? []) });
  const isInSql = GONE.has(sqlstate) || CHANGED.has(sqlstate) || INVALID_SQL.has(sqlstate);
  return isInSql ? new StatementFault(reply, faultInText(error, statement.sql, isParsed)) : reply;
}

function entryOf(sqlstate: string): 'execution' | 'sourceDenied' | 'sourceGone' | 'sourceChanged' {
  if (sqlstate === DENIED) return 'sourceDenied';
  if (GONE.has(sqlstate)) return 'sourceGone';
  return CHANGED.has(sqlstate) ? 'sourceChanged' : 'execution';
}

/** Number of characters of the statement that the log shows, starting at the error's position. */
const SHOWN_CHARACTERS = 120;

/**
 * Returns the SQLSTATE of an error and, if known, the text at its position in our SQL, which contains no values. Null
 * if it has no position and was raised after parsing, such as in a function or on another server.
 */
function faultInText(
  { sqlstate, position }: Pick<UpstreamError, 'sqlstate' | 'position'>,
  sql: string | undefined,
  isParsed: boolean,
): string | null {
  if (position === null || sql === undefined) return isParsed ? null : sqlstate;
  return `${sqlstate} at ${JSON.stringify(sql.slice(position - 1, position - 1 + SHOWN_CHARACTERS))}`;
}

/** SQLSTATE protocol_violation, which malformed parameter bytes cause; the connection stays intact. */
const MALFORMED = '08P01';
/** SQLSTATE syntax_error, which a malformed text search query or JSON path causes after the statement was parsed. */
const NOT_WELL_FORMED = '42601';

/** Returns the error for the caller if one of the caller's values is at fault; otherwise null. */
function valueErrorOf(
  { sqlstate, parameter }: Pick<UpstreamError, 'sqlstate' | 'parameter'>,
  { sources }: Pick<UpstreamStatement, 'sources'>,
): ValueError | null {
  if (sources === undefined) return null;
  const source = parameter === null ? undefined : sources[parameter - 1];
  if (source?.kind === 'gateway') return null;
  if (source !== undefined && parameter !== null) {
    const details = { type: source.type, sqlstate: sqlstate === MALFORMED ? '22P03' : sqlstate };
    const number = source.kind === 'client' ? source.number : null;
    return new ValueError(queryError('invalidLiteral', { ...details, parameter: number }), parameter - 1);
  }
  if (sqlstate === MALFORMED) return new ValueError(queryError('evaluation', { sqlstate: '22P03' }), null);
  for (const clause of ['LIMIT', 'OFFSET'] as const) {
    if (sqlstate === NEGATIVE_COUNTS[clause])
      return new ValueError(queryError('negativeCount', { clause, sqlstate }), null);
  }
  return isEvaluationFault(sqlstate) || sqlstate === NOT_WELL_FORMED
    ? new ValueError(queryError('evaluation', { sqlstate }), null)
    : null;
}

/** Returns the abort reason of `signal` if it is a QueryError; otherwise `cancelled`. */
export function stopError({ reason }: AbortSignal): QueryError {
  return reason instanceof QueryError ? reason : queryError('cancelled', {});
}
