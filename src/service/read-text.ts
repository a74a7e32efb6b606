import { readFileSync } from 'node:fs';
import { StartProblem } from '../base/start-problem.js';
import { codeOf } from '../base/thrown.js';

/** Reads a file named by the settings. @param what name for messages @throws StartProblem */
export function readText(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const reason = codeOf(error) ?? 'unreadable';
    throw new StartProblem(`${what} ${file} cannot be read (${reason})`);
  }
}
