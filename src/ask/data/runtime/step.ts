import { emit, type GovernedPlan, InternalError, queryError } from 'osl-compiler';
import type { GovernedEngine, RowSink, StatementSettings } from '../../../engine/index.js';
import { SETTING } from '../../../model/row-security/index.js';
import type { Caller } from '../../request/caller.js';
import { quotasFor } from '../../request/limit.js';
import type { RequestParts } from '../../request/parts.js';
import { SealedValue } from '../../request/sealed.js';
import { type CollectLimits, collect } from '../collect.js';
import type { RunningParts, StepInput } from '../parts.js';
import { slotValues } from './slot-values.js';

/**
 * Runs a step under the caller's rights: returns all its rows, or fails.
 *
 * @throws QueryError E0511 if a byte cap cut the rows
 */
export async function step(
  plan: GovernedPlan,
  given: ReadonlyMap<string, string>,
  input: StepInput,
  maxRows: number,
  maxBytes = input.parts.caps.bytes,
) {
  const { parts, caller, signal, snapshots, memory } = input;
  const engine = engineOf(parts, plan);
  const limits: CollectLimits = {
    subject: caller.identity.subject,
    maxRows,
    maxBytes: Math.min(maxBytes, parts.caps.bytes),
    timeoutMs: parts.caps.timeoutMs,
    signal,
    memory,
    settings: settingsFor(parts, caller, plan, undefined),
    snapshot: snapshots?.of(engine) ?? null,
    ...timeCharge(parts, caller),
  };
  const { rows, truncated } = await collect(engine, plan, slotValues(emit(plan).slots, given, input), limits);
  if (truncated)
    throw queryError('tooLarge', { what: 'what a step of the question reads', limit: limits.maxBytes });
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

/** Canonical name of a time zone; null if unknown. @throws QueryError E0510, E0523 */
export function timeZoneNamed(
  parts: Pick<RunningParts, 'engines' | 'defaultConnector'>,
  text: string,
): Promise<string | null> {
  const engine = parts.engines.get(parts.defaultConnector);
  if (engine === undefined) throw new InternalError(`connector ${parts.defaultConnector} is not open`);
  return engine.timeZone(text);
}

/** Settings of a statement: `settings`, and signed rights if the connector has row security. */
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
    .rightsOf({ ...caller, identity: caller.seenAs ?? caller.identity }, Date.now());
  return [...(settings ?? []), [SETTING, rights]];
}

/** Counts the output of `sink` against the caller's quotas, if any. */
export function chargingSink(sink: RowSink, { means }: Pick<RequestParts, 'means'>, caller: Caller): RowSink {
  const { quotas } = SealedValue.open(means).limiter;
  const own = quotasFor(caller, 'query');
  if (own.length === 0) return sink;
  return {
    write: (dataRows, rows) => {
      quotas.charge(own, 'rows', rows);
      quotas.charge(own, 'bytes', dataRows.length);
      return sink.write(dataRows, rows);
    },
  };
}

/** Counts database time against the caller's quotas; empty if there are none. */
export function timeCharge(
  { means }: Pick<RequestParts, 'means'>,
  caller: Caller,
): { readonly spent?: (ms: number) => void } {
  const { quotas } = SealedValue.open(means).limiter;
  const own = quotasFor(caller, 'query');
  return own.length === 0 ? {} : { spent: (ms) => quotas.charge(own, 'ms', Math.ceil(ms)) };
}
