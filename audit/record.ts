import { MAX_RECORD_BYTES } from './format.js';

/**
 * Kind of a record. Each decision, each outcome and each other event, such as the opening of the log, is one record.
 * Records never contain a literal, a row or a token; statements appear only as keyed fingerprints.
 */

export type AuditKind = 'decision' | 'outcome' | 'event';
export type AuditSurface = 'rest' | 'wire' | 'mcp' | 'cli' | 'system';
export type AuditDecision = 'allow' | 'deny' | 'error';
export type AuditOutcome = 'ok' | 'error' | 'cancelled' | 'truncated' | 'unknown';

/** Input of `append`. Omitted fields are stored as null or an empty list; those in `OptionalField` are not stored. */
export interface AuditEntry {
  readonly kind: AuditKind;
  /** Shared by a decision and its outcome; unique per request. */
  readonly request_id: string;
  readonly tenant: string;
  readonly surface: AuditSurface;
  /** Verb of the request: `query`, `explain`, `sample`, `login`, `cancel`, `http`, … */
  readonly action: string;
  /** Timestamp, RFC 3339 in UTC, with milliseconds; default: the time of the append. */
  readonly ts?: string;
  readonly subject?: string | null;
  /** Delegation chain, starting with the original principal. */
  readonly chain?: readonly string[];
  /** Form of the OSL-SQL query: `structured`, `retrieve`, `traverse`, `joint`, `cross_modal`. */
  readonly form?: string | null;
  /** Fully qualified names of the objects touched; an undeclared name appears as `undeclared:<fingerprint>`. */
  readonly objects?: readonly string[];
  readonly decision?: AuditDecision | null;
  /** Error code (`E…`) of a refusal or failure. */
  readonly code?: string | null;
  readonly versions?: AuditVersions | null;
  /** Fingerprint of the statement, from `AuditLog.fingerprint`. */
  readonly statement_hmac?: string | null;
  readonly rows?: number | null;
  /** Duration in microseconds. */
  readonly duration_us?: number | null;
  readonly outcome?: AuditOutcome | null;
  /** Fingerprint of the governed statement; absent if lineage is disabled. */
  readonly plan?: string;
  /** Digests for a receipt; absent unless one was requested. */
  readonly receipt?: ReceiptDigests;
  /** Standby that an outcome's rows were read from; absent if the primary answered. */
  readonly standby?: RecordedStandby;
  /** Content of an event, as JSON; together with the other fields it must fit `MAX_RECORD_BYTES`. */
  readonly detail?: string;
}

/**
 * Salted SHA-256 digests of a question and its answer, base64url. Whoever holds the salt can prove what was asked and
 * answered; without it, the digests reveal nothing.
 */
export interface ReceiptDigests {
  /** RFC 3339 time; the answer is at least as recent. Null if it was read from the primary without the cache. */
  readonly as_of: string | null;
  /** Columns whose values were masked for the caller, as `<entity>.<column>`. */
  readonly masked: readonly string[];
  /** Number of names dropped from the end of `masked`. */
  readonly masked_omitted: number;
  /** `sequence` if the digest of the rows depends on their order, `multiset` if it does not. */
  readonly order: RowOrder;
  readonly question: string;
  readonly rows: string;
  /** True if a limit cut off rows of the answer or of an intermediate step. */
  readonly truncated: boolean;
}

/** The standby that an answer was read from, and how recent its data was. */
export interface RecordedStandby {
  /** RFC 3339 time on the gateway's clock. The answer includes everything that was committed before it. */
  readonly as_of: string;
  /** Name of the environment variable that holds the standby's URL, as in the manifest. */
  readonly name: string;
}

export type RowOrder = 'sequence' | 'multiset';

/** Versions of the manifest and the policy on which a decision is based. */
interface AuditVersions {
  readonly manifest: string | null;
  readonly policy: string | null;
}

/** Stored record: every field except `plan`, `receipt`, `standby` and `detail` is present. */
export interface AuditRecord
  extends Required<Omit<AuditEntry, OptionalField>>,
    Pick<AuditEntry, OptionalField> {
  readonly writer: string;
  /** Number of times the writer has opened the log so far; starts at 1. */
  readonly epoch: number;
  /** Index of the record in the log, starting at 0; also its leaf index in the Merkle tree. */
  readonly seq: number;
  /** Number of names dropped from the end of `objects` so that the record fits `MAX_RECORD_BYTES`. */
  readonly objects_omitted: number;
}

type OptionalField = 'plan' | 'receipt' | 'standby' | 'detail';

/** Position of a record. The combination of writer, epoch and seq is unique. */
export interface RecordPlace {
  readonly writer: string;
  readonly epoch: number;
  readonly seq: number;
}

/** Fields that differ for each request; the other fields are shared by many records (`RecordTemplate`). */
type VaryingField = 'request_id' | 'ts' | 'rows' | 'duration_us' | 'statement_hmac' | 'standby';

export type CommonEntry = Omit<AuditEntry, VaryingField>;

/**
 * Canonical JSON (RFC 8785) of a record: sorted members, values as in `JSON.stringify`; a property test compares it
 * with `canonicalize`. Concatenating strings is four times as fast as stringifying an object of 21 members.
 */
export function encodeRecord(
  entry: AuditEntry,
  place: RecordPlace,
  objects: readonly string[] = entry.objects ?? [],
): string {
  return (
    `${untilDuration(entry)}${count(entry.duration_us)}${untilRequestId(entry, place.epoch, objects)}` +
    `${quoted(entry.request_id)},"rows":${count(entry.rows)},"seq":${place.seq}${standbyText(entry.standby)}` +
    `,"statement_hmac":${nullable(entry.statement_hmac)}${untilTime(entry)}${quoted(entry.ts ?? now())}` +
    `${afterTime(entry, place.writer)}`
  );
}

/** Encodes the first of four parts that records share. Members that vary are placed between the parts. */
function untilDuration(entry: CommonEntry): string {
  const detail = entry.detail === undefined ? '' : `,"detail":${quoted(entry.detail)}`;
  return (
    `{"action":${quoted(entry.action)},"chain":${list(entry.chain ?? [])},"code":${nullable(entry.code)}` +
    `,"decision":${word(entry.decision)}${detail},"duration_us":`
  );
}

/** @param objects names to store: all of the entry's objects, or only the first ones */
function untilRequestId(entry: CommonEntry, epoch: number, objects: readonly string[]): string {
  const omitted = (entry.objects?.length ?? 0) - objects.length;
  const plan = entry.plan === undefined ? '' : `,"plan":${quoted(entry.plan)}`;
  return (
    `,"epoch":${epoch},"form":${nullable(entry.form)},"kind":"${entry.kind}","objects":${list(objects)}` +
    `,"objects_omitted":${omitted},"outcome":${word(entry.outcome)}${plan}${receiptText(entry.receipt)},"request_id":`
  );
}

function receiptText(receipt: ReceiptDigests | undefined): string {
  if (receipt === undefined) return '';
  const { as_of, masked, masked_omitted, order, question, rows, truncated } = receipt;
  return (
    `,"receipt":{"as_of":${nullable(as_of)},"masked":${list(masked)},"masked_omitted":${masked_omitted},"order":"${order}"` +
    `,"question":${quoted(question)},"rows":${quoted(rows)},"truncated":${truncated}}`
  );
}

function standbyText(standby: RecordedStandby | undefined): string {
  if (standby === undefined) return '';
  return `,"standby":{"as_of":${quoted(standby.as_of)},"name":${quoted(standby.name)}}`;
}

function untilTime(entry: CommonEntry): string {
  return `,"subject":${nullable(entry.subject)},"surface":"${entry.surface}","tenant":${quoted(entry.tenant)},"ts":`;
}

function afterTime(entry: CommonEntry, writer: string): string {
  return `,"versions":${versionsText(entry.versions)},"writer":${quoted(writer)}}`;
}

const PLAIN = /^[ !#-[\]-~]*$/;

/** True if a string needs no escaping and each of its characters is one byte in UTF-8. */
export function isPlain(value: string): boolean {
  return PLAIN.test(value);
}

function quoted(value: string): string {
  return isPlain(value) ? `"${value}"` : escaped(value);
}

function nullable(value: string | null | undefined): string {
  return value === null || value === undefined ? 'null' : quoted(value);
}

function word(value: AuditDecision | AuditOutcome | null | undefined): string {
  return value === null || value === undefined ? 'null' : `"${value}"`;
}

function count(value: number | null | undefined): string {
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

/** Current time, RFC 3339 in UTC. Cached, because many records fall into the same millisecond. */
function now(): string {
  const ms = Date.now();
  if (ms !== clock.ms) {
    clock.ms = ms;
    clock.text = new Date(ms).toISOString();
  }
  return clock.text;
}

/**
 * Shortens a record to `MAX_RECORD_BYTES` by dropping names from the end of `objects` and counting them in
 * `objects_omitted`. Returns null if the other fields alone are too long.
 */
export function encodeShortened(entry: AuditEntry, place: RecordPlace): string | null {
  const all = entry.objects ?? [];
  const bare = Buffer.byteLength(encodeRecord(entry, place, []));
  // `bare` is encoded with all names omitted, so it reserves enough digits for objects_omitted.
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

/** Replaces lone surrogates with U+FFFD: they have no UTF-8 form and RFC 8785 rejects them, but input may hold them. */
function escaped(value: string): string {
  const json = JSON.stringify(value);
  // After an odd number of backslashes, `\ud…` is literal text and not an escape.
  return json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\ufffd');
}

/**
 * Record template: fields that many records share, encoded once. The resulting bytes equal those of `encodeRecord` for
 * the complete entry; a property test compares them.
 */
export class RecordTemplate {
  readonly kind: AuditKind;
  readonly #common: CommonEntry;
  #writer = '';
  #epoch = 0;
  /** Encoded parts between the varying fields: UTF-8 bytes as latin1 characters. */
  #untilDuration = '';
  #untilRequestId = '';
  #untilTime = '';
  #afterTime = '';

  constructor(common: CommonEntry) {
    this.kind = common.kind;
    this.#common = { ...common };
  }

  /** Complete entry, in the form that `append` accepts. */
  entry(
    request_id: string,
    statement_hmac: string | null,
    rows: number | null,
    duration_us: number | null,
    standby?: RecordedStandby,
  ): AuditEntry {
    const entry = { ...this.#common, request_id, statement_hmac, rows, duration_us };
    return standby === undefined ? entry : { ...entry, standby };
  }

  /**
   * Record as UTF-8 bytes, one per latin1 character. Null if it is too long, or if a string needs escaping (the
   * gateway's own strings never do); the caller then appends the complete entry.
   */
  record(
    place: RecordPlace,
    requestId: string,
    statementHmac: string | null,
    rows: number | null,
    durationUs: number | null,
    standby?: RecordedStandby,
  ): string | null {
    if (standby !== undefined && !(isPlain(standby.name) && isPlain(standby.as_of))) return null;
    if (!isPlain(requestId) || (statementHmac !== null && !isPlain(statementHmac))) return null;
    if (place.epoch !== this.#epoch || place.writer !== this.#writer) this.#encode(place);
    const hmac = statementHmac === null ? 'null' : `"${statementHmac}"`;
    const record =
      `${this.#untilDuration}${count(durationUs)}${this.#untilRequestId}"${requestId}","rows":${count(rows)}` +
      `,"seq":${place.seq}${standbyText(standby)},"statement_hmac":${hmac}${this.#untilTime}"${now()}"${this.#afterTime}`;
    return record.length > MAX_RECORD_BYTES ? null : record;
  }

  #encode({ writer, epoch }: RecordPlace): void {
    const common = this.#common;
    this.#untilDuration = bytesOf(untilDuration(common));
    this.#untilRequestId = bytesOf(untilRequestId(common, epoch, common.objects ?? []));
    this.#untilTime = bytesOf(untilTime(common));
    this.#afterTime = bytesOf(afterTime(common, writer));
    this.#writer = writer;
    this.#epoch = epoch;
  }
}

function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
