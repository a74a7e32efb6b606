import { readFileSync } from 'node:fs';
import { codeOf } from './thrown.js';

/** A problem that the operator can fix. It is reported in one line on standard error, with exit status 2. */
export class StartProblem extends Error {
  override readonly name = 'StartProblem';
}

/** A resource is in use by another process. Reported in one line on standard error, with exit status 1. */
export class InUse extends Error {
  override readonly name = 'InUse';
}

/** Reads a file that the operator named. @param what purpose of the file, for messages @throws StartProblem */
export function readText(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartProblem(`${what} ${file} cannot be read (${codeOf(error) ?? 'unreadable'})`);
  }
}
