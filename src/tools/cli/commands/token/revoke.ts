import { text as textOfStream } from 'node:stream/consumers';
import type { Command } from 'commander';
import { postDocument } from '../../client.js';
import { EXIT, usage } from '../../exit.js';
import { type Fields, textOf } from '../../fields.js';
import { addOperatorOptions, OPERATOR_HELP, type OperatorFlags, operator } from '../../operator.js';
import { note, print } from '../../output.js';
import { bodyOf } from '../../reply.js';

interface RevokeFlags extends OperatorFlags {
  readonly allOf?: string;
  readonly session?: string;
  readonly json?: true;
}

const HELP = `${OPERATOR_HELP}
A token is taken apart here: only its id is sent. Sessions and answers under a revoked token end, also those of other
gateways. With --all-of, every token ends that has the subject in its chain and was issued before now; so does a session
of an account or a certificate, which may be opened again: to prevent that, change the policy. The exit status is 1
where other gateways could not be told yet.

Examples:
  $ osl token revoke 5a1f2c3d-7c1e-4b56-9b0a-1d2e3f405162 --subject user:admin
  $ pbpaste | osl token revoke - --subject user:admin
  $ osl token revoke --all-of user:analyst --subject user:admin
  $ osl token revoke --session 1048577 --subject user:admin`;

export function addRevoke(parent: Command): void {
  const command = parent
    .command('revoke')
    .description('end a token, that of a session, or all of a subject, before they end by themselves')
    .argument('[token]', 'the token, or its `jti`; - reads standard input')
    .option('--all-of <subject>', 'all tokens of this subject that were issued before now')
    .option('--session <id>', 'the token of this session, or request, as `osl ps` has it');
  addOperatorOptions(command)
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runRevoke);
}

async function runRevoke(given: string | undefined, flags: RevokeFlags): Promise<void> {
  const asked = await askedBy(given, flags);
  const { url, token } = operator(flags);
  const body = bodyOf(await postDocument(url, '/admin/tokens/revoke', await token(), asked), flags.json);
  if (!flags.json) print(revokedText(body));
  if (body['shared'] !== false) return;
  note('warning: other gateways do not know it yet: the control database is asked again every second');
  process.exitCode = EXIT.failed;
}

/** What is to be revoked. @throws Failure where that is nothing, or more than one */
async function askedBy(given: string | undefined, { allOf, session }: RevokeFlags): Promise<object> {
  if ([given, allOf, session].filter((one) => one !== undefined).length !== 1)
    throw usage('say what to revoke: a token or its `jti`, --all-of a subject, or the token of a --session');
  if (allOf !== undefined) return { subject: allOf };
  if (session !== undefined) return { session };
  return {
    token_id: await tokenId((given === '-' ? await textOfStream(process.stdin) : (given ?? '')).trim()),
  };
}

/** @throws Failure for a part of a token, which nobody should be shown */
async function tokenId(text: string): Promise<string> {
  if (!text.startsWith('eyJ')) return text;
  const { tokenIdIn } = await import('../../../../../policy/index.js');
  try {
    return tokenIdIn(text);
  } catch {
    throw usage('this is no whole token: name its `jti`, or --all-of its subject');
  }
}

function revokedText({ kind, name, at, until }: Fields): string {
  const what =
    kind === 'subject' ? `tokens of ${textOf(name)} issued before ${textOf(at)}` : `token ${textOf(name)}`;
  return `revoked ${what} (kept until ${textOf(until)}, when they have all ended)`;
}
