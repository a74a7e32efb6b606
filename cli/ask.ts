import { type Command, Option } from 'commander';
import { type CallerFlags, callerToken } from './caller.js';
import { type HttpReply, postQuery, type QueryBody, serverUrl } from './client.js';
import { usage } from './exit.js';
import { addCallerOptions, dataDirOption, policyOption, serverOption, settingsOf } from './flags.js';

/** Flags of commands that ask the running server. */
export interface AskFlags extends CallerFlags {
  readonly server?: string;
  readonly dataDir?: string;
}

/** Flags of commands that ask a question. */
export interface QuestionFlags extends AskFlags {
  readonly sql?: true;
  readonly metrics?: true;
}

/** `--token --subject --chain --server --data-dir --policy`. */
export function addAskOptions(command: Command): Command {
  return addCallerOptions(command)
    .addOption(serverOption())
    .addOption(dataDirOption())
    .addOption(policyOption());
}

/** `--sql`, `--metrics`, and what every command that asks the server takes. */
export function addQuestionOptions(command: Command): Command {
  return addAskOptions(command)
    .option('--sql', 'the text is SQL over the tables that the manifest allows')
    .addOption(new Option('--metrics', 'the text is a metrics body, in JSON').conflicts('sql'));
}

/** Has the server explain `text` to whoever the flags say; what goes `upstream` it shows to admins only. */
export async function askToExplain(
  flags: QuestionFlags,
  text: string,
  upstream: 'statement' | 'plan' | null,
): Promise<HttpReply> {
  const { url, token } = await visitor(flags, upstream === null ? 'reader' : 'admin');
  return postQuery(url, token, {
    ...questionOf(flags, text),
    explain: true,
    ...(upstream !== null && { upstream }),
  });
}

/** The body that asks `text`. @throws Failure where it should be a metrics body and is none */
export function questionOf(flags: QuestionFlags, text: string): QueryBody {
  return flags.metrics ? metricsBody(text) : flags.sql ? { sql: text } : { osql: text };
}

/** @throws Failure where the text is no JSON object with `metrics` */
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

/** Where the server is, and a token of whoever the flags say; `admin` where a minted one claims their admin roles. */
export async function visitor(
  flags: AskFlags,
  as: 'reader' | 'admin' = 'reader',
): Promise<{ readonly url: string; readonly token: string }> {
  const settings = settingsOf(flags);
  const url = serverUrl(flags.server, settings);
  const policy = flags.policy === undefined ? {} : { policy: settings.policyFile };
  const caller = await callerToken({ ...flags, ...policy }, settings, as);
  return { url, token: caller.kind === 'given' ? caller.token : caller.issued.token };
}

/** The question: the argument, or standard input where it is `-` or absent. @throws Failure where there is none */
export async function questionText(argument: string | undefined): Promise<string> {
  if (argument !== undefined && argument !== '-') return argument;
  if (argument === undefined && process.stdin.isTTY) throw usage('say what to ask: osl query "select …"');
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}
