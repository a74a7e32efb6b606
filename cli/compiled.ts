import { QueryError } from 'osl-compiler';
import { EXIT, Failure } from './exit.js';

/** Runs `work`, which calls the compiler. @throws Failure with code and message if the compiler refuses */
export function compiled<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof QueryError) throw new Failure(EXIT.failed, `error ${error.code}: ${error.message}`);
    throw error;
  }
}
