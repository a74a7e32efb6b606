import { QueryError } from 'osl-compiler';
import { type ColumnDescription, error, type WireStatement } from '../../../wire/index.js';
import type { SettingChange } from '../catalog/index.js';
import { type Command, type CommandResult, commandStatement, textColumn } from './command.js';
import { visibleNotices } from './data-statement.js';
import type { SessionParts, SessionState } from './session-state.js';
import { RECEIPT } from './setting-list.js';
import { withResolvedZones } from './settings.js';

const TOKEN = 'osl.token';
const BREAK_GLASS = 'osl.break_glass';
const ONLY_BY_SET: ReadonlySet<string> = new Set([TOKEN, BREAK_GLASS]);
const ALLOWED_IN_FAILED_BLOCK: ReadonlySet<Command['kind']> = new Set(['commit', 'rollback', 'rollback to']);

/** Prepares SET, SHOW, BEGIN and other commands that change the session without touching data. @throws WireError */
export function sessionCommandStatement(session: SessionParts, command: Command): WireStatement {
  const { records, state } = session;
  if (!ALLOWED_IN_FAILED_BLOCK.has(command.kind)) state.block.requireUsable();
  const columns = columnsOf(command, state);
  const markRun = records.holdCommand();
  return commandStatement(columns, () => {
    markRun();
    return runCommand(session, command);
  });
}

function columnsOf(command: Command, state: SessionState): readonly ColumnDescription[] | null {
  if (command.kind === 'unlock')
    return [{ name: command.column, typeOid: VOID, typeLength: 4, typeModifier: -1 }];
  return command.kind === 'show' ? state.shownColumns(command.name).map(textColumn) : null;
}

const VOID = 2278;

async function runCommand(session: SessionParts, command: Command): Promise<CommandResult> {
  const { records, settings, state, channels, cursors } = session;
  if (!ALLOWED_IN_FAILED_BLOCK.has(command.kind)) state.block.requireUsable();
  const token = newTokenOf(command);
  if (token !== null) return renewToken(session, token);
  const assignment = assignmentOf(command, BREAK_GLASS);
  if (assignment !== null) {
    if (command.kind === 'set' && command.local !== null)
      throw error('22023', `parameter "${BREAK_GLASS}" is for the session, not for a transaction`);
    return breakGlass(session, assignment.value);
  }
  if (command.kind === 'listen') return listen(session, command.channel);
  if (command.kind === 'show') await awaitReceipt(session, command.name);
  const opensBlock = command.kind === 'begin' && !state.inBlock;
  const result = state.run(await resolveZones(session, command), state.inMultiStatement);
  if (endsBreakGlass(command)) session.caller.endBreakGlass();
  if (command.kind === 'commit' || command.kind === 'rollback')
    await cursors.endBlock(result.tag !== 'ROLLBACK');
  if (command.kind === 'release' || command.kind === 'rollback to')
    await cursors.endSavepoints(command.kind, state.block.depth);
  if (command.kind === 'discard' && command.target === 'ALL') {
    channels.end(null);
    await cursors.closeAll();
  }
  if (command.kind === 'unlisten') channels.end(command.channel);
  try {
    await records.recordCommand();
  } catch (refusal) {
    // As in Postgres, a BEGIN that fails opens no block, not even a failed one.
    if (opensBlock) state.abandonBlock();
    throw refusal;
  }
  return { ...result, notices: visibleNotices(settings, result.notices ?? []) };
}

/** Resolves the time zones in a command by asking the database, which may be unavailable. @throws WireError */
async function resolveZones({ service, records }: SessionParts, command: Command): Promise<Command> {
  try {
    return await withResolvedZones(service, command);
  } catch (reason) {
    throw reason instanceof QueryError ? records.refusal(reason) : reason;
  }
}

/**
 * `SET osl.token`: continues the session with a newer token of the same caller. The token is never displayed or
 * logged.
 */
async function renewToken({ caller, records }: SessionParts, token: string): Promise<CommandResult> {
  const call = caller.newCall();
  await records.translate(call.requestId, '', () => caller.renew(call, token));
  return { tag: 'SET' };
}

/**
 * Runs LISTEN. The first run of the channel's query is a separate request, subject to limits and recorded in the audit
 * log.
 */
async function listen(session: SessionParts, channel: string): Promise<CommandResult> {
  const { caller, records, state, channels, running } = session;
  if (state.inBlock || state.inMultiStatement)
    throw error('25001', 'LISTEN cannot run inside a transaction block or with other statements');
  const call = caller.newCall();
  await records.translate(call.requestId, '', () => channels.listen(call, channel, running));
  return { tag: 'LISTEN' };
}

/**
 * `SET osl.break_glass`: activates emergency grants in this session for a limited time; a null `reason` deactivates
 * them.
 */
async function breakGlass({ caller, records }: SessionParts, reason: string | null): Promise<CommandResult> {
  if (reason === null) {
    caller.endBreakGlass();
    await records.recordCommand();
    return { tag: 'RESET' };
  }
  const call = caller.newCall();
  await records.translate(call.requestId, '', () => caller.breakGlass(call, reason));
  return { tag: 'SET' };
}

/** Before SHOW of the receipt or SHOW ALL, waits until the audit record that the last receipt proves is on disk. */
async function awaitReceipt({ settings, records, caller }: SessionParts, name: string | null): Promise<void> {
  if (name !== null && name.toLowerCase() !== RECEIPT) return;
  await records.translate(caller.newCall().requestId, '', () => settings.awaitReceipt());
}

/** True for RESET ALL and DISCARD ALL, which also end break-glass access. */
function endsBreakGlass(command: Command): boolean {
  return (
    (command.kind === 'reset' && command.name === null) ||
    (command.kind === 'discard' && command.target === 'ALL')
  );
}

function assignmentOf(command: Command, name: string): { readonly value: string | null } | null {
  if (command.kind === 'reset') return command.name === name ? { value: null } : null;
  return command.kind === 'set' ? (command.assignments.find((a) => a.name === name) ?? null) : null;
}

/**
 * Applies setting changes that a catalog statement made through `set_config`, in the same way as SET. @throws WireError
 */
export async function changeSettings(
  session: SessionParts,
  changes: readonly SettingChange[],
): Promise<void> {
  for (const { name, value, local } of changes) {
    if (ONLY_BY_SET.has(name.toLowerCase())) throw error('42501', `parameter "${name}" is for SET only`);
    const assignments = [{ name, value }];
    const setCommand: Command = { kind: 'set', assignments, local: local ? 'SET LOCAL' : null };
    session.state.run(await resolveZones(session, setCommand), true);
  }
}

function newTokenOf(command: Command): string | null {
  const assignment = command.kind === 'set' && command.assignments.find((a) => a.name === TOKEN);
  if (!assignment) return null;
  if (assignment.value === null) throw error('22023', `parameter "${TOKEN}" takes a token`);
  return assignment.value;
}
