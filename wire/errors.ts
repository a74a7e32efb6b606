/** Fields of an error beyond severity, SQLSTATE and message. Only fields set here are sent. */
export interface WireErrorFields {
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
  /** 1-based, in characters (Unicode code points) of the statement's own text. */
  readonly position?: number | undefined;
  /** The function of Postgres that clients look for: some tell errors of one SQLSTATE apart by it. */
  readonly routine?: string | undefined;
}

export type Severity = 'ERROR' | 'FATAL';

/**
 * An error whose every field may be shown to the client. `ERROR` fails the statement, `FATAL` ends the
 * connection. Anything else that is thrown becomes `XX000 internal error` without a word about the cause.
 */
export class WireError extends Error {
  override readonly name = 'WireError';
  readonly severity: Severity;
  /** Five characters, for example `42P05`. */
  readonly sqlstate: string;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
  readonly position: number | undefined;
  readonly routine: string | undefined;
  /** The error that this one repeats with another severity or position; itself where it repeats none. */
  readonly origin: WireError;

  constructor(
    severity: Severity,
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

  /** This error with another severity. */
  as(severity: Severity): WireError {
    return severity === this.severity
      ? this
      : new WireError(severity, this.sqlstate, this.message, this, this.origin);
  }

  /** This error without a position, where the client did not send the text that it is one of. */
  unplaced(): WireError {
    if (this.position === undefined) return this;
    const fields = { ...fieldsOf(this), position: undefined };
    return new WireError(this.severity, this.sqlstate, this.message, fields, this.origin);
  }

  /** This error with its position moved `characters` to the right, for a statement inside a longer text. */
  shifted(characters: number): WireError {
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

/** 28P01, for a password that is wrong and for one that is refused as if it were: a client cannot tell which. */
export function wrongPassword(user: string): WireError {
  return fatal('28P01', `password authentication failed for user "${user}"`, {
    hint: 'After several wrong passwords the right one is refused too, for some minutes.',
  });
}

/** 08P01: a message that is framed well but says nonsense. */
export function protocolViolation(message: string): WireError {
  return error('08P01', message);
}

/** Error that a client sees for a bug, without details. */
export function internalError(severity: Severity): WireError {
  return new WireError(severity, 'XX000', 'internal error');
}
