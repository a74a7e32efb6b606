import { messageOf } from '../thrown.js';

/** Failure of the control database, in words for the operator; `cause` is the error of `pg` or the system. */
export class ControlFault extends Error {
  override readonly name = 'ControlFault';
  /** SQLSTATE, or the system's error code; null if there is none. */
  readonly code: string | null;

  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.code = codeIn(cause);
  }

  /** True if a concurrent transaction wrote the same rows. */
  get isConflict(): boolean {
    return this.code === '23505' || this.code === '40001';
  }
}

/** Turns an error of a statement or a connection into a ControlFault. Its message has no value and no password. */
export function controlFault(error: unknown): ControlFault {
  if (error instanceof ControlFault) return error;
  const code = codeIn(error);
  const words = (code === null ? undefined : WORDS.get(code)) ?? messageOf(error);
  return new ControlFault(`the control database: ${words.replace(/\s*\n\s*/g, ' ')}`, error);
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'nothing listens there'],
  ['ENOTFOUND', 'the host is not known'],
  ['EAI_AGAIN', 'the host is not known'],
  ['ETIMEDOUT', 'no answer in time'],
  ['ECONNRESET', 'the connection was cut'],
  ['28P01', 'the password is wrong, or the role does not exist'],
  ['3D000', 'there is no such database'],
  ['3F000', 'there is no schema osl_control: `osl control migrate` makes it'],
  ['42P01', 'a table of osl_control is missing: `osl control migrate` makes it'],
  ['42501', 'the role may not do this: `osl control migrate` grants each role what it needs'],
  ['57014', 'no answer in time'],
  ['55P03', 'no answer in time: somebody holds a lock'],
]);

function codeIn(error: unknown): string | null {
  if (error instanceof AggregateError) return codeIn(error.errors[0]);
  if (typeof error !== 'object' || error === null || !('code' in error)) return null;
  return typeof error.code === 'string' ? error.code : null;
}
