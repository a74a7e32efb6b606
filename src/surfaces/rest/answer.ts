import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import {
  emit,
  explain,
  type GovernedPlan,
  InternalError,
  mayBeRedacted,
  noticesOf,
  type OutputColumn,
  type QueryError,
} from 'osl-compiler';
import { explainPlan, type UpstreamDetail } from '../../ask/data/explain.js';
import { ageOf, asOfText } from '../../ask/data/query-answer.js';
import {
  type AnswerParts,
  type DataQuestion,
  type QueryAnswer,
  type ServedVersions,
  versionsOf,
} from '../../ask/index.js';
import {
  columnsOf,
  type IssuedReceipt,
  ReceiptRequest,
  shownType,
} from '../../ask/receipts/receipt-request.js';
import { type RowSink, rowScheduler } from '../../engine/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import { malformed, type ProblemDocument, privateHeaders, problemOf } from './problem.js';

export interface AnswerHead {
  readonly requestId: string;
  readonly plan: GovernedPlan;
  readonly versions: ServedVersions;
  /** For each output, true if it is redacted in any row. */
  readonly redacted: readonly boolean[];
}

function noticeMembers(plan: GovernedPlan) {
  const { redactedColumns, maskedColumns, partialColumns } = plan;
  const notices = noticesOf(plan);
  const conditions = maskedColumns.filter((name) => !redactedColumns.includes(name));
  return {
    redacted_columns: redactedColumns,
    ...(conditions.length === 0 ? {} : { redacted_conditions: conditions }),
    ...(partialColumns.length === 0 ? {} : { partial_columns: partialColumns }),
    ...(notices.length === 0 ? {} : { notices }),
  };
}

/** @param receipt the receipt of the answer; null if none was requested */
export function trailerOf(answer: QueryAnswer, receipt: IssuedReceipt | null) {
  const { plan, errors, indexes } = answer;
  return {
    row_count: answer.rows,
    truncated: answer.truncated || answer.clipped,
    ...noticeMembers(plan),
    redacted_fields: answer.redactedFields,
    ...(indexes.length === 0
      ? {}
      : { indexes: indexes.map(({ facet, indexedAt }) => ({ facet, indexed_at: indexedAt })) }),
    ...(errors.length === 0
      ? {}
      : { errors: errors.map(({ chunkId, reason }) => ({ chunk_id: chunkId, reason })) }),
    ...(answer.freshness === null
      ? {}
      : { freshness: { from: answer.freshness.from, as_of: asOfText(answer.freshness) } }),
    versions: answer.versions,
    ...receiptMember(receipt),
  };
}

function deprecationMember(
  objects: readonly string[],
  { deprecated, bridges }: Manifest,
): { readonly deprecated?: readonly { readonly object: string; readonly reason: string }[] } {
  const deprecations = objects.flatMap((object) => {
    const reason = deprecated.get(pathOf(object, bridges));
    return reason === undefined ? [] : [{ object, reason }];
  });
  return deprecations.length === 0 ? {} : { deprecated: deprecations };
}

/**
 * Converts a full name such as `osl.entities.<name>`, `osl.facets.<name>` or `osl.metrics.<name>` to its manifest path
 * (`section.name`).
 */
function pathOf(object: string, bridges: Manifest['bridges']): string {
  const [, section, name = ''] = object.split('.');
  return `${bridges.has(name) ? 'bridges' : section}.${name}`;
}

export async function explainQuestion(
  service: AnswerParts,
  question: DataQuestion,
  detail: UpstreamDetail | null,
  signal: AbortSignal,
): Promise<object> {
  const { plan, caller, upstream } = await explainPlan(service, question, detail, signal);
  const mayReadSql = caller.access.adminRoles.size > 0;
  return {
    request_id: question.requestId,
    form: plan.form,
    plan: explain(plan),
    objects: plan.objects,
    grants: plan.grants,
    columns: columnsOf(plan).map((c) => columnDescription(c, mayBeRedacted(c))),
    ...noticeMembers(plan),
    ...deprecationMember(plan.objects, caller.manifest),
    ...(mayReadSql ? { sql: emit(plan).sql } : {}),
    ...(upstream !== null ? { upstream } : {}),
    versions: versionsOf(caller),
  };
}

/**
 * Describes a column in JSON. The key of a passage is always a string in JSON, whatever its type.
 *
 * @param redacted true if the column is redacted in any row
 */
export function columnDescription(column: OutputColumn, redacted: boolean) {
  const { name, source, format } = column;
  const formatMember = format === null ? {} : { format };
  return { name, type: shownType(column), source, redacted, ...formatMember };
}

/**
 * Reads the preference `receipt` of the header `Prefer` (RFC 7240): `receipt`, or `receipt=multiset` for a digest of
 * the rows that does not depend on their order.
 *
 * @returns null if no receipt is wanted
 * @throws QueryError E0511
 */
export function preferredReceipt(prefer: string | readonly string[] | undefined): ReceiptRequest | null {
  for (const preference of [prefer ?? []].flat().join(',').split(',')) {
    const [token = ''] = preference.split(';');
    const end = token.indexOf('=');
    const name = (end < 0 ? token : token.slice(0, end)).trim();
    if (name.toLowerCase() !== 'receipt') continue;
    const order = end < 0 ? 'sequence' : unquote(token.slice(end + 1).trim());
    if (order === 'sequence' || order === 'multiset') return new ReceiptRequest(order);
    throw malformed('the preference `receipt` is `sequence` or `multiset`');
  }
  return null;
}

function unquote(text: string): string {
  return text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

/** Returns the `receipt` member of a trailer; an empty object if no receipt was requested. */
function receiptMember(receipt: IssuedReceipt | null) {
  return receipt === null ? {} : { receipt };
}

/** Answers up to this size are buffered, so that errors can still be reported as a problem response. */
const BUFFERED_BYTES = 1_048_576;
/** Maximum time in ms for sending the end of a failed answer. */
const CLOSE_TIMEOUT_MS = 1_000;

/** Writes one answer: buffered while small, then streamed with backpressure. */
export class AnswerStream {
  readonly #reply: FastifyReply;
  readonly #requestId: string;
  readonly #encoding: RowEncoding;
  #started = false;
  #failed = false;

  constructor(reply: FastifyReply, requestId: string, encoding: RowEncoding) {
    this.#reply = reply;
    this.#requestId = requestId;
    this.#encoding = encoding;
  }

  open(head: Omit<AnswerHead, 'requestId'>): RowSink {
    const encoding = this.#encoding;
    encoding.begin({ requestId: this.#requestId, ...head });
    let rows = 0;
    let sentRows = 0;
    return {
      write: (dataRows, count) => {
        rows += count;
        if (dataRows.length > MAX_BATCH_BYTES)
          return this.#writePortions(dataRows).then(() => {
            if (this.#started) sentRows = rows;
          });
        encoding.rows(dataRows);
        if (!this.#mustFlush) return undefined;
        sentRows = rows;
        return this.#flush();
      },
      rowsSent: () => sentRows,
    };
  }

  async #writePortions(dataRows: Uint8Array): Promise<void> {
    await runPortions(this.#encoding.portions(dataRows), async () => {
      if (this.#mustFlush && !this.#isOver) await this.#flush();
      return !this.#isOver;
    });
  }

  get #isOver(): boolean {
    return this.#failed || this.#reply.raw.destroyed;
  }

  get #mustFlush(): boolean {
    const { pending } = this.#encoding;
    return this.#started ? pending > 0 : pending >= BUFFERED_BYTES;
  }

  /** Sends the end of the answer once its receipt has been issued. @throws QueryError E5030 */
  async finish(answer: QueryAnswer): Promise<FastifyReply> {
    const receipt = (await answer.receipt?.issued()) ?? null;
    this.#encoding.end(answer, receipt);
    const bytes = this.#encoding.take();
    const { freshness } = answer;
    const ageHeader = freshness === null ? {} : { age: String(ageOf(freshness)) };
    const appliedHeader = receipt === null ? {} : { 'preference-applied': 'receipt' };
    if (!this.#started)
      return this.#reply
        .code(200)
        .headers({ ...this.#headers(), ...ageHeader, ...appliedHeader })
        .send(bytes);
    this.#reply.raw.end(bytes);
    return this.#reply;
  }

  /**
   * Reports a failure in an answer that has begun, in whatever way its encoding allows. Returns false if nothing has
   * been sent yet, so that the error can be sent as a problem response.
   */
  fail(error: QueryError): boolean {
    this.#failed = true;
    if (!this.#started) return false;
    const outcome = this.#encoding.fail(problemOf(error, this.#requestId));
    const bytes = this.#encoding.take();
    const { raw } = this.#reply;
    if (outcome === 'ended') raw.end(bytes);
    else if (bytes.length === 0) raw.destroy();
    else sendAndDestroy(raw, bytes);
    return true;
  }

  #flush(): Promise<void> | undefined {
    const { raw } = this.#reply;
    if (!this.#started) {
      if (raw.headersSent) throw new InternalError('an answer was begun twice');
      this.#started = true;
      this.#reply.hijack();
      raw.writeHead(200, this.#headers());
    }
    return raw.write(this.#encoding.take()) ? undefined : whenDrained(raw);
  }

  #headers(): Record<string, string> {
    return {
      ...privateHeaders(this.#requestId),
      'content-type': this.#encoding.contentType,
      vary: 'accept',
    };
  }
}

/** Sends `bytes` and closes the connection when they are sent or after `CLOSE_TIMEOUT_MS`. */
function sendAndDestroy(raw: ServerResponse, bytes: Buffer): void {
  const timeout = setTimeout(() => raw.destroy(), CLOSE_TIMEOUT_MS);
  raw.once('close', () => clearTimeout(timeout));
  raw.write(bytes, () => raw.destroy());
}

/** Resolves when the client has caught up or disconnected. On a disconnect, `Inflight` aborts the execution. */
function whenDrained(raw: ServerResponse): Promise<void> {
  if (raw.destroyed || raw.closed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      raw.off('drain', done);
      raw.off('close', done);
      resolve();
    };
    raw.once('drain', done);
    raw.once('close', done);
  });
}

/** Media type of Arrow's stream format. */
export const ARROW_STREAM = 'application/vnd.apache.arrow.stream';

/**
 * Encodes one answer in a media type. Callers use the methods in this order, and also call `take` whenever bytes are
 * due.
 */
export interface RowEncoding {
  readonly contentType: string;
  readonly pending: number;
  /**
   * Wire formats to request, one for all columns or one per column: 0 is Postgres' text format, 1 its binary format.
   */
  formats(plan: GovernedPlan): readonly (0 | 1)[];
  begin(head: AnswerHead): void;
  /** Number of copies of a large row that are in memory while it is written. */
  readonly copies: number;
  /** `dataRows` are whole DataRow messages. */
  rows(dataRows: Uint8Array): void;
  /** Like `rows`, but for large rows: yields after each portion, when pending bytes may be taken. */
  portions(dataRows: Uint8Array): Generator<void>;
  /** @param receipt null if none was requested */
  end(answer: QueryAnswer, receipt: IssuedReceipt | null): void;
  /**
   * Reports a failure after part of the answer was sent. `cut` means that the connection must be closed afterwards, so
   * that a partial answer is not mistaken for a complete one.
   */
  fail(problem: ProblemDocument): 'ended' | 'cut';
  take(): Buffer;
}

/** Size in bytes above which a batch of rows is encoded in portions. */
export const MAX_BATCH_BYTES = 65_536;

/**
 * Runs `portions`. Calls `onPortion` after each portion and at the end, and yields to other work in between. Stops early
 * if `onPortion` returns false.
 */
export async function runPortions(
  portions: Generator<void>,
  onPortion: () => boolean | Promise<boolean>,
): Promise<void> {
  for (const _ of portions) {
    if (!(await onPortion())) return;
    await rowScheduler.wait();
  }
  await onPortion();
}
