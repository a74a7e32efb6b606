import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type GovernedPlan, InternalError, type QueryError } from 'osl-compiler';
import { ageOf } from '../../ask/data/query-answer.js';
import type { QueryAnswer } from '../../ask/index.js';
import type { IssuedReceipt } from '../../ask/receipts/receipt-request.js';
import { type RowSink, rowScheduler } from '../../engine/index.js';
import type { AnswerHead } from './answer-members.js';
import { type ProblemDocument, privateHeaders, problemOf } from './problem.js';

/** Answers up to this size are buffered, so that errors can still be reported as a problem response. */
const BUFFERED_BYTES = 1_048_576;
/** Maximum time in ms for sending the end of a failed answer. */
const FAREWELL_MS = 1_000;

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
    let left = 0;
    return {
      write: (dataRows, count) => {
        rows += count;
        if (dataRows.length > AT_ONCE_BYTES)
          return this.#inPortions(dataRows).then(() => {
            if (this.#started) left = rows;
          });
        encoding.rows(dataRows);
        if (!this.#isDue) return undefined;
        left = rows;
        return this.#flush();
      },
      left: () => left,
    };
  }

  async #inPortions(dataRows: Uint8Array): Promise<void> {
    await inPortions(this.#encoding.portions(dataRows), async () => {
      if (this.#isDue && !this.#isOver) await this.#flush();
      return !this.#isOver;
    });
  }

  get #isOver(): boolean {
    return this.#failed || this.#reply.raw.destroyed;
  }

  get #isDue(): boolean {
    const { pending } = this.#encoding;
    return this.#started ? pending > 0 : pending >= BUFFERED_BYTES;
  }

  /** Sends the end of the answer, once its receipt is there. @throws QueryError E5030 */
  async finish(answer: QueryAnswer): Promise<FastifyReply> {
    const receipt = (await answer.receipt?.issued()) ?? null;
    this.#encoding.end(answer, receipt);
    const bytes = this.#encoding.take();
    const { freshness } = answer;
    const age = freshness === null ? {} : { age: String(ageOf(freshness)) };
    const applied = receipt === null ? {} : { 'preference-applied': 'receipt' };
    if (!this.#started)
      return this.#reply
        .code(200)
        .headers({ ...this.#headers(), ...age, ...applied })
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
    const how = this.#encoding.fail(problemOf(error, this.#requestId));
    const bytes = this.#encoding.take();
    const { raw } = this.#reply;
    if (how === 'ended') raw.end(bytes);
    else if (bytes.length === 0) raw.destroy();
    else cutAfter(raw, bytes);
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

/** Closes the connection after `bytes` were sent or sending them timed out. */
function cutAfter(raw: ServerResponse, bytes: Buffer): void {
  const late = setTimeout(() => raw.destroy(), FAREWELL_MS);
  raw.once('close', () => clearTimeout(late));
  raw.write(bytes, () => raw.destroy());
}

/** Resolves when the client has caught up or disconnected; a disconnect aborts the execution elsewhere. */
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

/** Encodes one answer in a media type; the methods are called in this order. */
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
export const AT_ONCE_BYTES = 65_536;

/** Calls `written` after each portion and at the end until it returns false, yielding to other work in between. */
export async function inPortions(
  portions: Generator<void>,
  written: () => boolean | Promise<boolean>,
): Promise<void> {
  for (const _ of portions) {
    if (!(await written())) return;
    await rowScheduler.wait();
  }
  await written();
}
