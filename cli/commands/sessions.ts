import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { addOperatorOptions, adminAccess, OPERATOR_HELP, type OperatorFlags } from '../ask.js';
import { getDocument, postDocument } from '../client.js';
import { wholeNumber } from '../flags.js';
import { CLEAR, fieldsOf, listOf, membersOf, print, type ReplyFields, textOf } from '../output.js';
import { bodyOf } from '../reply.js';
import { formatTable, rowCount } from '../table.js';

const HELP = `${OPERATOR_HELP}
SHAPE is what runs, without its literals and without names that the manifest does not declare.
--limits shows the limits of the policy instead: those shared by many, and those of each chain that is connected.

Examples:
  $ osl ps --subject user:admin
  $ osl ps --limits --of user:ann,user:scout --task T1 --subject user:admin
  $ osl ps --json | jq '.sessions[] | select(.state == "active")'`;

export function addPs(program: Command): void {
  const command = program.command('ps');
  addOperatorOptions(command)
    .option('--limits', 'the use of limits, and when they renew')
    .option('--of <chain>', 'with --limits: only this chain of subjects, separated by commas, root first')
    .option('--task <name>', 'with --limits: limits per task, for this task')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runPs);
}

interface PsFlags extends OperatorFlags {
  readonly limits?: true;
  readonly of?: string;
  readonly task?: string;
}

async function runPs(flags: PsFlags): Promise<void> {
  if (flags.limits) return runLimits(flags);
  const { url, token } = adminAccess(flags);
  const body = bodyOf(await getDocument(url, '/admin/sessions', await token()), flags.json);
  if (!flags.json) print(sessionsText(body));
}

export function sessionsText({ sessions }: ReplyFields, now = Date.now()): string {
  const rows = membersOf(sessions).map((s) => [
    textOf(s['id']),
    textOf(s['surface']),
    listOf(s['chain']).join(' > '),
    textOf(s['state']),
    age(s['state_since'], now),
    textOf(s['process']),
    s['shape'] === null ? listOf(s['objects']).join(', ') : textOf(s['shape']).slice(0, MOST_SHAPE),
  ]);
  const columns = ['id', 'surface', 'who', 'state', 'for', 'process', 'shape'];
  return `${formatTable(columns, rows)}\n${rowCount(rows.length)}`;
}

const MOST_SHAPE = 80;

/**
 * Prints the use of limits by the delegation chain `--of`, otherwise by every chain that has a session or a running
 * request. With `--json`, prints the server's reply for `--of`, or for no chain.
 */
async function runLimits(flags: PsFlags): Promise<void> {
  const { url, token } = adminAccess(flags);
  const read = async (path: string, json?: true): Promise<ReplyFields> =>
    bodyOf(await getDocument(url, path, await token()), json);
  const task = flags.task === undefined ? '' : `&task=${encodeURIComponent(flags.task)}`;
  const pathOf = (chain: string): string => `/admin/limits?chain=${encodeURIComponent(chain)}${task}`;
  if (flags.json || flags.of !== undefined) {
    const body = await read(pathOf(flags.of ?? ''), flags.json);
    if (!flags.json) print(limitsText([body]));
    return;
  }
  const { sessions } = await read('/admin/sessions');
  const chains = new Set(membersOf(sessions).map((s) => listOf(s['chain']).join(',')));
  const bodies: ReplyFields[] = [];
  for (const chain of chains.size === 0 ? [''] : chains) bodies.push(await read(pathOf(chain)));
  print(limitsText(bodies));
}

/** Formats the limits in replies of `/admin/limits` as a table, without duplicates. */
export function limitsText(bodies: readonly ReplyFields[]): string {
  const counted = bodies
    .flatMap(({ quotas }) => membersOf(quotas))
    .filter((quota) => quota['whose'] !== null)
    .map((quota) =>
      ['name', 'whose', 'per', 'used', 'most', 'unit', 'renews_at'].map((m) => textOf(quota[m])),
    );
  const rows = [...new Map(counted.map((row) => [JSON.stringify(row), row])).values()];
  return `${formatTable(['limit', 'whose', 'per', 'used', 'of', 'unit', 'renews at'], rows)}\n${rowCount(rows.length)}`;
}

function age(since: unknown, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(String(since))) / 1_000));
  if (seconds < 100) return `${seconds} s`;
  return seconds < 6_000 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

interface KillFlags extends OperatorFlags {
  readonly cancel?: true;
}

const KILL_HELP = `${OPERATOR_HELP}
The id is that of \`osl ps\`: the process id of a session, or the id of a request.

Examples:
  $ osl kill 1048577 --subject user:admin
  $ osl kill 1048577 --cancel --subject user:admin`;

export function addKill(program: Command): void {
  const command = program.command('kill').argument('<id>', 'as `osl ps` has it');
  addOperatorOptions(command)
    .option('--cancel', 'only what it runs: the session stays')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', KILL_HELP)
    .action(runKill);
}

async function runKill(id: string, flags: KillFlags): Promise<void> {
  const { url, token } = adminAccess(flags);
  const path = `/admin/sessions/${encodeURIComponent(id)}/${flags.cancel ? 'cancel' : 'end'}`;
  bodyOf(await postDocument(url, path, await token(), {}), flags.json);
  if (!flags.json) print(`${flags.cancel ? 'cancelled' : 'ended'} ${textOf(id)}`);
}

interface TopFlags extends OperatorFlags {
  readonly every: number;
  readonly times?: number;
}

const TOP_HELP = `${OPERATOR_HELP}
Each picture is four requests of the limit \`authoring\`. Ctrl-C ends it.

Example:
  $ osl top --every 2 --subject user:admin`;

export function addTop(program: Command): void {
  const command = program.command('top');
  addOperatorOptions(command)
    .option('--every <seconds>', 'how often', wholeNumber(1, 3_600), 2)
    .option('-n, --times <count>', 'so many times, then end', wholeNumber(1, 1_000_000))
    .addHelpText('after', TOP_HELP)
    .action(runTop);
}

async function runTop(flags: TopFlags): Promise<void> {
  const { url, token } = adminAccess(flags);
  for (let n = 0; flags.times === undefined || n < flags.times; n++) {
    if (n > 0) await sleep(1_000 * flags.every);
    const bearer = await token();
    const read = async (path: string): Promise<ReplyFields> =>
      bodyOf(await getDocument(url, path, bearer), undefined);
    const standing = await read('/admin/standing');
    const pools = await read('/admin/pools');
    const sessions = await read('/admin/sessions');
    print(`${process.stdout.isTTY ? CLEAR : ''}${topText(standing, pools, sessions)}`);
  }
}

function topText({ processes }: ReplyFields, { pools }: ReplyFields, sessions: ReplyFields): string {
  const standing = membersOf(processes).map((p) => {
    const audit = fieldsOf(p['audit']);
    return [
      textOf(p['process']),
      textOf(p['sessions']),
      p['draining'] === true ? 'draining' : textOf(p['policy']) === '' ? 'no policy' : 'serves',
      textOf(audit['failing'] ?? audit['waiting']),
    ];
  });
  const rows = membersOf(pools).map((p) =>
    ['process', 'connector', 'standby', 'purpose', 'running', 'waiting', 'open', 'size', 'reach'].map(
      (name) => textOf(p[name]),
    ),
  );
  return [
    formatTable(['process', 'sessions', 'state', 'audit waits'], standing),
    '',
    formatTable(
      ['process', 'database', 'standby', 'purpose', 'running', 'waiting', 'open', 'most', 'reach'],
      rows,
    ),
    '',
    sessionsText(sessions),
    '',
  ].join('\n');
}
