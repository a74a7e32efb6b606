import { finished } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { InternalError, QueryError } from 'osl-compiler';
import { type Sample, type SampleCell, type SampleRequest, sample } from '../../../ask/data/sample.js';
import { type AnswerParts, type DataQuestion, QuestionRouter } from '../../../ask/index.js';
import {
  type ReceiptParts,
  type ReceiptRequest,
  recordedReceipt,
} from '../../../ask/receipts/receipt-request.js';
import { rowScheduler, SessionReads } from '../../../engine/index.js';
import {
  AnswerStream,
  ARROW_STREAM,
  explainQuestion,
  preferredReceipt,
  type RowEncoding,
} from '../answer.js';
import { type QueryRequest, readQueryRequest, readSampleRequest } from '../bodies/query.js';
import { readRequest } from '../call.js';
import type { Inflight } from '../inflight.js';
import { JsonAnswer, NdjsonAnswer } from '../json-answer.js';
import { JsonBytes, keyWriter, PORTION_BYTES, type ValueWriter, valueWriter } from '../json-values.js';
import { QUERY_OPERATION, RECEIPT_OPERATION, SAMPLE_OPERATION } from '../openapi/operations.js';
import { queryParameters } from '../parameters.js';
import { privateHeaders, sendAnswer, sendJson } from '../problem.js';

export function queryRoute(app: FastifyInstance, service: AnswerParts, inflight: Inflight): void {
  const questions = new QuestionRouter(service);
  app.post('/osl/query', { schema: QUERY_OPERATION }, async (request, reply) => {
    const parsed = await readRequest(service, request.call, 'query', () => ({
      ...readQueryRequest(request),
      receipt: preferredReceipt(request.headers['prefer']),
    }));
    const mayBeCached = !NO_CACHE.test(request.headers['cache-control'] ?? '');
    const question: DataQuestion = {
      ...request.call,
      body: parsed.body,
      parameterOids: [],
      mayBeOld: mayBeCached,
    };
    const { body } = parsed;
    const text = 'text' in body ? body.text : null;
    return inflight.run(reply.raw, { call: request.call, action: 'query', text }, async (signal) => {
      if (!parsed.explain) return streamAnswer(questions, question, parsed, request, reply, inflight, signal);
      return sendJson(
        reply,
        question.requestId,
        await explainQuestion(service, question, parsed.upstream, signal),
      );
    });
  });
}

async function streamAnswer(
  questions: QuestionRouter,
  question: DataQuestion,
  parsed: QueryRequest & { readonly receipt: ReceiptRequest | null },
  request: FastifyRequest,
  reply: FastifyReply,
  inflight: Inflight,
  signal: AbortSignal,
): Promise<FastifyReply> {
  const encoding = await encodingOf(layoutOf(request.headers.accept));
  const stream = new AnswerStream(reply, question.requestId, encoding);
  try {
    const answer = await questions.answer(question, {
      parameters: parsed.parameters,
      resultFormats: (plan) => encoding.formats(plan),
      copies: encoding.copies,
      receipt: parsed.receipt,
      maxRows: 0,
      caching: question.mayBeOld === true ? 'reuse' : 'refresh',
      standby: question.mayBeOld === true ? new SessionReads() : null,
      signal,
      sink: (plan, versions, redacted) => stream.open({ plan, versions, redacted }),
    });
    return await stream.finish(answer);
  } catch (error) {
    const reported = inflight.toReportedError(error);
    if (reported instanceof QueryError && stream.fail(reported)) return reply;
    throw reported;
  }
}

/** Matches the `Cache-Control` of a client that requests an uncached answer. */
const NO_CACHE = /\bno-(?:cache|store)\b/i;

type AnswerLayout = 'json' | 'ndjson' | 'arrow';

const LAYOUTS_BY_TYPE: ReadonlyMap<string, AnswerLayout> = new Map([
  [ARROW_STREAM, 'arrow'],
  ['application/x-ndjson', 'ndjson'],
  ['application/json', 'json'],
  ['application/*', 'json'],
  ['*/*', 'json'],
]);

const PREFERENCE_ORDER: readonly AnswerLayout[] = ['arrow', 'ndjson', 'json'];

/**
 * Returns the layout preferred by the `Accept` header (RFC 9110, 12.5.1). Arrow and NDJSON must be requested by name.
 * If no supported type is acceptable, the answer is JSON, as the RFC permits.
 */
export function layoutOf(accept: string | undefined): AnswerLayout {
  const weights = new Map<AnswerLayout, number>();
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    const layout = LAYOUTS_BY_TYPE.get(name);
    if (layout === undefined) continue;
    weights.set(layout, Math.max(weights.get(layout) ?? 0, weightOf(parameters)));
  }
  const best = Math.max(0, ...weights.values());
  if (best === 0) return 'json';
  return PREFERENCE_ORDER.find((layout) => weights.get(layout) === best) ?? 'json';
}

function weightOf(parameters: readonly string[]): number {
  const weight = parameters.find((parameter) => parameter.startsWith('q='));
  if (weight === undefined) return 1;
  return /^q=(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight.slice(2)) : 0;
}

/** Creates the encoding for a layout. The Arrow library is slow to load, so it is loaded on first use. */
async function encodingOf(layout: AnswerLayout): Promise<RowEncoding> {
  switch (layout) {
    case 'json':
      return new JsonAnswer();
    case 'ndjson':
      return new NdjsonAnswer();
    case 'arrow': {
      const { ArrowAnswer } = await import('../arrow/answer.js');
      return new ArrowAnswer();
    }
    default: {
      const unknown: never = layout;
      throw new InternalError(`unexpected layout ${String(unknown)}`);
    }
  }
}

export function sampleRoute(app: FastifyInstance, service: AnswerParts, inflight: Inflight): void {
  app.post('/osl/sample', { schema: SAMPLE_OPERATION }, async (request, reply) => {
    const parsed = await readRequest(service, request.call, 'sample', () => readSampleRequest(request));
    const info = { call: request.call, action: 'sample', text: null };
    return inflight.run(reply.raw, info, async (signal) => {
      const answer = await sample(service, request.call, parsed, signal).catch((error: unknown) => {
        throw inflight.toReportedError(error);
      });
      const { memory } = answer;
      const headers = { ...privateHeaders(answer.requestId), 'content-type': 'application/json' };
      try {
        reply.headers(headers).send(await encodeSample(parsed, answer));
        finished(reply.raw, () => memory.release());
        return reply;
      } catch (error) {
        memory.release();
        throw error;
      }
    });
  });
}

const REDACTED = '"[redacted]"';

async function encodeSample({ kind, name }: SampleRequest, answer: Sample): Promise<Buffer> {
  const out = new JsonBytes();
  const head = JSON.stringify({ request_id: answer.requestId, kind, name });
  out.text(`${head.slice(0, -1)},"rows":[`);
  const cells = answer.columns.map((c) => {
    const value = c.passageKey === true ? keyWriter(c.type) : valueWriter(c.type);
    return { lead: `${JSON.stringify(c.name)}:`, value };
  });
  for (const [n, row] of answer.rows.entries()) {
    out.text(n === 0 ? '{' : ',{');
    for (const [i, { lead: prefix, value }] of cells.entries()) {
      out.text(i === 0 ? prefix : `,${prefix}`);
      for (const _ of writeCell(row[i] ?? null, value, out)) await rowScheduler.wait();
    }
    out.text('}');
  }
  const lists = { redacted_columns: answer.redactedColumns, redacted_fields: answer.redactedFields };
  out.text(`],${JSON.stringify(lists).slice(1)}`);
  answer.memory.hold(out.length);
  return Buffer.from(out.take());
}

function* writeCell(cell: SampleCell, value: ValueWriter, out: JsonBytes): Generator<void> {
  if (cell === null) out.text('null');
  else if (typeof cell === 'object') out.text(REDACTED);
  else {
    const bytes = Buffer.from(cell, 'utf8');
    if (bytes.length > PORTION_BYTES) yield* value.portions(bytes, 0, bytes.length, out);
    else value.write(bytes, 0, bytes.length, out);
  }
}

/** `GET /osl/receipts/{request_id}`: the receipt of an earlier answer, for its caller and for auditors. */
export function receiptsRoute(app: FastifyInstance, service: ReceiptParts): void {
  app.get<{ Params: { request_id: string } }>(
    '/osl/receipts/:request_id',
    { schema: RECEIPT_OPERATION },
    async (request, reply) => {
      const { request_id } = request.params;
      await readRequest(service, request.call, 'receipt', () => queryParameters(request, []));
      return sendAnswer(request, reply, await recordedReceipt(service, request.call, request_id));
    },
  );
}
