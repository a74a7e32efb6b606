import { setImmediate } from 'node:timers/promises';
import { emit, type GovernedPlan, InternalError, queryError } from 'osl-compiler';
import type { QuotaUnit } from '../../../../policy/index.js';
import {
  type BoundValue,
  eachDataRow,
  type GovernedEngine,
  type MemoryShare,
  type RowSink,
  type StandbyReads,
  type StandbySource,
  type StatementSettings,
  type TransactionSnapshot,
  textValuesOf,
} from '../../../engine/index.js';
import { SETTING } from '../../../model/row-security/index.js';
import type { Caller } from '../../request/caller.js';
import { quotasFor } from '../../request/limit.js';
import type { RequestParts } from '../../request/parts.js';
import { SealedValue } from '../../request/sealed.js';
import type { OperatorCaller } from '../content-plane.js';
import type { RunningParts, RuntimeInput, StepInput } from '../parts.js';
import { slotValues } from './slot-values.js';

/**
 * Runs a step under the caller's rights. Returns all its rows, or fails.
 *
 * @throws QueryError E0511 if a byte cap truncates the rows
 */
export async function step(
  plan: GovernedPlan,
  args: ReadonlyMap<string, string>,
  input: StepInput,
  maxRows: number,
  maxBytes = input.parts.caps.bytes,
) {
  const { parts, caller, signal, snapshots, standby, memory } = input;
  const engine = engineOf(parts, plan);
  const limits: CollectLimits = {
    subject: caller.identity.subject,
    maxRows,
    maxBytes: Math.min(maxBytes, parts.caps.bytes),
    timeoutMs: parts.caps.timeoutMs,
    signal,
    memory,
    settings: settingsFor(parts, caller, plan, undefined),
    snapshot: snapshots?.snapshotOn(engine, caller) ?? null,
    ...timeCharge(parts, caller),
    ...standby.statement(),
  };
  const { rows, truncated } = await collect(engine, plan, slotValues(emit(plan).slots, args, input), limits);
  if (truncated)
    throw queryError('tooLarge', {
      what: 'the number of bytes that a step of the question reads',
      limit: limits.maxBytes,
    });
  return { rows };
}

export function engineOf(
  parts: Pick<RunningParts, 'runners' | 'defaultConnector'>,
  plan: GovernedPlan,
): GovernedEngine {
  const name = plan.connector ?? parts.defaultConnector;
  const engine = SealedValue.open(parts.runners).get(name);
  if (engine === undefined) throw new InternalError(`connector ${name} is not open`);
  return engine;
}

/** Returns the canonical name of a time zone; null if unknown. @throws QueryError E0510, E0523 */
export function timeZoneNamed(
  parts: Pick<RunningParts, 'engines' | 'defaultConnector'>,
  text: string,
): Promise<string | null> {
  const engine = parts.engines.get(parts.defaultConnector);
  if (engine === undefined) throw new InternalError(`connector ${parts.defaultConnector} is not open`);
  return engine.timeZone(text);
}

/** Returns the settings of a statement: `settings`, plus signed rights if the connector has row security. */
export function settingsFor(
  parts: Pick<RunningParts, 'defaultConnector' | 'rowRights'>,
  caller: Caller,
  plan: GovernedPlan,
  settings: StatementSettings | undefined,
): StatementSettings | undefined {
  const connector = plan.connector ?? parts.defaultConnector;
  if (caller.manifest.connectors.get(connector)?.rowSecurity !== true) return settings;
  const rights = parts
    .rowRights(connector)
    .rightsOf({ ...caller, identity: caller.evaluatedAs ?? caller.identity }, Date.now());
  return [...(settings ?? []), [SETTING, rights]];
}

/** Returns a sink that also charges rows and bytes to the caller's quotas; `sink` itself if there are no quotas. */
export function chargingSink(
  sink: RowSink,
  { controls }: Pick<RequestParts, 'controls'>,
  caller: Caller,
): RowSink {
  const { quotas } = SealedValue.open(controls).limiter;
  const callerQuotas = quotasFor(caller, 'query');
  if (callerQuotas.length === 0) return sink;
  return {
    write: (dataRows, rows) => {
      quotas.charge(callerQuotas, 'rows', rows);
      quotas.charge(callerQuotas, 'bytes', dataRows.length);
      return sink.write(dataRows, rows);
    },
  };
}

/** Charges `amount` of `unit` to the caller's query quotas, if any. */
export function chargeUse(
  { controls }: Pick<RequestParts, 'controls'>,
  caller: Caller,
  unit: QuotaUnit,
  amount: number,
): void {
  if (amount > 0) SealedValue.open(controls).limiter.quotas.charge(quotasFor(caller, 'query'), unit, amount);
}

/** Returns options that charge database time to the caller's quotas; empty if the caller has no quotas. */
export function timeCharge(
  { controls }: Pick<RequestParts, 'controls'>,
  caller: Caller,
): { readonly onTimeSpent?: (ms: number) => void } {
  const { quotas } = SealedValue.open(controls).limiter;
  const callerQuotas = quotasFor(caller, 'query');
  return callerQuotas.length === 0
    ? {}
    : { onTimeSpent: (ms) => quotas.charge(callerQuotas, 'ms', Math.ceil(ms)) };
}

/** Values in Postgres' text format, by output name. */
export type TextRow = ReadonlyMap<string, string | null>;

interface CollectLimits {
  readonly subject: string;
  readonly maxRows: number;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | null;
  readonly settings?: StatementSettings | undefined;
  readonly snapshot?: TransactionSnapshot | null;
  readonly onTimeSpent?: (ms: number) => void;
  readonly standby: StandbyReads | null;
  readonly onSource: (source: StandbySource | null) => void;
  /** Memory budget charged for the rows until it is released. */
  readonly memory: MemoryShare;
}

/** Overhead per row in bytes; its texts take two bytes per character. */
const ROW_BYTES = 200;

/** Runs a governed plan and collects its rows, for the bounded steps before a statement. */
async function collect(
  engine: GovernedEngine,
  plan: GovernedPlan,
  values: readonly BoundValue[],
  { memory, ...limits }: CollectLimits,
): Promise<{ readonly rows: readonly TextRow[]; readonly truncated: boolean }> {
  const rows: TextRow[] = [];
  const names = plan.outputs.map((o) => o.name);
  const sink = {
    write: (messages: Uint8Array, count: number): void | Promise<void> => {
      memory.require(2 * messages.length + count * ROW_BYTES);
      const addRows = (part: readonly Buffer[]): void => {
        for (const row of part) {
          const texts = textValuesOf(row);
          rows.push(new Map(names.map((name, i) => [name, texts[i] ?? null])));
        }
      };
      const all = [...eachDataRow(messages)];
      return all.length <= MAX_AT_ONCE ? addRows(all) : readInTurns(all, addRows);
    },
  };
  const { truncated } = await engine.execute(plan, values, { resultFormats: [], ...limits }, sink);
  return { rows, truncated };
}

const MAX_AT_ONCE = 4_096;

async function readInTurns(
  all: readonly Buffer[],
  addRows: (part: readonly Buffer[]) => void,
): Promise<void> {
  for await (const part of slices(all)) addRows(part);
}

const SLICE = 4_096;

/** Yields slices of `list`, giving way to the event loop between them. */
export async function* slices<T>(list: readonly T[]): AsyncGenerator<readonly T[]> {
  for (let from = 0; from < list.length; from += SLICE) {
    if (from > 0) await setImmediate();
    yield list.slice(from, from + SLICE);
  }
}

/** Returns the caller and the limits of an operator call within `input`. */
export function operatorCallerOf({ parts, caller, until, signal, usage }: RuntimeInput): OperatorCaller {
  const { subject } = caller.identity;
  const { timeoutMs } = parts.caps;
  return { subject, timeoutMs, until, signal, onUsage: (used) => usage.add(used) };
}

/** Returns the output of EXPLAIN for the generic plan. @param charged true to charge its time to the caller's quotas */
export async function explainLines(
  parts: RunningParts,
  caller: Caller,
  plan: GovernedPlan,
  {
    maxRows,
    signal,
    charged,
  }: { readonly maxRows: number; readonly signal: AbortSignal | null; readonly charged: boolean },
): Promise<{ readonly lines: readonly string[]; readonly truncated: boolean }> {
  const { bytes, timeoutMs } = parts.caps;
  const lines: string[] = [];
  const sink = {
    write: (messages: Uint8Array): void => {
      for (const row of eachDataRow(messages)) lines.push(textValuesOf(row)[0] ?? '');
    },
  };
  const options = {
    subject: caller.identity.subject,
    maxRows,
    maxBytes: bytes,
    timeoutMs,
    signal,
    settings: settingsFor(parts, caller, plan, undefined),
    ...(charged && timeCharge(parts, caller)),
  };
  const { truncated } = await engineOf(parts, plan).explain(plan, options, sink);
  return { lines, truncated };
}
