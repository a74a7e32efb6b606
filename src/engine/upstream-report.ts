import type { QueryError } from 'osl-compiler';

/** Fields of an upstream error, only for the operator. `toLoggable` returns the part that may be logged. */
export interface UpstreamError {
  readonly sqlstate: string;
  readonly message: string;
  readonly routine: string | null;
  readonly schema: string | null;
  readonly table: string | null;
  readonly column: string | null;
  readonly constraint: string | null;
  readonly dataType: string | null;
  /** Number of the parameter that could not be read, starting at 1; null for any other error. */
  readonly parameter: number | null;
  /** Position in our statement text in characters, starting at 1; null if the error is elsewhere. */
  readonly position: number | null;
}

/** Reports an upstream error in a statement that reads `tables`. */
export type ReportUpstreamError = (error: UpstreamError, tables: readonly string[]) => void;

/** Log entry about an upstream error; contains no row value. */
export interface LoggableError {
  readonly sqlstate: string;
  /** The start of the upstream's message that is known to contain no value; null if no part is known to be safe. */
  readonly message: string | null;
  /** The routine in the server's source; null if unknown. */
  readonly routine: string | null;
  /** The names of the table, column or constraint concerned; null if unknown. */
  readonly about: string | null;
}

/**
 * SQLSTATE classes whose messages start with fixed words about rights, limits, connections or the schema, before any
 * quoted name.
 */
const SAFE_CLASSES: ReadonlySet<string> = new Set([
  '08',
  '0A',
  '25',
  '28',
  '3D',
  '3F',
  '40',
  '42',
  '53',
  '54',
  '55',
  '57',
  '58',
]);

/** Routines whose messages contain names but never values. Operators need them when a schema changes. */
const NAMES_ONLY: ReadonlySet<string> = new Set([
  'parserOpenTable',
  'errorMissingColumn',
  'errorMissingRTE',
  'ParseFuncOrColumn',
  'op_error',
  'aclcheck_error',
  'aclcheck_error_col',
]);

/** Routines that report text written by a user, such as a RAISE in PL/pgSQL, whatever the SQLSTATE. */
const USER_TEXT = /^(?:exec_stmt_(?:raise|assert)|ply_|plpy|plperl|pltcl|plv8|do_util_elog)/i;

/** Messages of our row security functions; none contains a value. */
export const RIGHTS_FAULTS = Object.freeze({
  missing: 'osl: no rights came with the statement',
  forged: 'osl: the rights are not signed with the key that stands here',
  outdated: 'osl: the rights are of another policy than stands here',
  ended: 'osl: the rights have ended',
});

/** Fixed messages, which are safe no matter what raises them. */
const RIGHTS_MESSAGES: ReadonlySet<string> = new Set(Object.values(RIGHTS_FAULTS));

/** Starts of messages that may contain values after the start; only the start is logged. */
const SAFE_STARTS: readonly string[] = [
  'array size exceeds the maximum allowed',
  'array subscript out of range',
  'bigint out of range',
  'bit string length',
  'cannot accumulate arrays of different dimensionality',
  'cannot call',
  'cannot cast jsonb',
  'cannot delete from',
  'cannot extract elements from',
  'cannot get array length of',
  'cannot subtract infinite',
  'cannot take logarithm of a negative number',
  'cannot take logarithm of zero',
  'cannot take square root of a negative number',
  'character with byte sequence',
  'cidr out of range',
  'count must be greater than zero',
  'date out of range',
  'date/time field value out of range',
  'division by zero',
  'duplicate key value violates unique constraint',
  'encoding conversion from',
  'extra data after last expected column',
  'insert or update on table',
  'integer out of range',
  'interval field value out of range',
  'interval out of range',
  'invalid Unicode escape',
  'invalid base64 end sequence',
  'invalid byte sequence for encoding',
  'invalid escape string',
  'invalid hexadecimal digit',
  'invalid hexadecimal data: odd number of digits',
  'invalid input syntax for type',
  'invalid input value for enum',
  'invalid preceding or following size in window function',
  'invalid regular expression',
  'invalid symbol',
  'invalid value for',
  'invalid xml',
  'lower bound cannot equal upper bound',
  'lower bound must be less than upper bound',
  'malformed array literal',
  'malformed range literal',
  'malformed record literal',
  'missing data for column',
  'more than one row returned by a subquery used as an expression',
  'new row for relation',
  'new row violates',
  'null value in column',
  'numeric field overflow',
  'out of range',
  'range lower bound must be less than or equal to range upper bound',
  'requested character too large for encoding',
  'requested length too large',
  'returned record type does not match',
  'smallint out of range',
  'step size cannot equal zero',
  'string is too long for tsvector',
  'timestamp out of range',
  'time zone',
  'unit',
  'unsupported Unicode escape sequence',
  'update or delete on table',
  'value',
  'value for domain',
  'value overflows numeric format',
  'value too long for type',
  'wrong number of',
  'zero raised to a negative power is undefined',
];

/** Matches the name of a Postgres type, which may follow a start in `SAFE_STARTS`. */
const TYPE_AFTER =
  /^ (?:type )?(?:smallint|integer|bigint|numeric|real|double precision|boolean|timestamp with(?:out)? time zone|time with(?:out)? time zone|timestamp|time|date|interval|uuid|jsonb|json|bytea|inet|cidr|macaddr|point|xid|oid|bit|money|xml|vector|character varying)(?=[(:\s]|$)/;

export function toLoggable(error: UpstreamError): LoggableError {
  const { sqlstate, routine, schema, table, column, constraint, dataType } = error;
  const names = [schema, table, column, constraint, dataType].filter((name) => name !== null);
  const isUserText = routine !== null && USER_TEXT.test(routine) && !RIGHTS_MESSAGES.has(error.message);
  return Object.freeze({
    sqlstate,
    message: isUserText ? null : messageOf(error),
    routine,
    about: isUserText || names.length === 0 ? null : names.join('.'),
  });
}

function messageOf({ sqlstate, message, routine }: UpstreamError): string | null {
  if (RIGHTS_MESSAGES.has(message)) return message;
  if (SAFE_CLASSES.has(sqlstate.slice(0, 2)))
    return routine !== null && NAMES_ONLY.has(routine) ? message : beforeQuotes(message);
  const matching = SAFE_STARTS.filter(
    (words) => message.startsWith(words) && !/^\w/.test(message.slice(words.length)),
  );
  const longest = matching.reduce((a, b) => (b.length > a.length ? b : a), '');
  if (longest === '') return null;
  const rest = message.slice(longest.length);
  return `${longest}${TYPE_AFTER.exec(rest)?.[0] ?? ''}`;
}

/** Returns the message up to the first character that could begin a value, in any language; null if that is empty. */
function beforeQuotes(message: string): string | null {
  const words = /^[\p{L}\p{M} ,/_-]*/u.exec(message)?.[0].trim() ?? '';
  return words === '' ? null : words;
}

/** The connector has no URL for system credentials. */
export class NoSystemCredentials extends Error {
  constructor() {
    super('this connector has no system credentials');
    this.name = 'NoSystemCredentials';
  }
}

/** A statement of the gateway itself failed. The message contains no row value, so logs may show it. */
export class UpstreamFailure extends Error {
  readonly sqlstate: string;

  constructor(error: UpstreamError) {
    const { message, about } = toLoggable(error);
    super(`${message ?? `the database said ${error.sqlstate}`}${about === null ? '' : ` (${about})`}`);
    this.name = 'UpstreamFailure';
    this.sqlstate = error.sqlstate;
  }
}

/** Properties of a server that explain its errors. */
export interface ErrorSource {
  /** `statement_timeout` of its sessions, in seconds. */
  readonly backstopSeconds: number;
  /** Explains an error that only this kind of server raises; null for every other error. */
  readonly refusalOf: (error: Pick<UpstreamError, 'sqlstate' | 'message'>) => QueryError | null;
}
