import { BackendSplitter } from '../../engine/protocol/splitter.js';
import { type SettingChange, settingChange } from './setting-changes.js';

/** A column of an answer, as RowDescription has it. */
export interface ReplyColumn {
  readonly name: string;
  readonly typeOid: number;
  readonly typeLength: number;
  readonly typeModifier: number;
}

/** What the engine says is wrong, or worth knowing. It holds no data, so all of it may be shown. */
export interface ReplyReport {
  readonly severity: string;
  readonly sqlstate: string;
  readonly message: string;
  readonly detail: string | null;
  readonly hint: string | null;
  /** In characters from 1. */
  readonly position: number | null;
}

/** The backend's messages of one round trip, sorted. */
export interface Reply {
  readonly error: ReplyReport | null;
  readonly notices: readonly ReplyReport[];
  /** In order; one more than `MAX_CHANGES` where there are too many. */
  readonly changes: readonly SettingChange[];
  readonly parameterTypes: readonly number[];
  /** Null where the statement gives no rows. */
  readonly columns: readonly ReplyColumn[] | null;
  /** Runs of whole DataRow messages. */
  readonly rows: readonly Uint8Array[];
  readonly rowCount: number;
  /** Null where the row limit was reached. */
  readonly tag: string | null;
  /** ReadyForQuery was the last message, outside any transaction. */
  readonly idle: boolean;
}

type Draft = { -readonly [K in keyof Reply]: Reply[K] } & {
  rows: Uint8Array[];
  notices: ReplyReport[];
  changes: SettingChange[];
};

const MAX_NOTICES = 20;
/** Settings that one statement may change. */
export const MAX_CHANGES = 200;

export function readReply(bytes: Uint8Array): Reply {
  const draft: Draft = {
    error: null,
    notices: [],
    changes: [],
    parameterTypes: [],
    columns: null,
    rows: [],
    rowCount: 0,
    tag: null,
    idle: false,
  };
  const splitter = new BackendSplitter();
  splitter.push(bytes);
  while (splitter.next()) take(draft, splitter);
  return draft;
}

function take(draft: Draft, splitter: BackendSplitter): void {
  switch (splitter.type) {
    case 0x44: // D
      draft.rows.push(splitter.buffer.subarray(splitter.start, splitter.end));
      draft.rowCount += splitter.rows;
      return;
    case 0x45: // E
      draft.error ??= report(splitter.body());
      return;
    case 0x4e: // N
      noticed(draft, report(splitter.body()));
      return;
    case 0x74: // t
      draft.parameterTypes = parameterTypes(splitter.body());
      return;
    case 0x54: // T
      draft.columns = columns(splitter.body());
      return;
    case 0x43: // C
      draft.tag = cString(splitter.body(), 0);
      return;
    case 0x5a: // Z
      draft.idle = splitter.body()[0] === 0x49;
      return;
    default: // ParseComplete, BindComplete, NoData, PortalSuspended, ParameterStatus
      return;
  }
}

function noticed(draft: Draft, notice: ReplyReport): void {
  const change = settingChange(notice);
  if (change === null) {
    if (draft.notices.length < MAX_NOTICES) draft.notices.push(notice);
  } else if (draft.changes.length <= MAX_CHANGES) draft.changes.push(change);
}

function parameterTypes(body: Buffer): readonly number[] {
  return Array.from({ length: body.readUInt16BE(0) }, (_, i) => body.readUInt32BE(2 + 4 * i));
}

function columns(body: Buffer): readonly ReplyColumn[] {
  let at = 2;
  return Array.from({ length: body.readUInt16BE(0) }, () => {
    const name = cString(body, at);
    const facts = at + Buffer.byteLength(name) + 1 + 6; // past the table's OID and attribute number
    at = facts + 12;
    return {
      name,
      typeOid: body.readUInt32BE(facts),
      typeLength: body.readInt16BE(facts + 4),
      typeModifier: body.readInt32BE(facts + 6),
    };
  });
}

function report(body: Buffer): ReplyReport {
  const fields = new Map<string, string>();
  let at = 0;
  while (at < body.length && body[at] !== 0) {
    const value = cString(body, at + 1);
    fields.set(String.fromCharCode(body[at] ?? 0), value);
    at += Buffer.byteLength(value) + 2;
  }
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

function cString(body: Buffer, at: number): string {
  return body.toString('utf8', at, body.indexOf(0, at));
}
