import { MAX_RECORD_BYTES } from './format.js';

/**
 * Kinds of records: one record per decision, one per outcome, one per event of the log itself.
 * A record never carries a literal, a row or a token; a statement appears only as a keyed fingerprint.
 */

export type AuditKind = 'decision' | 'outcome' | 'event';
export type AuditSurface = 'rest' | 'wire' | 'mcp' | 'cli' | 'system';
export type AuditDecision = 'allow' | 'deny' | 'error';
export type AuditOutcome = 'ok' | 'error' | 'cancelled' | 'truncated' | 'unknown';

/** Entry handed to `append`. Omitted fields are stored as null (`chain` and `objects` as an empty list). */
export interface AuditEntry {
  readonly kind: AuditKind;
  /** Joins a decision with its outcome; unique per request. */
  readonly request_id: string;
  readonly tenant: string;
  readonly surface: AuditSurface;
  /** Verb of the request: `query`, `explain`, `sample`, `login`, `cancel`, `http`, … */
  readonly action: string;
  /** RFC 3339, UTC, milliseconds. The log stamps its own clock when absent. */
  readonly ts?: string;
  readonly subject?: string | null;
  /** Delegation chain, first principal first. */
  readonly chain?: readonly string[];
  /** OSL-SQL form: `structured`, `retrieve`, `traverse`, `joint`, `cross_modal`. */
  readonly form?: string | null;
  /** Fully qualified names of the objects touched. */
  readonly objects?: readonly string[];
  readonly decision?: AuditDecision | null;
  /** E-code of a refusal or failure. */
  readonly code?: string | null;
  readonly versions?: AuditVersions | null;
  /** From `AuditLog.fingerprint`; never the text. */
  readonly statement_hmac?: string | null;
  readonly rows?: number | null;
  /** Microseconds. */
  readonly duration_us?: number | null;
  readonly outcome?: AuditOutcome | null;
  /** Fingerprint of the governed statement; absent if lineage is off. */
  readonly plan?: string;
  /** Of an event: what it says, as JSON; short of `MAX_RECORD_BYTES` with the rest. */
  readonly detail?: string;
}

/** Versions of the manifest and the policy that decided. */
interface AuditVersions {
  readonly manifest: string | null;
  readonly policy: string | null;
}

/** A record as stored: every field present, but for `plan` and `detail`, and its place in the chain. */
export interface AuditRecord
  extends Required<Omit<AuditEntry, 'plan' | 'detail'>>,
    Pick<AuditEntry, 'plan' | 'detail'> {
  readonly writer: string;
  /** Counts the openings of the log by its writer, from 1. */
  readonly epoch: number;
  /** Index of the record in the log, from 0; also its leaf index in the Merkle tree. */
  readonly seq: number;
  /** Number of trailing names dropped from `objects` so that the record fits `MAX_RECORD_BYTES`. */
  readonly objects_omitted: number;
}

/** Position of a record: writer, epoch and seq are unique together. */
export interface RecordPlace {
  readonly writer: string;
  readonly epoch: number;
  readonly seq: number;
}

/** Fields that differ between requests; the other fields of an entry are shared by many records (`form.ts`). */
type VaryingField = 'request_id' | 'ts' | 'rows' | 'duration_us' | 'statement_hmac';

/** Fields that records of one kind share. */
export type CommonEntry = Omit<AuditEntry, VaryingField>;

/**
 * Canonical JSON (RFC 8785) of a record: the members in sorted order, strings and numbers as `JSON.stringify` writes
 * them, which is what the RFC asks; a property test compares with `canonicalize`. Records are put together here, since
 * to have an object of 21 members made and stringified costs four times as much.
 */
export function encodeRecord(
  entry: AuditEntry,
  place: RecordPlace,
  objects: readonly string[] = entry.objects ?? [],
): string {
  return (
    `${untilDuration(entry)}${count(entry.duration_us)}${untilRequestId(entry, place.epoch, objects)}` +
    `${quoted(entry.request_id)},"rows":${count(entry.rows)},"seq":${place.seq}` +
    `,"statement_hmac":${nullable(entry.statement_hmac)}${untilTime(entry)}${quoted(entry.ts ?? now())}` +
    `${afterTime(entry, place.writer)}`
  );
}

/** A record is four parts, with the members between them that change from request to request. */
export function untilDuration(entry: CommonEntry): string {
  const detail = entry.detail === undefined ? '' : `,"detail":${quoted(entry.detail)}`;
  return (
    `{"action":${quoted(entry.action)},"chain":${list(entry.chain ?? [])},"code":${nullable(entry.code)}` +
    `,"decision":${word(entry.decision)}${detail},"duration_us":`
  );
}

/** @param objects those of the entry, or its first ones */
export function untilRequestId(entry: CommonEntry, epoch: number, objects: readonly string[]): string {
  const omitted = (entry.objects?.length ?? 0) - objects.length;
  const plan = entry.plan === undefined ? '' : `,"plan":${quoted(entry.plan)}`;
  return (
    `,"epoch":${epoch},"form":${nullable(entry.form)},"kind":"${entry.kind}","objects":${list(objects)}` +
    `,"objects_omitted":${omitted},"outcome":${word(entry.outcome)}${plan},"request_id":`
  );
}

export function untilTime(entry: CommonEntry): string {
  return `,"subject":${nullable(entry.subject)},"surface":"${entry.surface}","tenant":${quoted(entry.tenant)},"ts":`;
}

export function afterTime(entry: CommonEntry, writer: string): string {
  return `,"versions":${versionsText(entry.versions)},"writer":${quoted(writer)}}`;
}

/** Most strings of a record need no escape. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** True if a string stands in a record as it is, one byte a character. */
export function isPlain(value: string): boolean {
  return PLAIN.test(value);
}

function quoted(value: string): string {
  return isPlain(value) ? `"${value}"` : escaped(value);
}

function nullable(value: string | null | undefined): string {
  return value === null || value === undefined ? 'null' : quoted(value);
}

/** One of a closed set. */
function word(value: AuditDecision | AuditOutcome | null | undefined): string {
  return value === null || value === undefined ? 'null' : `"${value}"`;
}

export function count(value: number | null | undefined): string {
  return Number.isFinite(value) ? String(value) : 'null';
}

function list(values: readonly string[]): string {
  const [first] = values;
  if (values.length === 1 && first !== undefined) return `[${quoted(first)}]`;
  return `[${values.map(quoted).join(',')}]`;
}

function versionsText(versions: AuditVersions | null | undefined): string {
  if (versions === null || versions === undefined) return 'null';
  return `{"manifest":${nullable(versions.manifest)},"policy":${nullable(versions.policy)}}`;
}

const clock = { ms: 0, text: '' };

/** The time, RFC 3339 in UTC; many records have the same millisecond. */
export function now(): string {
  const ms = Date.now();
  if (ms !== clock.ms) {
    clock.ms = ms;
    clock.text = new Date(ms).toISOString();
  }
  return clock.text;
}

/**
 * A record, cut to `MAX_RECORD_BYTES` by dropping names from the end of `objects`; `objects_omitted` says how
 * many. Null when the other fields alone are too long.
 */
export function encodeShortened(entry: AuditEntry, place: RecordPlace): string | null {
  const all = entry.objects ?? [];
  const bare = Buffer.byteLength(encodeRecord(entry, place, []));
  // Room for the digits of objects_omitted is in `bare`: it counts all names as omitted there.
  let room = MAX_RECORD_BYTES - bare;
  if (room < 0) return null;
  let kept = 0;
  for (const name of all) {
    room -= Buffer.byteLength(quoted(name)) + 1;
    if (room < 0) break;
    kept += 1;
  }
  return encodeRecord(entry, place, all.slice(0, kept));
}

/** A lone surrogate has no UTF-8 form, so RFC 8785 refuses it; the audit log must not, so it becomes U+FFFD. */
function escaped(value: string): string {
  const json = JSON.stringify(value);
  // An even run of backslashes before `\ud…` is escaped text, not an escape.
  return json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\ufffd');
}
