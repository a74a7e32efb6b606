import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { InternalError, QueryError } from 'osl-compiler';
import { type AnswerParts, type DataQuestion, QuestionRouter } from '../../../ask/index.js';
import { explainQuestion } from '../answer-members.js';
import { type AnswerLayout, AnswerStream, layoutOf, type RowEncoding } from '../answer-stream.js';
import { type QueryRequest, readQueryRequest } from '../bodies/query.js';
import { readRequest } from '../call.js';
import type { Inflight } from '../inflight.js';
import { JsonAnswer, NdjsonAnswer } from '../json-answer.js';
import { QUERY_OPERATION } from '../openapi/operations.js';
import { sendJson } from '../problem.js';

export function queryRoute(app: FastifyInstance, service: AnswerParts, inflight: Inflight): void {
  const questions = new QuestionRouter(service);
  app.post('/osl/query', { schema: QUERY_OPERATION }, async (request, reply) => {
    const asked = await readRequest(service, request.call, 'query', () => readQueryRequest(request));
    const mayBeOld = !NO_CACHE.test(request.headers['cache-control'] ?? '');
    const question: DataQuestion = { ...request.call, body: asked.body, parameterOids: [], mayBeOld };
    const { body } = asked;
    const text = 'text' in body ? body.text : null;
    return inflight.run(reply.raw, { call: request.call, action: 'query', text }, async (signal) => {
      if (!asked.explain) return streamAnswer(questions, question, asked, request, reply, inflight, signal);
      return sendJson(
        reply,
        question.requestId,
        await explainQuestion(service, question, asked.upstream, signal),
      );
    });
  });
}

async function streamAnswer(
  questions: QuestionRouter,
  question: DataQuestion,
  asked: QueryRequest,
  request: FastifyRequest,
  reply: FastifyReply,
  inflight: Inflight,
  signal: AbortSignal,
): Promise<FastifyReply> {
  const encoding = await encodingOf(layoutOf(request.headers.accept));
  const stream = new AnswerStream(reply, question.requestId, encoding);
  try {
    const answer = await questions.answer(question, {
      parameters: asked.parameters,
      resultFormats: (plan) => encoding.formats(plan),
      copies: encoding.copies,
      maxRows: 0,
      again: question.mayBeOld === true ? 'given before' : 'anew',
      signal,
      sink: (plan, versions, redacted) => stream.open({ plan, versions, redacted }),
    });
    return stream.finish(answer);
  } catch (error) {
    const reason = inflight.reasonOf(error);
    if (reason instanceof QueryError && stream.fail(reason)) return reply;
    throw reason;
  }
}

/** `Cache-Control` of a client that requests a current answer. */
const NO_CACHE = /\bno-(?:cache|store)\b/i;

/** The Arrow library is slow to load, so it is loaded on first use. */
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
