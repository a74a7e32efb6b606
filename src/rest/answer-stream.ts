import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type GovernedPlan, InternalError, type QueryError } from 'osl-compiler';
import type { RowSink } from '../engine/index.js';
import type { Answer } from '../spine/index.js';
import { JsonBytes } from './json-bytes.js';
import { privateHeaders, problemOf } from './problem.js';
import { RowWriter, shapeOf } from './rows.js';

/** How an answer is laid out. `json`: one object; `ndjson`: a row a line, then a line with the trailer. */
export type Layout = 'json' | 'ndjson';

/** An answer up to this size is sent whole, so that what fails before is a proper problem. */
const HELD_BYTES = 1_048_576;

const CONTENT_TYPES: Readonly<Record<Layout, string>> = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
};

/** One answer on its way out: held back while it is small, then streamed as fast as its reader takes it. */
export class AnswerStream {
  readonly #reply: FastifyReply;
  readonly #requestId: string;
  readonly #layout: Layout;
  readonly #out = new JsonBytes();
  #started = false;

  constructor(reply: FastifyReply, requestId: string, layout: Layout) {
    this.#reply = reply;
    this.#requestId = requestId;
    this.#layout = layout;
  }

  /** Begins the answer of `plan`; rows go into the sink. */
  open(plan: GovernedPlan): RowSink {
    const rows = new RowWriter(shapeOf(plan), this.#layout === 'json' ? 'elements' : 'lines');
    if (this.#layout === 'json') {
      this.#out.text(`{${headOf(this.#requestId, plan)},"rows":[`);
    }
    return {
      write: (dataRows, count) => {
        rows.write(dataRows, count, this.#out);
        return this.#out.length < HELD_BYTES && !this.#started ? undefined : this.#flush();
      },
    };
  }

  /** Ends the answer. */
  finish(answer: Answer): FastifyReply {
    const tail = JSON.stringify(tailOf(answer));
    if (this.#layout === 'json') this.#out.text(`],${tail.slice(1)}`);
    else this.#out.text(`{"trailer":{${headOf(this.#requestId, answer.plan)},${tail.slice(1)}}\n`);
    if (!this.#started) return this.#reply.code(200).headers(this.#headers()).send(this.#out.take());
    this.#reply.raw.end(this.#out.take());
    return this.#reply;
  }

  /**
   * Ends an answer of which some has left. JSON cannot be taken back, so its connection breaks; NDJSON says in its
   * trailer what happened. Gives false where nothing has left, so that the error can be a problem.
   */
  fail(error: QueryError): boolean {
    if (!this.#started) return false;
    const trailer = { request_id: this.#requestId, problem: problemOf(error, this.#requestId) };
    if (this.#layout === 'json') this.#reply.raw.destroy();
    else this.#reply.raw.end(Buffer.concat([this.#out.take(), line({ trailer })]));
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
    return raw.write(this.#out.take()) ? undefined : drained(raw);
  }

  #headers(): Record<string, string> {
    return {
      ...privateHeaders(this.#requestId),
      'content-type': CONTENT_TYPES[this.#layout],
      vary: 'accept',
    };
  }
}

/** The members that are known before the first row. */
function headOf(requestId: string, plan: GovernedPlan): string {
  return `"request_id":"${requestId}","form":"${plan.form}","columns":${shapeOf(plan).columns}`;
}

/** The members that are known after the last. */
function tailOf(answer: Answer) {
  const { plan, caller, errors } = answer;
  return {
    row_count: answer.rows,
    truncated: answer.truncated || answer.clipped,
    redacted_columns: plan.redactedColumns,
    redacted_fields: answer.redactedFields,
    ...(plan.partialColumns.length === 0 ? {} : { partial_columns: plan.partialColumns }),
    ...(errors.length === 0
      ? {}
      : { errors: errors.map(({ chunkId, reason }) => ({ chunk_id: chunkId, reason })) }),
    versions: { manifest: caller.manifest.version, policy: caller.snapshot.version },
  };
}

function line(value: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`);
}

/** When the reader has caught up, or left; then whoever runs the execution hears of it. */
function drained(raw: ServerResponse): Promise<void> {
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
