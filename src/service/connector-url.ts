import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { StartProblem } from '../base/start-problem.js';
import { codeOf } from '../base/thrown.js';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The URL that a connector takes from the variable `name`, else from the file that `name`_FILE names, as secrets are
 * mounted, else from what the command in `name`_COMMAND prints; null where none of them is set.
 *
 * @throws StartProblem for a file that cannot be read or is empty, and for a command that fails
 */
export async function connectorUrl(env: Environment, name: string): Promise<string | null> {
  const url = env[name] ?? '';
  if (url !== '') return url;
  const file = env[`${name}_FILE`] ?? '';
  if (file !== '') return urlInFile(file);
  const command = env[`${name}_COMMAND`] ?? '';
  return command === '' ? null : urlOfCommand(`${name}_COMMAND`, command);
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

const COMMAND_MS = 10_000;
const COMMAND_BYTES = 65_536;

/** What the command prints is never told, nor is what it complains of: either may hold a secret. */
function urlOfCommand(name: string, command: string): Promise<string> {
  const limits = { timeout: COMMAND_MS, killSignal: 'SIGKILL', maxBuffer: COMMAND_BYTES } as const;
  return new Promise((resolve, reject) => {
    const child = execFile('/bin/sh', ['-c', command], limits, (failure, stdout) => {
      const url = stdout.trim();
      if (failure !== null) reject(new StartProblem(`the command in ${name} ${faultOf(failure)}`));
      else if (url === '' || /\s/.test(url))
        reject(new StartProblem(`the command in ${name} must print one URL and nothing else`));
      else resolve(url);
    });
    child.stdin?.end();
  });
}

function faultOf({ code, killed }: { readonly code?: unknown; readonly killed?: boolean }): string {
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `printed more than ${COMMAND_BYTES} bytes`;
  if (killed === true) return `was stopped: it took more than ${COMMAND_MS / 1_000} s`;
  return `ended with status ${String(code)}`;
}
