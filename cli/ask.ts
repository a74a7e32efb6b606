import { type Command, Option } from 'commander';
import { isLoopbackHost, type Settings } from '../src/service/settings.js';
import { type CallerFlags, callerToken } from './caller.js';
import { type HttpReply, postQuery, type QueryBody, serverUrl } from './client.js';
import { EXIT, Failure, usage } from './exit.js';
import {
  addCallerOptions,
  dataDirOption,
  environmentOption,
  policyOption,
  serverOption,
  settingsOf,
} from './flags.js';
import { runningServer, urlHost } from './server-file.js';

export interface ClientFlags extends CallerFlags {
  readonly server?: string;
  readonly dataDir?: string;
  readonly json?: true;
}

export interface QueryTextFlags extends ClientFlags {
  readonly sql?: true;
  readonly metrics?: true;
}

export function addClientOptions(command: Command): Command {
  return addCallerOptions(command)
    .addOption(serverOption())
    .addOption(dataDirOption())
    .addOption(policyOption());
}

export function addQueryOptions(command: Command): Command {
  return addClientOptions(command)
    .option('--sql', 'the text is SQL over the tables that the manifest allows')
    .addOption(new Option('--metrics', 'the text is a metrics body, in JSON').conflicts('sql'));
}

export async function requestExplanation(
  flags: QueryTextFlags,
  text: string,
  upstream: 'statement' | 'plan' | null,
): Promise<HttpReply> {
  const { url, token } = await serverAccess(flags, upstream === null ? 'reader' : 'admin');
  return postQuery(url, token, {
    ...queryBody(flags, text),
    explain: true,
    ...(upstream !== null && { upstream }),
  });
}

/** Returns the request body. @throws Failure if `--metrics` is set and `text` is not a JSON object with `metrics` */
export function queryBody(flags: QueryTextFlags, text: string): QueryBody {
  return flags.metrics ? metricsBody(text) : flags.sql ? { sql: text } : { osql: text };
}

function metricsBody(text: string): { readonly metrics: unknown } {
  const example = `--metrics takes JSON: '{"metrics": ["package_count"], "group_by": ["package__license"]}'`;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw usage(example);
  }
  if (typeof body !== 'object' || body === null || !('metrics' in body)) throw usage(example);
  return { ...body };
}

/**
 * Returns the address of the server, and a token for the caller given by the flags. With `admin`, the token claims the
 * admin roles that the policy grants, unless the flags or the environment give a token.
 */
export async function serverAccess(
  flags: ClientFlags,
  as: 'reader' | 'admin' = 'reader',
): Promise<{ readonly url: string; readonly token: string }> {
  const settings = settingsOf(flags);
  const url = serverUrl(flags.server, settings);
  const policy = flags.policy === undefined ? {} : { policy: settings.policyFile };
  const caller = await callerToken({ ...flags, ...policy }, settings, as);
  return { url, token: caller.kind === 'given' ? caller.token : caller.issued.token };
}

/**
 * Returns the query from the argument, or from standard input if the argument is `-` or missing.
 *
 * @throws Failure if the argument is missing and standard input is a terminal
 */
export async function queryText(argument: string | undefined): Promise<string> {
  if (argument !== undefined && argument !== '-') return argument;
  if (argument === undefined && process.stdin.isTTY) throw usage('say what to ask: osl query "select …"');
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

export interface OperatorFlags extends CallerFlags {
  readonly admin?: string;
  readonly dataDir?: string;
  readonly json?: true;
}

export const OPERATOR_HELP = `
Asks the admin listener, which OSL_ADMIN_PORT opens, and takes an admin role: docs/operations.md.`;

export function addOperatorOptions(command: Command): Command {
  return addCallerOptions(command)
    .addOption(environmentOption('OSL_ADMIN_URL'))
    .addOption(dataDirOption())
    .addOption(policyOption());
}

/** Returns the admin listener's address and a source of tokens: the given one, or short-lived ones. @throws Failure */
export function adminAccess(flags: OperatorFlags): { readonly url: string; token(): Promise<string> } {
  const settings = settingsOf(flags);
  const policy = flags.policy === undefined ? {} : { policy: settings.policyFile };
  return {
    url: adminUrl(flags.admin, settings),
    token: async () => {
      const caller = await callerToken({ ...flags, ...policy }, settings, 'admin');
      return caller.kind === 'given' ? caller.token : caller.issued.token;
    },
  };
}

function adminUrl(given: string | undefined, settings: Settings): string {
  if (given !== undefined) return given.replace(/\/+$/, '');
  const record = runningServer(settings.dataDir);
  if (record === null)
    throw new Failure(
      EXIT.unreachable,
      `error: no server runs in ${settings.dataDir}: name --data-dir, or --admin with the URL of its admin listener`,
    );
  const { adminHost = '127.0.0.1', adminPort } = record;
  if (adminPort === undefined || adminPort === null)
    throw new Failure(
      EXIT.unreachable,
      'error: the server has no admin listener: start it with OSL_ADMIN_PORT, such as 8643',
    );
  const address = adminHost === '0.0.0.0' ? '127.0.0.1' : adminHost === '::' ? '::1' : adminHost;
  return `${isLoopbackHost(adminHost) ? 'http' : 'https'}://${urlHost(address)}:${adminPort}`;
}
