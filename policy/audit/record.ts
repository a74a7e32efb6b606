/**
 * What the log holds: one record per decision, one per outcome, one per event of the log itself.
 * A record never carries a literal, a row or a token; a statement appears only as a keyed fingerprint.
 */

export type AuditKind = 'decision' | 'outcome' | 'event';
export type AuditSurface = 'rest' | 'wire' | 'mcp' | 'cli' | 'system';
export type AuditDecision = 'allow' | 'deny' | 'error';
export type AuditOutcome = 'ok' | 'error' | 'cancelled' | 'truncated' | 'unknown';

/** Longest record, in UTF-8 bytes of its canonical JSON (the entry limit of C2SP tlog-tiles). */
export const MAX_RECORD_BYTES = 65_535;

/** What a caller hands to `append`. Whatever is left out is stored as null (an empty list for `chain`, `objects`). */
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
}

/** Versions of the manifest and the policy that decided. */
export interface AuditVersions {
  readonly manifest: string | null;
  readonly policy: string | null;
}

/** A record as stored: every field present, and its place in the chain. */
export interface AuditRecord extends Required<AuditEntry> {
  readonly writer: string;
  /** Counts the openings of the log by its writer, from 1. */
  readonly epoch: number;
  /** Index of the record in the log, from 0; also its leaf index in the Merkle tree. */
  readonly seq: number;
  /** How many trailing names `objects` lost so that the record fits `MAX_RECORD_BYTES`. */
  readonly objects_omitted: number;
}

/** Where a record stands: writer, epoch and seq are unique together. */
export interface RecordPlace {
  readonly writer: string;
  readonly epoch: number;
  readonly seq: number;
}

/**
 * Canonical JSON (RFC 8785) of a record. `JSON.stringify` writes strings and numbers as the RFC asks, so
 * listing the members in sorted order is all there is to it; a property test compares with `canonicalize`.
 */
export function encodeRecord(
  entry: AuditEntry,
  place: RecordPlace,
  objects: readonly string[] = entry.objects ?? [],
): string {
  const versions = entry.versions;
  const text = JSON.stringify({
    action: entry.action,
    chain: entry.chain ?? [],
    code: entry.code ?? null,
    decision: entry.decision ?? null,
    duration_us: entry.duration_us ?? null,
    epoch: place.epoch,
    form: entry.form ?? null,
    kind: entry.kind,
    objects,
    objects_omitted: (entry.objects?.length ?? 0) - objects.length,
    outcome: entry.outcome ?? null,
    request_id: entry.request_id,
    rows: entry.rows ?? null,
    seq: place.seq,
    statement_hmac: entry.statement_hmac ?? null,
    subject: entry.subject ?? null,
    surface: entry.surface,
    tenant: entry.tenant,
    ts: entry.ts ?? new Date().toISOString(),
    versions: versions ? { manifest: versions.manifest, policy: versions.policy } : null,
    writer: place.writer,
  } satisfies Record<keyof AuditRecord, unknown>);
  return text.includes('\\ud') ? replaceLoneSurrogates(text) : text;
}

/**
 * The same, cut to `MAX_RECORD_BYTES` by dropping names from the end of `objects`; `objects_omitted` says how
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
    room -= Buffer.byteLength(escapeString(name)) + 1;
    if (room < 0) break;
    kept += 1;
  }
  return encodeRecord(entry, place, all.slice(0, kept));
}

function escapeString(value: string): string {
  return replaceLoneSurrogates(JSON.stringify(value));
}

/** A lone surrogate has no UTF-8 form, so RFC 8785 refuses it; the audit log must not, so it becomes U+FFFD. */
function replaceLoneSurrogates(json: string): string {
  // An even run of backslashes before `\ud…` is escaped text, not an escape.
  return json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\ufffd');
}
