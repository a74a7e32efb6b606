import { type UpstreamError, wordsOf } from './upstream-words.js';
/** A connector was given no URL of a role for our own statements. */
export class NoSystemCredentials extends Error {
  constructor() {
    super('this connector has no system credentials');
    this.name = 'NoSystemCredentials';
  }
}

/** A failure of one of our own statements; its words hold no value of a row, as logs and terminals show them. */
export class UpstreamFailure extends Error {
  readonly sqlstate: string;

  constructor(error: UpstreamError) {
    const { message, about } = wordsOf(error);
    super(`${message ?? `the database said ${error.sqlstate}`}${about === null ? '' : ` (${about})`}`);
    this.name = 'UpstreamFailure';
    this.sqlstate = error.sqlstate;
  }
}
