/** Optional error fields; only those that are set are sent. */
export interface WireErrorFields {
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
  /** 1-based offset in the statement's own text, in Unicode code points. */
  readonly position?: number | undefined;
  /**
   * The name of the Postgres function that raises this error; some clients use it to distinguish errors with the same
   * SQLSTATE.
   */
  readonly routine?: string | undefined;
}

export type ErrorSeverity = 'ERROR' | 'FATAL';

/**
 * An error whose fields are all safe to show to the client. `ERROR` fails the statement, `FATAL` ends the connection.
 * Any other exception becomes `XX000 internal error` without its cause.
 */
export class WireError extends Error {
  override readonly name = 'WireError';
  readonly severity: ErrorSeverity;
  readonly sqlstate: string;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
  readonly position: number | undefined;
  readonly routine: string | undefined;
  /** The original error if this is a copy with another severity or position; otherwise this error. */
  readonly origin: WireError;

  constructor(
    severity: ErrorSeverity,
    sqlstate: string,
    message: string,
    fields: WireErrorFields = {},
    origin: WireError | null = null,
  ) {
    super(message);
    this.severity = severity;
    this.sqlstate = sqlstate;
    this.detail = fields.detail;
    this.hint = fields.hint;
    this.position = fields.position;
    this.routine = fields.routine;
    this.origin = origin ?? this;
  }

  withSeverity(severity: ErrorSeverity): WireError {
    return severity === this.severity
      ? this
      : new WireError(severity, this.sqlstate, this.message, this, this.origin);
  }

  /** Returns a copy without a position, for an error in a text that the client did not send. */
  withoutPosition(): WireError {
    if (this.position === undefined) return this;
    const fields = { ...fieldsOf(this), position: undefined };
    return new WireError(this.severity, this.sqlstate, this.message, fields, this.origin);
  }

  /** Returns a copy with the position shifted by `characters`, for a statement inside a longer text. */
  withShiftedPosition(characters: number): WireError {
    if (this.position === undefined || characters === 0) return this;
    const position = this.position + characters;
    return new WireError(
      this.severity,
      this.sqlstate,
      this.message,
      { ...fieldsOf(this), position },
      this.origin,
    );
  }
}

function fieldsOf(error: WireError): WireErrorFields {
  const { detail, hint, position, routine } = error;
  return { detail, hint, position, routine };
}

export function error(sqlstate: string, message: string, fields?: WireErrorFields): WireError {
  return new WireError('ERROR', sqlstate, message, fields);
}

export function fatal(sqlstate: string, message: string, fields?: WireErrorFields): WireError {
  return new WireError('FATAL', sqlstate, message, fields);
}

/**
 * Creates 28P01, both for a wrong password and for a password refused after too many guesses; clients cannot tell them
 * apart.
 */
export function wrongPassword(user: string): WireError {
  return fatal('28P01', `password authentication failed for user "${user}"`, {
    hint: 'After several wrong passwords the right one is refused too, for some minutes.',
  });
}

/** Creates 08P01, for messages whose framing is valid but whose content is not. */
export function protocolViolation(message: string): WireError {
  return error('08P01', message);
}

/** Creates the error that a client gets for a bug, without details. */
export function internalError(severity: ErrorSeverity): WireError {
  return new WireError(severity, 'XX000', 'internal error');
}
