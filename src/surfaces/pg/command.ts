import type { parse } from 'osl-compiler';
import {
  type ColumnDescription,
  error,
  type Portal,
  type WireNotice,
  type WireStatement,
} from '../../../wire/index.js';
import { dataRow } from '../../engine/index.js';

/** A statement that the gateway handles itself, without reading data. */
export type Command =
  | {
      readonly kind: 'set';
      readonly assignments: readonly { readonly name: string; readonly value: string | null }[];
      /** Statement that limits the scope to the transaction; null: the whole session. */
      readonly local: 'SET LOCAL' | 'SET TRANSACTION' | null;
    }
  | { readonly kind: 'reset'; readonly name: string | null }
  | { readonly kind: 'show'; readonly name: string | null }
  /** `level` is the isolation level; null: the session's default. */
  | { readonly kind: 'begin'; readonly tag: string; readonly level: string | null }
  /** `chain`: true for AND CHAIN, which starts the next block immediately. */
  | { readonly kind: 'commit' | 'rollback'; readonly chain: boolean }
  | { readonly kind: 'savepoint' | 'release' | 'rollback to'; readonly name: string }
  | { readonly kind: 'discard'; readonly target: 'ALL' | 'PLANS' | 'SEQUENCES' | 'TEMP' }
  | { readonly kind: 'deallocate'; readonly name: string | null }
  /** LISTEN on an entity, by its full name. */
  | { readonly kind: 'listen'; readonly channel: string }
  /** `channel` is null for UNLISTEN *. */
  | { readonly kind: 'unlisten'; readonly channel: string | null }
  /** `SET CONSTRAINTS ALL`, which has no effect, since there is nothing to write. */
  | { readonly kind: 'constraints' }
  /** `SELECT pg_advisory_unlock_all()` with the name of its column; it has no effect, since sessions hold no locks. */
  | { readonly kind: 'unlock'; readonly column: string };

export type StatementNode = ReturnType<typeof parse>['node'];
type Argument = NonNullable<
  Extract<StatementNode, { VariableSetStmt: unknown }>['VariableSetStmt']['args']
>[number];

export function commandOf(node: StatementNode): Command | null {
  if ('VariableSetStmt' in node) return setCommand(node.VariableSetStmt);
  if ('VariableShowStmt' in node) {
    const name = node.VariableShowStmt.name ?? 'all';
    return { kind: 'show', name: name === 'all' ? null : name };
  }
  if ('TransactionStmt' in node) return transactionCommand(node.TransactionStmt);
  if ('DiscardStmt' in node)
    return { kind: 'discard', target: DISCARD_TARGETS[node.DiscardStmt.target ?? 'DISCARD_ALL'] };
  if ('DeallocateStmt' in node) return { kind: 'deallocate', name: node.DeallocateStmt.name ?? null };
  if ('UnlistenStmt' in node) return { kind: 'unlisten', channel: node.UnlistenStmt.conditionname ?? null };
  if ('ListenStmt' in node) {
    const channel = node.ListenStmt.conditionname ?? '';
    return channel.startsWith(ENTITY_CHANNEL) ? { kind: 'listen', channel } : null;
  }
  if ('ConstraintsSetStmt' in node && (node.ConstraintsSetStmt.constraints ?? []).length === 0)
    return { kind: 'constraints' };
  return 'SelectStmt' in node ? unlockCommand(node.SelectStmt) : null;
}

/** Prefix of the channel names that LISTEN accepts; the name of an entity follows. */
export const ENTITY_CHANNEL = 'osl.entities.';

/**
 * Function that drivers call when a connection returns to their pool; handled here to save a round trip to the catalog.
 */
export const UNLOCK_ALL = 'pg_advisory_unlock_all';

function unlockCommand(
  select: Extract<StatementNode, { SelectStmt: unknown }>['SelectStmt'],
): Command | null {
  const [target, ...otherTargets] = select.targetList ?? [];
  const { name, val } = target !== undefined && 'ResTarget' in target ? target.ResTarget : {};
  const isBareSelect =
    Object.keys(select).every((part) => BARE_SELECT_PARTS.has(part)) && otherTargets.length === 0;
  if (!isBareSelect || val === undefined || !('FuncCall' in val)) return null;
  const functionName = (val.FuncCall.funcname ?? []).map((n) => ('String' in n ? n.String.sval : ''));
  const isUnlock = /^(pg_catalog\.)?pg_advisory_unlock_all$/.test(functionName.join('.'));
  const isBareCall = Object.keys(val.FuncCall).every((part) => BARE_CALL_PARTS.has(part));
  return isUnlock && isBareCall ? { kind: 'unlock', column: name ?? UNLOCK_ALL } : null;
}

const BARE_SELECT_PARTS: ReadonlySet<string> = new Set(['targetList', 'limitOption', 'op']);
const BARE_CALL_PARTS: ReadonlySet<string> = new Set(['funcname', 'funcformat', 'location']);

const DISCARD_TARGETS = {
  DISCARD_ALL: 'ALL',
  DISCARD_PLANS: 'PLANS',
  DISCARD_SEQUENCES: 'SEQUENCES',
  DISCARD_TEMP: 'TEMP',
} as const;

function setCommand(stmt: Extract<StatementNode, { VariableSetStmt: unknown }>['VariableSetStmt']): Command {
  const { name = '' } = stmt;
  const local = stmt.is_local === true ? 'SET LOCAL' : null;
  switch (stmt.kind) {
    case 'VAR_SET_VALUE':
      return { kind: 'set', assignments: [{ name, value: assignedValue(name, stmt.args ?? []) }], local };
    case 'VAR_SET_DEFAULT':
      return { kind: 'set', assignments: [{ name, value: null }], local };
    case 'VAR_SET_MULTI':
      return setModes(name, (stmt.args ?? []).flatMap(transactionMode));
    case 'VAR_RESET':
      return { kind: 'reset', name };
    case 'VAR_RESET_ALL':
      return { kind: 'reset', name: null };
    default:
      throw error('0A000', 'this form of SET is not supported');
  }
}

/** Returns the value assigned by SET. In `search_path`, each name is quoted if needed. */
function assignedValue(name: string, args: readonly Argument[]): string {
  const texts = args.map(textOf);
  const isNameList = name.toLowerCase() === 'search_path';
  return (isNameList ? texts.map(quoteName) : texts).join(', ');
}

function quoteName(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

type TransactionModes = readonly { readonly name: string; readonly value: string }[];

function setModes(name: string, modes: TransactionModes): Command {
  if (name === 'TRANSACTION') return { kind: 'set', assignments: modes, local: 'SET TRANSACTION' };
  if (name !== 'SESSION CHARACTERISTICS') throw error('0A000', 'this form of SET is not supported');
  const defaults = modes.map(({ name, value }) => ({ name: `default_${name}`, value }));
  return { kind: 'set', assignments: defaults, local: null };
}

function textOf(arg: Argument): string {
  if ('A_Const' in arg) {
    const c = arg.A_Const;
    if (c.sval !== undefined) return c.sval.sval ?? '';
    if (c.ival !== undefined) return String(c.ival.ival ?? 0);
    if (c.fval !== undefined) return c.fval.fval ?? '';
    if (c.boolval !== undefined) return c.boolval.boolval === true ? 'on' : 'off';
  }
  if ('TypeCast' in arg && arg.TypeCast.arg !== undefined) return intervalText(arg.TypeCast);
  throw error('0A000', 'SET takes constants only');
}

/**
 * Converts the interval of `SET TIME ZONE INTERVAL '-3' HOUR` to Postgres' canonical form. SET's grammar allows no
 * other cast.
 */
function intervalText({ arg, typeName }: Extract<Argument, { TypeCast: unknown }>['TypeCast']): string {
  const text = arg === undefined ? '' : textOf(arg);
  const [mask] = typeName?.typmods ?? [];
  const fields = mask !== undefined && 'A_Const' in mask ? (mask.A_Const.ival?.ival ?? 0) : 0;
  const isNumber = /^\s*[+-]?\d+\s*$/.test(text);
  return `INTERVAL '${isNumber ? `${text.trim()} ${fields === HOUR ? 'hours' : 'minutes'}` : text}'`;
}

const HOUR = 1024;

/**
 * Returns the transaction modes of `BEGIN …`, `SET TRANSACTION …` and `SET SESSION CHARACTERISTICS AS TRANSACTION …`.
 * READ WRITE is ignored: many clients send it by default, and writes are refused anyway.
 */
function transactionMode(arg: Argument): readonly { name: string; value: string }[] {
  if ('List' in arg) return (arg.List.items ?? []).flatMap(transactionMode);
  const element = 'DefElem' in arg ? arg.DefElem : {};
  if (element.arg === undefined) return [];
  const value = textOf(element.arg);
  if (element.defname === 'transaction_isolation') return [{ name: element.defname, value }];
  const setsReadOnly = element.defname === 'transaction_read_only' && !/^(off|0|false)$/i.test(value);
  return setsReadOnly ? [{ name: 'transaction_read_only', value }] : [];
}

function transactionCommand(
  stmt: Extract<StatementNode, { TransactionStmt: unknown }>['TransactionStmt'],
): Command {
  const name = stmt.savepoint_name ?? '';
  switch (stmt.kind) {
    case 'TRANS_STMT_BEGIN':
    case 'TRANS_STMT_START':
      return begin(stmt.kind === 'TRANS_STMT_START' ? 'START TRANSACTION' : 'BEGIN', stmt.options ?? []);
    case 'TRANS_STMT_COMMIT':
      return { kind: 'commit', chain: stmt.chain === true };
    case 'TRANS_STMT_ROLLBACK':
      return { kind: 'rollback', chain: stmt.chain === true };
    case 'TRANS_STMT_SAVEPOINT':
      return { kind: 'savepoint', name };
    case 'TRANS_STMT_RELEASE':
      return { kind: 'release', name };
    case 'TRANS_STMT_ROLLBACK_TO':
      return { kind: 'rollback to', name };
    default:
      throw error('0A000', 'two-phase commit is not supported');
  }
}

function begin(tag: string, options: readonly Argument[]): Command {
  const modes = options.flatMap(transactionMode);
  return { kind: 'begin', tag, level: modes.find((m) => m.name === 'transaction_isolation')?.value ?? null };
}

export interface CommandResult {
  readonly tag: string;
  readonly rows?: readonly (readonly string[])[];
  readonly notices?: readonly WireNotice[];
}

export function textColumn(name: string): ColumnDescription {
  return { name, typeOid: 25, typeLength: -1, typeModifier: -1 };
}

export function commandStatement(
  columns: readonly ColumnDescription[] | null,
  run: () => Promise<CommandResult>,
): WireStatement {
  return {
    parameterTypes: [],
    columns,
    open: () => commandPortal(run),
  };
}

function commandPortal(run: () => Promise<CommandResult>): Portal {
  return {
    async fetch(_maxRows, rows) {
      const { tag, rows: values = [], notices = [] } = await run();
      for (const row of values) await rows.write(dataRow(row));
      return { suspended: false, tag, notices };
    },
    close: () => undefined,
  };
}
