import { QueryError, queryError } from 'osl-compiler';
import { reportFields } from './protocol/report-fields.js';
import type { StatementReads } from './statement.js';
import { RIGHTS_FAULTS, type UpstreamError } from './upstream-words.js';

/** What an ErrorResponse body says. */
export function parseErrorResponse(body: Buffer): UpstreamError {
  const fields = reportFields(body);
  return {
    sqlstate: fields.get('C') ?? 'XX000',
    message: fields.get('M') ?? '',
    detail: fields.get('D') ?? null,
    hint: fields.get('H') ?? null,
    routine: fields.get('R') ?? null,
    schema: fields.get('s') ?? null,
    table: fields.get('t') ?? null,
    column: fields.get('c') ?? null,
    constraint: fields.get('n') ?? null,
    dataType: fields.get('d') ?? null,
  };
}

/** What we say in the upstream's place, where it says nothing any more. */
export function inItsPlace(sqlstate: string, message: string): UpstreamError {
  return parseErrorResponse(Buffer.from(`C${sqlstate}\0M${message}\0\0`));
}

/** Connection failures, and the server's own ends of a session, are one thing to a caller. */
export function connectionLost(): QueryError {
  return queryError('databaseDown', {});
}

/** The upstream takes other settings than the one that judged them: zones differ from server to server. */
export function unknownSetting(): QueryError {
  return queryError('unresolvable', {
    detail: 'the database of this query does not know a setting of this session, such as its time zone',
    hint: 'SET another one, or RESET it',
  });
}

/** An output column whose type is not that of the manifest, for the operator. */
export function changedColumn(column: string | null): UpstreamError {
  return { ...inItsPlace('42804', 'the database has another type for a column than the manifest'), column };
}

const MOST_LISTED = 5;

/** The objects of a question as its caller wrote them, for the text of an error. */
export function objectsText(objects: readonly string[]): string {
  if (objects.length === 0) return 'the question';
  const named = objects.slice(0, MOST_LISTED).map((name) => `\`${name}\``);
  return [...named, ...(objects.length > named.length ? ['…'] : [])].join(' or ');
}

/** A table, a schema or a column that is not there. */
const GONE: ReadonlySet<string> = new Set(['42P01', '3F000', '42703']);
/** What our SQL, which was bound by the manifest's types, runs into where a column has another one. */
const CHANGED: ReadonlySet<string> = new Set(['42804', '42846', '42883', '42725', '42P18', '42P22']);
const DENIED = '42501';
/** Said by our own functions of row security, under codes of Postgres. */
const OURS: ReadonlySet<string> = new Set(Object.values(RIGHTS_FAULTS));

/** What a caller is told of an error; `backstopSeconds` is the session's own statement timeout. */
export function executionError(
  { sqlstate, message }: Pick<UpstreamError, 'sqlstate' | 'message'>,
  backstopSeconds: number,
  reads?: StatementReads,
): QueryError {
  // The upstream complains of a parameter's bytes, which are the caller's; the connection is sound.
  if (sqlstate === '08P01') return queryError('execution', { sqlstate: '22P03' });
  if (sqlstate === '57014') return queryError('timedOut', { seconds: backstopSeconds });
  if (sqlstate.startsWith('57P') || sqlstate.startsWith('08')) return connectionLost();
  // A statement that reads nothing can miss nothing.
  if (reads === undefined || reads.tables.length === 0 || OURS.has(message))
    return queryError('execution', { sqlstate });
  const objects = objectsText(reads.objects);
  if (sqlstate === DENIED) return queryError('sourceDenied', { objects });
  if (GONE.has(sqlstate)) return queryError('sourceGone', { objects });
  if (CHANGED.has(sqlstate)) return queryError('sourceChanged', { objects });
  return queryError('execution', { sqlstate });
}

/** What the caller is told of a statement that `signal` stopped: the reason it was aborted with, or that it was cancelled. */
export function stopError({ reason }: AbortSignal): QueryError {
  return reason instanceof QueryError ? reason : queryError('cancelled', {});
}
