import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { StartProblem } from '../base/start-problem.js';
import { CONNECTION_FAULTS, codeOf } from '../base/thrown.js';
import type { Environment } from './settings/table.js';

/**
 * Returns the connection URL from the first of these variables that is set: `<name>` holds the URL, `<name>_FILE` names
 * a file that contains it, `<name>_COMMAND` is a command that prints it. Returns null if none is set.
 *
 * @throws StartProblem for an unreadable or empty file, or if the command does not print exactly one URL; CommandFailed
 */
export async function connectorUrl(env: Environment, name: string): Promise<string | null> {
  const url = env[name] ?? '';
  if (url !== '') return url;
  const file = env[`${name}_FILE`] ?? '';
  if (file !== '') return readUrlFile(file);
  const command = env[`${name}_COMMAND`] ?? '';
  return command === '' ? null : runUrlCommand(`${name}_COMMAND`, command);
}

/** The command failed or timed out; this may be temporary. */
export class CommandFailed extends StartProblem {}

/** True if any of the variables of `connectorUrl` is set. */
export function hasUrlVariable(env: Environment, name: string): boolean {
  return ['', '_FILE', '_COMMAND'].some((ending) => (env[`${name}${ending}`] ?? '') !== '');
}

export function readUrlFile(file: string): string {
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

/** Returns the URL that a command prints. Its output is never logged, since it may contain a secret. */
function runUrlCommand(name: string, command: string): Promise<string> {
  const limits = { timeout: COMMAND_MS, killSignal: 'SIGKILL', maxBuffer: COMMAND_BYTES } as const;
  return new Promise((resolve, reject) => {
    const child = execFile('/bin/sh', ['-c', command], limits, (failure, stdout) => {
      const url = stdout.trim();
      if (failure !== null) reject(commandFault(name, failure));
      else if (url === '' || /\s/.test(url))
        reject(new StartProblem(`the command in ${name} must print one URL and nothing else`));
      else resolve(url);
    });
    child.stdin?.end();
  });
}

/** The shell's exit statuses for a missing or non-executable command. */
const COMMAND_NOT_RUNNABLE: ReadonlySet<unknown> = new Set([126, 127]);

function commandFault(
  name: string,
  { code, killed }: { readonly code?: unknown; readonly killed?: boolean },
): StartProblem {
  const command = `the command in ${name}`;
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER')
    return new StartProblem(`${command} printed more than ${COMMAND_BYTES} bytes`);
  if (killed === true)
    return new CommandFailed(`${command} was stopped: it took more than ${COMMAND_MS / 1_000} s`);
  const message = `${command} ended with status ${String(code)}`;
  return COMMAND_NOT_RUNNABLE.has(code) ? new StartProblem(message) : new CommandFailed(message);
}

export { withoutPassword } from '../engine/index.js';

const FAULT_TEXTS: ReadonlyMap<string, string> = new Map([
  ...CONNECTION_FAULTS,
  ['EHOSTUNREACH', 'the host cannot be reached'],
  ['ENOENT', 'there is no such socket'],
  ['53300', 'the server takes no more connections'],
  ['57P03', 'the server is starting up'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', "the server's certificate is self-signed: name it with sslrootcert"],
  ['SELF_SIGNED_CERT_IN_CHAIN', "the server's certificate is not trusted: name its issuer with sslrootcert"],
]);

/** Explains a connection failure to the operator. */
export function describeConnectFault(error: unknown): string {
  if (error instanceof AggregateError) return describeConnectFault(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  const { code = '', syscall, path }: NodeJS.ErrnoException = error;
  if (syscall === 'open') return `the file ${path} that the URL names cannot be read (${code})`;
  const known = FAULT_TEXTS.get(code);
  if (known !== undefined) return known;
  if (error.message.includes('password must be a string'))
    return 'the server wants a password, and the URL has none';
  if (error.message === 'timeout expired') return 'no answer in time';
  return error.message.replace(/\s*\n\s*/g, ' ').trim() || code || error.name;
}
