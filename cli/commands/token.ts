import { createInterface } from 'node:readline';
import { text as textOfStream } from 'node:stream/consumers';
import type { Command } from 'commander';
import { splitList } from '../../src/service/settings/types.js';
import { addOperatorOptions, adminAccess, OPERATOR_HELP, type OperatorFlags } from '../ask.js';
import { getDocument, postDocument } from '../client.js';
import { EXIT, failure, usage } from '../exit.js';
import { dataDirOption, policyOption, settingsOf, wholeNumber } from '../flags.js';
import { membersOf, note, print, printJson, type ReplyFields, textOf } from '../output.js';
import { bodyOf } from '../reply.js';
import { formatTable, rowCount } from '../table.js';

interface TokenFlags {
  readonly subject?: string;
  readonly chain?: readonly string[];
  readonly aclRoles?: readonly string[];
  readonly roles?: readonly string[];
  readonly ttl: number;
  readonly dataDir?: string;
  readonly policy?: string;
  readonly json?: true;
}

const HELP = `
Prints the token and nothing else. It is signed with the key in the data directory, and for development: whoever can read
that key may be anybody. A server that has issuers takes none, unless OSL_LOCAL_TOKENS=on; there, osl login.

Examples:
  $ osl token --subject user:analyst
  $ osl token --chain user:counsel,agent:scout          # agent:scout acts for user:counsel
  $ osl token revoke --session 1048577 --subject user:admin   # whoever signed it
  $ curl -H "Authorization: Bearer $(osl token --subject user:analyst)" …`;

export function addToken(program: Command): void {
  const command = program
    .command('token')
    .enablePositionalOptions()
    .option('--subject <name>', 'who it is for; the last of the chain')
    .option('--chain <names>', 'who acts for whom, root first (default: the subject alone)', splitList)
    .option('--acl-roles <names>', "data roles (default: the subject's ceiling in the policy)", splitList)
    .option('--roles <names>', 'admin roles, such as TENANT_ADMIN (default: none)', splitList)
    .option('--ttl <seconds>', 'lifetime, at most 300', wholeNumber(1, 300), 300)
    .addOption(dataDirOption())
    .addOption(policyOption())
    .option('--json', 'the token with its claims, as JSON')
    .addHelpText('after', HELP)
    .action(runToken);
  addRevoke(command);
  addRevoked(command);
}

async function runToken(flags: TokenFlags): Promise<void> {
  const { openIssuer } = await import('../issuer.js');
  const issuer = await openIssuer(settingsOf(flags), settingsOfPolicy(flags));
  const issued = await issuer.mint(flags);
  if (issuer.hasOtherIssuers)
    note('warning: this server has issuers: tokens of its own key are for development (OSL_LOCAL_TOKENS=on)');
  for (const role of issued.unknownRoles) note(`warning: the policy declares no role \`${role}\``);
  const { token, subject, chain, aclRoles } = issued;
  if (flags.json) {
    printJson({ token, subject, chain, acl_roles: aclRoles, roles: flags.roles ?? [], ttl: flags.ttl });
  } else {
    print(token);
  }
  process.exitCode = EXIT.ok;
}

/** Absolute path given by `--policy`; null without it. */
function settingsOfPolicy(flags: TokenFlags): string | null {
  return flags.policy === undefined ? null : settingsOf(flags).policyFile;
}

interface RevokeFlags extends OperatorFlags {
  readonly allOf?: string;
  readonly session?: string;
}

const REVOKE_HELP = `${OPERATOR_HELP}
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
    .addHelpText('after', REVOKE_HELP)
    .action(runRevoke);
}

async function runRevoke(given: string | undefined, flags: RevokeFlags): Promise<void> {
  const asked = await revocationTarget(given, flags);
  const { url, token } = adminAccess(flags);
  const body = bodyOf(await postDocument(url, '/admin/tokens/revoke', await token(), asked), flags.json);
  if (!flags.json) print(revokedText(body));
  if (body['shared'] !== false) return;
  note('warning: other gateways do not know it yet: the control database is asked again every second');
  process.exitCode = EXIT.failed;
}

/** Builds the body of a revocation request. @throws Failure unless exactly one thing to revoke is named */
async function revocationTarget(given: string | undefined, { allOf, session }: RevokeFlags): Promise<object> {
  if ([given, allOf, session].filter((one) => one !== undefined).length !== 1)
    throw usage('say what to revoke: a token or its `jti`, --all-of a subject, or the token of a --session');
  if (allOf !== undefined) return { subject: allOf };
  if (session !== undefined) return { session };
  return {
    token_id: await tokenId((given === '-' ? await textOfStream(process.stdin) : (given ?? '')).trim()),
  };
}

/** Returns the `jti` of a token, or the text if it is a `jti`. @throws Failure for an incomplete token */
async function tokenId(text: string): Promise<string> {
  if (!text.startsWith('eyJ')) return text;
  const { tokenIdIn } = await import('../../policy/index.js');
  try {
    return tokenIdIn(text);
  } catch {
    throw usage('this is not a whole token: name its `jti`, or --all-of its subject');
  }
}

function revokedText({ kind, name, at, until }: ReplyFields): string {
  const what =
    kind === 'subject' ? `tokens of ${textOf(name)} issued before ${textOf(at)}` : `token ${textOf(name)}`;
  return `revoked ${what} (kept until ${textOf(until)}, when they have all ended)`;
}

const REVOKED_HELP = `${OPERATOR_HELP}

Examples:
  $ osl token revoked --subject user:admin`;

export function addRevoked(parent: Command): void {
  const command = parent
    .command('revoked')
    .description('list what is revoked, and has not ended by itself yet');
  addOperatorOptions(command)
    .option('--json', "the server's answer as it is")
    .addHelpText('after', REVOKED_HELP)
    .action(runRevoked);
}

async function runRevoked(flags: OperatorFlags): Promise<void> {
  const { url, token } = adminAccess(flags);
  const body = bodyOf(await getDocument(url, '/admin/tokens/revoked', await token()), flags.json);
  if (!flags.json) print(listText(body));
}

function listText({ revoked }: ReplyFields): string {
  const rows = membersOf(revoked).map(({ kind, name, at, until }) => [kind, name, at, until].map(textOf));
  return `${formatTable(['kind', 'name', 'revoked at', 'until'], rows)}\n${rowCount(rows.length)}`;
}

const SCRAM_HELP = `
Reads a password from standard input, one line, and prints what a policy keeps of it under \`service_accounts\`. The
password cannot be got back from it.

Examples:
  $ osl scram < password.txt
  $ openssl rand -base64 24 | tee password.txt | osl scram`;

export function addScram(program: Command): void {
  program.command('scram').option('--json', 'as JSON').addHelpText('after', SCRAM_HELP).action(runScram);
}

async function runScram(flags: { readonly json?: true }): Promise<void> {
  const password = await firstLine();
  if (password.length < SHORTEST)
    throw failure(`a password of a service account has at least ${SHORTEST} characters`);
  const { makeScramVerifier } = await import('../../wire/index.js');
  const scram = await makeScramVerifier(password);
  if (flags.json) printJson({ scram });
  else print(scram);
  process.exitCode = EXIT.ok;
}

const SHORTEST = 12;

async function firstLine(): Promise<string> {
  for await (const line of createInterface({ input: process.stdin })) return line;
  return '';
}
