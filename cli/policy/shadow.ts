import { LONGEST_SHADOW_SECONDS } from '../../src/ask/shadow/shadow-report.js';
import { policyText } from '../../src/base/control/index.js';
import { readManifestText } from '../../src/model/manifest/index.js';
import { adminAccess, type OperatorFlags } from '../ask.js';
import { getDocument, type HttpReply, postDocument } from '../client.js';
import { usage } from '../exit.js';
import { counted, fieldsOf, listOf, membersOf, print, type ReplyFields, textOf, visible } from '../output.js';
import { bodyOf } from '../reply.js';
import { tenantFor } from './baseline.js';
import { withControl } from './versions.js';

export interface ShadowFlags extends OperatorFlags {
  readonly for?: string;
  readonly tenant?: string;
}

const SHADOW = '/admin/policy/shadow';

/** @param policy file of the policy, or its version number in the control database */
export async function runShadowStart(policy: string, flags: ShadowFlags): Promise<void> {
  const text = await policyOf(policy, flags);
  const for_seconds = flags.for === undefined ? null : secondsIn(flags.for);
  const { url, token } = adminAccess(flags);
  show(await postDocument(url, `${SHADOW}/start`, await token(), { policy: text, for_seconds }), flags);
}

export async function runShadowReport(flags: ShadowFlags): Promise<void> {
  const { url, token } = adminAccess(flags);
  show(await getDocument(url, SHADOW, await token()), flags);
}

export async function runShadowStop(flags: ShadowFlags): Promise<void> {
  const { url, token } = adminAccess(flags);
  show(await postDocument(url, `${SHADOW}/stop`, await token(), {}), flags);
}

function policyOf(policy: string, flags: ShadowFlags): Promise<string> {
  if (!/^\d{1,9}$/.test(policy)) return readManifestText(policy);
  return withControl(async ({ database }) => {
    const { tenant } = flags;
    const text = await policyText(
      database,
      await tenantFor(database, tenant === undefined ? {} : { tenant }),
      Number(policy),
    );
    if (text === null) throw usage(`there is no version ${policy}: osl policy history lists them`);
    return text;
  });
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Parses a duration such as `2h` into seconds. @throws Failure if it is malformed or out of range */
function secondsIn(text: string): number {
  const [, number, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const seconds = Number(number) * (UNITS[unit] ?? 1);
  if (seconds >= 1 && seconds <= LONGEST_SHADOW_SECONDS) return seconds;
  throw usage(`--for ${text}: a number with s, m, h or d, such as 2h; at least 1s, at most 7d`);
}

function show(reply: HttpReply, { json }: ShadowFlags): void {
  const body = bodyOf(reply, json);
  if (!json) for (const line of shadowLines(body)) print(visible(line));
}

export function* shadowLines(view: ReplyFields): Generator<string> {
  if (view['shadow'] === null) {
    yield 'no policy has been compared since this server started';
    return;
  }
  const shadow = fieldsOf(view['shadow']);
  const processes = fieldsOf(view['processes']);
  const of = (name: string): string => textOf(shadow[name]);
  const state = of('state') === 'running' ? 'running' : `${of('state')} ${of('ended_at')}`;
  yield `policy ${of('policy').slice(0, 12)}: ${state}; started ${of('started_at')} by ${of('by')}, until ${of('until')}`;
  if (processes['all'] !== processes['comparing'] && state === 'running')
    yield `${textOf(processes['comparing'])} of ${textOf(processes['all'])} processes compare`;
  yield `${counted(numberIn(shadow, 'questions'), 'question', 'questions')}: ${of('same')} alike, ${of('different')} otherwise, ${of('waiting')} waiting${notComparedText(fieldsOf(shadow['not_compared']))}`;
  for (const row of membersOf(shadow['rows'])) yield* rowLines(row);
  if (numberIn(shadow, 'rows_left_out') > 0) yield `${of('rows_left_out')} more callers and objects`;
}

function notComparedText(reasons: ReplyFields): string {
  const some = Object.keys(reasons).filter((name) => numberIn(reasons, name) > 0);
  return some
    .map((name) => `, ${textOf(reasons[name])} not compared (${name.replaceAll('_', ' ')})`)
    .join('');
}

const EFFECTS = [
  ['refused', 'refused'],
  ['allowed', 'newly answered'],
  ['masked', 'masked'],
  ['shown', 'newly shown'],
  ['narrower', 'fewer rows'],
  ['wider', 'more rows'],
  ['other_rows', 'other rows'],
  ['other_masks', 'other masks'],
  ['groups', 'other group rules'],
] as const;

function* rowLines(row: ReplyFields): Generator<string> {
  const codes = listOf(row['codes']).join(', ');
  const masked = membersOf(row['masked_columns']).map((m) => `${textOf(m['column'])}: ${textOf(m['mask'])}`);
  const details: Readonly<Record<string, string>> = {
    refused: codes,
    allowed: codes,
    masked: masked.join(', '),
    shown: listOf(row['shown_columns']).join(', '),
  };
  const effects = EFFECTS.filter(([name]) => numberIn(row, name) > 0).map(([name, words]) => {
    const detail = details[name] ?? '';
    return `${textOf(row[name])} ${words}${detail === '' ? '' : ` (${detail})`}`;
  });
  yield `${listOf(row['chain']).join(' → ')}: ${textOf(row['object'])}: ${effects.join(', ')}`;
  for (const example of membersOf(row['examples']))
    yield `    ${textOf(example['questions'])} × ${textOf(example['shape'])}`;
}

function numberIn(fields: ReplyFields, name: string): number {
  return Number(fields[name] ?? 0);
}
