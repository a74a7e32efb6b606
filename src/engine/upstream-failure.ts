import { type UpstreamError, wordsOf } from './upstream-report.js';

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
    const { message, about } = wordsOf(error);
    super(`${message ?? `the database said ${error.sqlstate}`}${about === null ? '' : ` (${about})`}`);
    this.name = 'UpstreamFailure';
    this.sqlstate = error.sqlstate;
  }
}
