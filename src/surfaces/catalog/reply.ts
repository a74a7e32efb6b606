import { QueryError } from 'osl-compiler';
import { ForeignFault } from '../../ask/index.js';
import { type DescribedColumn, describedColumns } from '../../engine/protocol/backend-messages.js';
import { BackendSplitter } from '../../engine/protocol/splitter.js';
import { reportFields } from '../../engine/upstream-error.js';
import { type SessionSignal, type SettingChange, sessionSignal, settingChange } from './engine-contract.js';

/** An error or notice from the engine. The engine holds no data, so it may be shown in full. */
export interface ReplyReport {
  readonly severity: string;
  readonly sqlstate: string;
  readonly message: string;
  readonly detail: string | null;
  readonly hint: string | null;
  /** Character position in the statement's text, starting at 1. */
  readonly position: number | null;
}

export interface BackendReply {
  readonly error: ReplyReport | null;
  readonly notices: readonly ReplyReport[];
  /** Setting changes in order; stops at `MAX_CHANGES` + 1 entries, which means too many. */
  readonly changes: readonly SettingChange[];
  /** Signals in order; stops at `MAX_SIGNALS` + 1 entries, which means too many. */
  readonly signals: readonly SessionSignal[];
  readonly parameterTypes: readonly number[];
  readonly columns: readonly DescribedColumn[] | null;
  readonly rows: readonly Uint8Array[];
  readonly rowCount: number;
  /** Command tag; null if the row limit was reached. */
  readonly tag: string | null;
  /** True if the reply ended with ReadyForQuery outside of a transaction. */
  readonly idle: boolean;
}

type MutableReply = { -readonly [K in keyof BackendReply]: BackendReply[K] } & {
  rows: Uint8Array[];
  notices: ReplyReport[];
  changes: SettingChange[];
  signals: SessionSignal[];
};

const MAX_NOTICES = 20;
export const MAX_CHANGES = 200;
export const MAX_SIGNALS = 200;

export function readReply(bytes: Uint8Array): BackendReply {
  const draft: MutableReply = {
    error: null,
    notices: [],
    changes: [],
    signals: [],
    parameterTypes: [],
    columns: null,
    rows: [],
    rowCount: 0,
    tag: null,
    idle: false,
  };
  const splitter = new BackendSplitter();
  splitter.push(bytes);
  while (splitter.next()) addMessage(draft, splitter);
  return draft;
}

function addMessage(draft: MutableReply, splitter: BackendSplitter): void {
  switch (splitter.type) {
    case 0x44: // D: DataRow
      draft.rows.push(splitter.buffer.subarray(splitter.start, splitter.end));
      draft.rowCount += splitter.rows;
      return;
    case 0x45: // E: ErrorResponse
      draft.error ??= readReport(splitter.body());
      return;
    case 0x4e: // N: NoticeResponse
      addNotice(draft, readReport(splitter.body()));
      return;
    case 0x74: // t: ParameterDescription
      draft.parameterTypes = parameterTypes(splitter.body());
      return;
    case 0x54: // T: RowDescription
      draft.columns = describedColumns(splitter.body());
      return;
    case 0x43: // C: CommandComplete
      draft.tag = splitter.body().toString('utf8', 0, splitter.body().indexOf(0));
      return;
    case 0x5a: // Z: ReadyForQuery
      draft.idle = splitter.body()[0] === 0x49;
      return;
    default: // ignored: ParseComplete, BindComplete, NoData, PortalSuspended, ParameterStatus
      return;
  }
}

function addNotice(draft: MutableReply, notice: ReplyReport): void {
  const change = settingChange(notice);
  const signal = sessionSignal(notice);
  if (change !== null) {
    if (draft.changes.length <= MAX_CHANGES) draft.changes.push(change);
  } else if (signal !== null) {
    if (draft.signals.length <= MAX_SIGNALS) draft.signals.push(signal);
  } else if (draft.notices.length < MAX_NOTICES) draft.notices.push(notice);
}

function parameterTypes(body: Buffer): readonly number[] {
  return Array.from({ length: body.readUInt16BE(0) }, (_, i) => body.readUInt32BE(2 + 4 * i));
}

function readReport(body: Buffer): ReplyReport {
  const fields = reportFields(body);
  const position = fields.get('P');
  return {
    severity: fields.get('V') ?? 'ERROR',
    sqlstate: fields.get('C') ?? 'XX000',
    message: fields.get('M') ?? '',
    detail: fields.get('D') ?? null,
    hint: fields.get('H') ?? null,
    position: position === undefined ? null : Number(position),
  };
}

/** A failed catalog statement. The error may be shown in full, since the engine holds no data. */
export class CatalogFault extends ForeignFault {
  override readonly name = 'CatalogFault';
  readonly report: ReplyReport;

  constructor(report: ReplyReport) {
    super(report.message);
    this.report = report;
  }

  get code(): string {
    return this.report.sqlstate;
  }
}

export function fault(sqlstate: string, message: string, hint: string | null = null): CatalogFault {
  return new CatalogFault({ severity: 'ERROR', sqlstate, message, detail: null, hint, position: null });
}

/** Returns the fault of a statement that was cancelled or exceeded its session's timeout. */
export function cancelled(signal: AbortSignal | null): CatalogFault {
  const reason: unknown = signal?.reason;
  const timedOut = reason instanceof QueryError && reason.entry === 'timedOut';
  return fault('57014', timedOut ? reason.message : 'canceling statement due to user request');
}

/** @throws CatalogFault 57014 once `signal` is aborted */
export function requireNotCancelled(signal: AbortSignal | null): void {
  if (signal?.aborted === true) throw cancelled(signal);
}
