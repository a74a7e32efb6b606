import type { Command } from 'commander';
import { addClientOptions, type ClientFlags, serverAccess } from '../ask.js';
import { getDocument, postDocument } from '../client.js';
import { wholeNumber } from '../flags.js';
import { listOf, membersOf, print, type ReplyFields, textOf, visible } from '../output.js';
import { bodyOf } from '../reply.js';

const HELP = `
Lists the requests that the caller may decide or has made; with an admin role all of them, without their texts. A query
is refused with E0535 if it needs an approval; \`osl query --approval-reason\` requests it.

Examples:
  $ osl approvals --subject user:steward`;

export function addApprovals(program: Command): void {
  const command = program.command('approvals');
  addClientOptions(command)
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runList);
  addClientOptions(command.command('approve').description('approve a request'))
    .argument('<id>', 'ID of the request')
    .option('--json', "the server's answer as it is")
    .option(
      '--minutes <n>',
      'minutes that the approval lasts; default: those of the grant',
      wholeNumber(1, 43_200),
    )
    .option('--for-task', 'only for the task that the request names')
    .action((id: string, flags: ApproveFlags) => {
      const { minutes = null, forTask = false } = flags;
      return runDecision(id, { decision: 'approve', minutes, for_task: forTask }, flags);
    })
    .addHelpText('after', exampleOf('approve', ' --minutes 20'));
  for (const [decision, description] of [
    ['decline', 'decline a request'],
    ['revoke', 'end an approval before its time'],
  ] as const)
    addClientOptions(command.command(decision).description(description))
      .argument('<id>', 'ID of the request')
      .option('--json', "the server's answer as it is")
      .addHelpText('after', exampleOf(decision))
      .action((id: string, flags: ClientFlags) => runDecision(id, { decision }, flags));
}

function exampleOf(decision: string, options = ''): string {
  return `\nExample:\n  $ osl approvals ${decision} 6e0cf0a4-7b0e-4c0c-8f0e-3f1f7f3b2a10${options} --subject user:steward`;
}

interface ApproveFlags extends ClientFlags {
  readonly minutes?: number;
  readonly forTask?: boolean;
}

async function runList(flags: ClientFlags): Promise<void> {
  const { url, token } = await serverAccess(flags, 'admin');
  const body = bodyOf(await getDocument(url, '/osl/approvals', token), flags.json);
  if (flags.json) return;
  const approvals = membersOf(body['approvals']);
  print(approvals.length === 0 ? 'no requests' : approvals.map(approvalText).join('\n\n'));
}

function approvalText(approval: ReplyFields): string {
  const { id, state, chain, reason, purpose, task, statement, statement_shape: shape, grants } = approval;
  const named = (name: string, value: unknown): readonly string[] =>
    value == null ? [] : [`  ${name}: ${visible(textOf(value))}`];
  return [
    `${textOf(id)} ${textOf(state)}: ${visible(listOf(chain).join(' > '))}`,
    ...named('reason', reason),
    ...named('purpose', purpose),
    ...named('task', task),
    ...named('statement', statement ?? shape),
    ...membersOf(grants).map(
      // Only approvers see the grant.
      ({ on, grant }) =>
        `  on ${visible(textOf(on))}${grant === null ? '' : `: ${visible(JSON.stringify(grant))}`}`,
    ),
    ...named('decided by', approval['decided_by']),
    ...named('until', approval['ends_at'] ?? approval['expires_at']),
  ].join('\n');
}

async function runDecision(id: string, verdict: object, flags: ClientFlags): Promise<void> {
  const { url, token } = await serverAccess(flags, 'admin');
  const path = `/osl/approvals/${encodeURIComponent(id)}`;
  const { state, ends_at: ends } = bodyOf(await postDocument(url, path, token, verdict), flags.json);
  if (flags.json) return;
  print(state === 'approved' ? `approved, until ${textOf(ends)}` : textOf(state));
}
