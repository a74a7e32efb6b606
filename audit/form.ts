import { MAX_RECORD_BYTES } from './format.js';
import {
  type AuditEntry,
  type AuditKind,
  afterTime,
  type CommonEntry,
  count,
  isPlain,
  now,
  type RecordPlace,
  untilDuration,
  untilRequestId,
  untilTime,
} from './record.js';

/**
 * Fields that records of one kind share, encoded once. A record of it has the bytes that `encodeRecord` gives of the
 * whole entry: both are made of the same parts, and a property test compares them.
 */
export class RecordForm {
  readonly kind: AuditKind;
  readonly #common: CommonEntry;
  #writer = '';
  #epoch = 0;
  /** The parts of the record around what changes, as UTF-8 with a character for each byte. */
  #untilDuration = '';
  #untilRequestId = '';
  #untilTime = '';
  #afterTime = '';

  constructor(common: CommonEntry) {
    this.kind = common.kind;
    this.#common = { ...common };
  }

  /** The whole entry, as `append` takes it. */
  entry(
    request_id: string,
    statement_hmac: string | null,
    rows: number | null,
    duration_us: number | null,
  ): AuditEntry {
    return { ...this.#common, request_id, statement_hmac, rows, duration_us };
  }

  /**
   * The record's UTF-8 with a character for each byte, or null where it is to be appended as a whole entry: because it
   * is too long, or because a string needs an escape (ours never do; what is passed in cannot end its member).
   */
  record(
    place: RecordPlace,
    requestId: string,
    statementHmac: string | null,
    rows: number | null,
    durationUs: number | null,
  ): string | null {
    if (!isPlain(requestId) || (statementHmac !== null && !isPlain(statementHmac))) return null;
    if (place.epoch !== this.#epoch || place.writer !== this.#writer) this.#encode(place);
    const hmac = statementHmac === null ? 'null' : `"${statementHmac}"`;
    const record =
      `${this.#untilDuration}${count(durationUs)}${this.#untilRequestId}"${requestId}","rows":${count(rows)}` +
      `,"seq":${place.seq},"statement_hmac":${hmac}${this.#untilTime}"${now()}"${this.#afterTime}`;
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
