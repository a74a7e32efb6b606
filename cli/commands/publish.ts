import { type Command, InvalidArgumentError, Option } from 'commander';
import { addClientOptions, type ClientFlags, serverAccess } from '../ask.js';
import { getDocument, type HttpReply, postDocument } from '../client.js';
import { diagnosticLines, differenceLines } from '../difference.js';
import { EXIT, Failure, usage } from '../exit.js';
import { fieldsOf, listOf, membersOf, note, print, type ReplyFields, textOf } from '../output.js';
import { bodyOf, refusal } from '../reply.js';
import { formatTable } from '../table.js';

interface PublishFlags extends ClientFlags {
  readonly baseVersion?: string;
  readonly draft?: true;
  readonly check?: true;
  readonly fromDraft?: string;
  readonly deprecate?: readonly (readonly [string, string])[];
  readonly restore?: readonly string[];
  readonly withdraw?: readonly string[];
  readonly rollback?: string;
}

const HELP = `
A fragment has members of a manifest, which take the places of those of their names. The manifest file stays as it is:
what is published is a layer over it, version by version. Prints what changes, and which roles gain or lose access.
Takes an admin role: a minted token claims those that the policy gives the subject.
Without --base-version a change is for what is served at this moment; with it, another version served is a refusal.

Exit status: 0 published, or there already; 1 refused; 2 it could not be served, or usage; 3 no server answers.

Examples:
  $ osl publish metrics.yaml --check --subject user:admin
  $ osl publish metrics.yaml --base-version 3580440b55cbdd9c88ba3db0fe4b8475 --subject user:admin
  $ osl publish --deprecate "metrics.revenue=use net_revenue" --subject user:admin
  $ osl publish --rollback 3 --subject user:admin`;

export function addPublish(program: Command): void {
  const command = program.command('publish').argument('[fragment]', 'a YAML file');
  addClientOptions(command)
    .option('--base-version <version>', 'the manifest version that the change was made for')
    .addOption(new Option('--draft', 'keep the fragment, and publish nothing').conflicts('baseVersion'))
    .addOption(
      new Option('--check', 'only say what it would change, and for whom').conflicts([
        'draft',
        'baseVersion',
      ]),
    )
    .option('--from-draft <id>', 'publish a draft; with --check, validate it')
    .addOption(
      new Option('--deprecate <object=reason>', 'say that an object should not be used any more').argParser(
        reason,
      ),
    )
    .addOption(new Option('--restore <object>', 'take that back').argParser(collect))
    .addOption(new Option('--withdraw <object>', 'take a published object away').argParser(collect))
    .option('--rollback <version>', 'publish an earlier version again; 0 is the manifest file alone')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runPublish);
}

async function runPublish(file: string | undefined, flags: PublishFlags): Promise<void> {
  const asked = await changeOf(file, flags);
  const { url, token } = await serverAccess(flags, 'admin');
  const reply = flags.check
    ? await postDocument(url, '/osl/validate', token, asked)
    : await postDocument(url, '/osl/objects', token, { ...asked, ...(await baseOf(flags, url, token)) });
  if (flags.json) print(reply.text);
  const source = file ?? 'draft';
  if (reply.status === 422 && Array.isArray(reply.body['diagnostics'])) throw unservable(reply, source);
  if (!reply.ok) throw refusal(reply, '');
  const findings = reply.body['diagnostics'];
  if (flags.check && (reply.body['ok'] !== true || (Array.isArray(findings) && findings.length > 0)))
    throw unservable(reply, source);
  if (flags.json) return;
  for (const line of resultLines(reply)) print(line);
  for (const line of listOf(reply.body['notes'])) note(`note: ${line}`);
}

type PublishRequest = Readonly<Record<string, unknown>>;

async function changeOf(file: string | undefined, flags: PublishFlags): Promise<PublishRequest> {
  const reasons = [...(flags.deprecate ?? []), ...(flags.restore ?? []).map((name) => [name, null] as const)];
  const changes: PublishRequest[] = [];
  if (file !== undefined) {
    const { readManifestText } = await import('../../src/model/manifest/index.js');
    changes.push({ fragment: await readManifestText(file), ...(flags.draft && { state: 'draft' }) });
  }
  if (flags.fromDraft !== undefined) changes.push({ draft: flags.fromDraft });
  if (reasons.length > 0) changes.push({ deprecate: Object.fromEntries(reasons) });
  if (flags.withdraw !== undefined) changes.push({ withdraw: flags.withdraw });
  if (flags.rollback !== undefined) changes.push({ rollback: versionOf(flags.rollback) });
  const [only, ...more] = changes;
  if (only === undefined || more.length > 0)
    throw usage('name one change: a file, --from-draft, --deprecate or --restore, --withdraw, or --rollback');
  const checkable = file !== undefined || flags.fromDraft !== undefined;
  if ((flags.check && !checkable) || (flags.draft && file === undefined))
    throw usage(`${flags.check ? '--check' : '--draft'} goes with a file`);
  return only;
}

/** Returns `base_version`: the given version, otherwise the version being served. Drafts have no base version. */
async function baseOf(
  { baseVersion, draft }: PublishFlags,
  url: string,
  token: string,
): Promise<PublishRequest> {
  if (draft) return {};
  if (baseVersion !== undefined) return { base_version: baseVersion };
  const reply = await getDocument(url, '/osl/objects', token);
  if (!reply.ok) throw refusal(reply, '');
  return { base_version: reply.body['version'] };
}

function resultLines({ body }: HttpReply): readonly string[] {
  const draft = fieldsOf(body['draft']);
  const state = draft['id'] === undefined ? [] : [`${textOf(draft['id'])}: ${textOf(draft['state'])}`];
  if (body['diff'] === undefined) return state;
  const version = fieldsOf(body['version']);
  const serves = `serves manifest ${textOf(fieldsOf(body['versions'])['manifest'])}`;
  const last =
    body['changed'] === true
      ? [`published as version ${textOf(version['number'])}; ${serves}`]
      : body['changed'] === false
        ? [`all of it was published already; ${serves}`]
        : [];
  return [...state, ...differenceLines(body['diff']), ...last];
}

function unservable({ body }: HttpReply, file: string): Failure {
  return new Failure(EXIT.usage, diagnosticLines(body['diagnostics'], file).join('\n'));
}

function versionOf(text: string): number | string {
  return /^\d{1,9}$/.test(text) ? Number(text) : text;
}

function reason(
  text: string,
  before: readonly (readonly [string, string])[] = [],
): readonly (readonly [string, string])[] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1)
    throw new InvalidArgumentError('It is written object=reason: "metrics.revenue=use net_revenue".');
  return [...before, [text.slice(0, at), text.slice(at + 1)]];
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

const OBJECTS_HELP = `
Takes an admin role, as \`osl publish\` does.

Examples:
  $ osl objects --subject user:admin
  $ osl objects 3 --json --subject user:admin | jq .version.objects`;

export function addObjects(program: Command): void {
  const command = program.command('objects').argument('[id]', 'a version by number or id, or a draft');
  addClientOptions(command)
    .option('--json', "the server's answer as it is")
    .addHelpText('after', OBJECTS_HELP)
    .action(runObjects);
}

async function runObjects(id: string | undefined, flags: ClientFlags): Promise<void> {
  const { url, token } = await serverAccess(flags, 'admin');
  const path = id === undefined ? '/osl/objects' : `/osl/objects/${encodeURIComponent(id)}`;
  const reply = await getDocument(url, path, token);
  const body = bodyOf(reply, flags.json);
  if (!flags.json) print(id === undefined ? listText(body) : oneText(body));
}

function listText({ version, base, objects, history, drafts, truncated }: ReplyFields): string {
  const published = membersOf(objects).map((o) => [
    textOf(o['name']),
    textOf(o['state']),
    o['over_file'] === true ? 'yes' : '',
  ]);
  const versions = membersOf(history).map((v) => [
    textOf(v['number']),
    textOf(v['action']),
    textOf(v['at']),
    textOf(fieldsOf(v['author'])['subject']),
    textOf(v['manifest']),
  ]);
  const kept = membersOf(drafts).map((d) => [
    textOf(d['id']),
    textOf(d['state']),
    textOf(d['at']),
    textOf(fieldsOf(d['author'])['subject']),
  ]);
  return [
    `serves manifest ${textOf(version)}; the file alone is ${textOf(base)}`,
    ...tableOf(['object', 'state', 'over the file'], published),
    ...tableOf(['version', 'action', 'at', 'by', 'manifest'], versions),
    ...(truncated === true ? ['there are older versions'] : []),
    ...tableOf(['draft', 'state', 'at', 'by'], kept),
  ].join('\n');
}

function tableOf(names: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  if (rows.length === 0) return [];
  return ['', formatTable(names, rows)];
}

function oneText({ kind, draft, version }: ReplyFields): string {
  if (kind === 'draft') {
    const { id, state, text } = fieldsOf(draft);
    // Printed as sent, but with control characters removed.
    const lines = String(text ?? '')
      .split('\n')
      .map(textOf);
    return [`${textOf(id)}: ${textOf(state)}`, '', ...lines].join('\n').trimEnd();
  }
  const { number, action, at, author, restores, ...rest } = fieldsOf(version);
  const of = restores === null || restores === undefined ? '' : ` to ${textOf(restores)}`;
  const head = `version ${textOf(number)}: ${textOf(action)}${of} at ${textOf(at)} by ${textOf(fieldsOf(author)['subject'])}`;
  return [head, ...differenceLines(rest)].join('\n');
}
