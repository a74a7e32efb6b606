import { QueryError } from 'osl-compiler';
import { EXIT, Failure } from './exit.js';

/** Runs work of the compiler. @throws Failure with the code and message of a refusal */
export function compiled<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof QueryError) throw new Failure(EXIT.failed, `error ${error.code}: ${error.message}`);
    throw error;
  }
}
