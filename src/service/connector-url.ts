import { readFileSync } from 'node:fs';
import { StartProblem } from '../base/start-problem.js';
import { codeOf } from '../base/thrown.js';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The URL that a connector takes from the variable `name`, else from the file that `name`_FILE names, as secrets are
 * mounted; null where neither is set.
 *
 * @throws StartProblem for a file that cannot be read, or is empty
 */
export function connectorUrl(env: Environment, name: string): string | null {
  const url = env[name];
  if (url !== undefined && url !== '') return url;
  const file = env[`${name}_FILE`];
  return file === undefined || file === '' ? null : urlInFile(file);
}

/** The one line of a file. @throws StartProblem */
export function urlInFile(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const reason = codeOf(error) ?? 'unreadable';
    throw new StartProblem(`the file of the connection URL, ${file}, cannot be read (${reason})`);
  }
  if (text === '') throw new StartProblem(`the file of the connection URL, ${file}, is empty`);
  return text;
}
