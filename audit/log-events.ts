import type { AuditGap, AuditLogOptions } from './interface.js';
import type { AuditEntry, AuditRecord, RecordPlace } from './record.js';
import type { AcknowledgedTree, RecoveredLog } from './recover.js';

/** Minimum difference that counts as a jump rather than a gradual correction, ms. */
const JUMP_MS = 1_000;
const LOOK_MS = 1_000;

/** A jump of the wall clock, measured against the monotonic clock. */
interface ClockJump {
  /** Time that the clock should have shown, RFC 3339; null if unknown because the process was not running. */
  readonly expected: string | null;
  readonly found: string;
  /** Time of the last record, if the clock was behind it when the log was opened; otherwise null. */
  readonly last: string | null;
}

/**
 * Compares the wall clock with the monotonic clock every second. Records are ordered by seq but carry wall-clock
 * times, so each clock jump is recorded in the log.
 */
export class ClockWatch {
  readonly #jumped: (jump: ClockJump) => void;
  readonly #timer: NodeJS.Timeout;
  #offset = Date.now() - performance.now();
  #steady = true;

  constructor(jumped: (jump: ClockJump) => void) {
    this.#jumped = jumped;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** True if the clock has not jumped since the log was opened; after a jump, record ages are unreliable. */
  get steady(): boolean {
    return this.#steady;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = Date.now();
    const expected = this.#offset + performance.now();
    this.#offset = now - performance.now();
    if (Math.abs(now - expected) < JUMP_MS) return;
    this.#steady = false;
    const found = new Date(now).toISOString();
    this.#jumped({ expected: new Date(expected).toISOString(), found, last: null });
  }
}

/** Returns the clock jump to report if, on opening, the clock is behind the last record; otherwise null. */
function jumpSince(last: string): ClockJump | null {
  const now = Date.now();
  if (!(Date.parse(last) > now + JUMP_MS)) return null;
  return { expected: null, found: new Date(now).toISOString(), last };
}

/**
 * First entries after the log was opened. After an unclean stop, records that no checkpoint covers are protected only
 * by the hash chain, which involves no key: anyone with access to the disk could have removed or forged them. The next
 * checkpoint will cover them, so an event in the log permanently marks them first.
 */
export function openingEvents(
  place: RecordPlace,
  options: AuditLogOptions,
  { cut, orphans, unclean, seq, signed, ts }: RecoveredLog,
): readonly AuditEntry[] {
  const from = Math.max(0, signed.newest);
  const jump = ts === null ? null : jumpSince(ts);
  return [
    logEvent(place, options, 'audit.open'),
    ...(jump === null ? [] : [{ ...logEvent(place, options, 'audit.clock'), detail: JSON.stringify(jump) }]),
    ...(unclean || seq > from ? [recovery(place, options, cut, { from, to: seq })] : []),
    ...orphans.map((decision) => outcomeOf(decision, 'unknown', null)),
  ];
}

/**
 * First entries after a gap. Some records pending at the time of the failure may have reached the disk. They are kept,
 * but the callers of these requests were refused, so allowed decisions among them get the outcome `error`.
 */
export function reopeningEvents(
  place: RecordPlace,
  options: AuditLogOptions,
  { cut, orphans, seq }: RecoveredLog,
  gap: AuditGap,
  acknowledged: AcknowledgedTree,
): readonly AuditEntry[] {
  const { size, durable } = acknowledged;
  const refused = orphans.filter((decision) => decision.seq >= size);
  const lost = Math.max(0, size - seq);
  // If no acknowledged record is missing, recovery has checked all of them, so only later records are reported.
  const recovered = lost > 0 ? { from: durable, to: seq, lost } : { from: size, to: seq };
  return [
    gapEvent(place, options, gap),
    ...(cut !== null || seq !== size ? [recovery(place, options, cut, recovered)] : []),
    ...refused.map((decision) => outcomeOf(decision, 'error', REFUSED)),
  ];
}

export function gapEvent(place: RecordPlace, options: AuditLogOptions, gap: AuditGap): AuditEntry {
  return { ...logEvent(place, options, 'audit.gap'), detail: JSON.stringify(gap) };
}

/**
 * Returns the event that reports the range of records without a checkpoint, the number of acknowledged records that are
 * lost, and the torn bytes that were cut off.
 */
function recovery(
  place: RecordPlace,
  options: AuditLogOptions,
  cut: string | null,
  unanchored: { readonly from: number; readonly to: number; readonly lost?: number },
): AuditEntry {
  const objects = cut === null ? [] : [cut];
  return { ...logEvent(place, options, 'audit.recover'), objects, detail: JSON.stringify(unanchored) };
}

/** Error code for requests that could not be recorded. */
const REFUSED = 'E5030';

export function logEvent(
  { writer, epoch }: RecordPlace,
  { tenant = '' }: AuditLogOptions,
  action: string,
): AuditEntry {
  return { kind: 'event', request_id: `${writer}.${epoch}`, tenant, surface: 'system', action };
}

function outcomeOf(decision: AuditRecord, outcome: 'unknown' | 'error', code: string | null): AuditEntry {
  const {
    writer: _writer,
    epoch: _epoch,
    seq: _seq,
    objects_omitted: _omitted,
    ts: _ts,
    ...request
  } = decision;
  return {
    ...request,
    kind: 'outcome',
    decision: null,
    outcome,
    rows: null,
    duration_us: null,
    ...(code !== null && { code }),
  };
}
