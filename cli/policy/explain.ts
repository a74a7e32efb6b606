import { type ClientFlags, serverAccess } from '../ask.js';
import { postDocument } from '../client.js';
import { usage } from '../exit.js';
import { visibilityWords } from '../explanation.js';
import { fieldsOf, print, visible } from '../output.js';
import { bodyOf } from '../reply.js';

interface ExplainAccessFlags extends ClientFlags {
  readonly object: string;
  readonly as?: string;
  readonly asChain?: readonly string[];
  readonly asRoles?: readonly string[];
  readonly at?: string;
  readonly on?: string;
  readonly from?: string;
  readonly for?: string;
  readonly row?: readonly string[];
}

export async function runExplainAccess(flags: ExplainAccessFlags): Promise<void> {
  const { object, as, asChain, asRoles, row } = flags;
  if (as === undefined && asChain === undefined) throw usage('name the caller with --as or --as-chain');
  const { url, token } = await serverAccess(flags, 'admin');
  const question = {
    object,
    as: as ?? null,
    chain: asChain ?? null,
    roles: asRoles ?? null,
    row: row ?? null,
    at: flags.at ?? null,
    surface: flags.on ?? null,
    address: flags.from ?? null,
    purpose: flags.for ?? null,
  };
  const body = bodyOf(await postDocument(url, '/osl/access/explain', token, question), flags.json, '');
  if (flags.json) return;
  for (const line of linesOf(body)) print(visible(line));
}

function* linesOf(body: Readonly<Record<string, unknown>>): Generator<string> {
  const { object, chain, sees, label, mask, row } = body;
  const who = textsOf(chain).join(' → ');
  const how = label === null ? '' : ` (label ${label}, mask ${mask})`;
  yield `${who} sees ${object} ${visibilityWords(sees)}${how}`;
  for (const column of listOf(body['columns']))
    yield `  ${fieldsOf(column)['name']}: ${visibilityWords(fieldsOf(column)['sees'])}`;
  for (const reason of textsOf(body['because'])) yield `- ${reason}`;
  for (const grant of listOf(body['grants'])) yield grantText(fieldsOf(grant));
  if (row === null) return;
  const { key, visible: isVisible, shown_by, taken_away_by } = fieldsOf(row);
  const found =
    isVisible === true ? `is seen, by ${textsOf(shown_by).join(', ')}` : 'is not seen, or there is none';
  const taken = textsOf(taken_away_by);
  yield `row ${textsOf(key).join(', ')} ${found}${taken.length === 0 ? '' : `; ${taken.join(', ')} takes it away`}`;
}

function grantText(grant: Readonly<Record<string, unknown>>): string {
  const { rule, columns, rows, unmask, min_group_size, conditions, counts } = grant;
  const parts = [
    `columns ${Array.isArray(columns) ? textsOf(columns).join(', ') : '*'}`,
    ...(rows === null ? [] : [`rows ${rows}`]),
    ...(textsOf(unmask).length === 0 ? [] : [`unmask ${textsOf(unmask).join(', ')}`]),
    ...(conditions === null ? [] : [`counts where ${JSON.stringify(conditions)}`]),
    ...(min_group_size === null ? [] : [`in groups of ${min_group_size} at least`]),
  ];
  return `  ${rule}${counts === true ? '' : ' (does not count)'}: ${parts.join('; ')}`;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textsOf(value: unknown): readonly string[] {
  return listOf(value).map(String);
}
