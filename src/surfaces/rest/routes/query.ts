import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { emit, explain, InternalError, QueryError } from 'osl-compiler';
import { explainPlan, type Upstream } from '../../../ask/explain.js';
import { ask, type Question, versionsOf } from '../../../ask/index.js';
import type { Service } from '../../../service/service.js';
import { redactionsIn } from '../answer-members.js';
import { AnswerStream } from '../answer-stream.js';
import { columnsOf, describedColumn } from '../columns.js';
import { deprecatedIn } from '../deprecated.js';
import type { Encoding } from '../encoding.js';
import type { Inflight } from '../inflight.js';
import { JsonAnswer, NdjsonAnswer } from '../json-answer.js';
import { type Layout, layoutOf } from '../layout.js';
import { QUERY_OPERATION } from '../openapi/operations.js';
import { type QueryRequest, readQueryRequest } from '../query-body.js';
import { readRequest } from '../read-request.js';
import { sendJson } from '../send-json.js';

/** `POST /osl/query`: questions, and with `explain: true` their plans. */
export function queryRoute(app: FastifyInstance, service: Service, inflight: Inflight): void {
  app.post('/osl/query', { schema: QUERY_OPERATION }, async (request, reply) => {
    const asked = await readRequest(service, request, 'query', () => readQueryRequest(request));
    const question: Question = { ...request.call, body: asked.body, parameterOids: [] };
    return inflight.run(reply.raw, (signal) =>
      asked.explain
        ? explained(service, question, asked.upstream, reply, signal)
        : answered(service, question, asked, request, reply, inflight, signal),
    );
  });
}

async function answered(
  service: Service,
  question: Question,
  asked: QueryRequest,
  request: FastifyRequest,
  reply: FastifyReply,
  inflight: Inflight,
  signal: AbortSignal,
): Promise<FastifyReply> {
  const encoding = await encodingOf(layoutOf(request.headers.accept));
  const stream = new AnswerStream(reply, question.requestId, encoding);
  try {
    const answer = await ask(service, question, {
      parameters: asked.parameters,
      resultFormats: [encoding.rowFormat],
      maxRows: 0,
      signal,
      sink: (plan, versions) => stream.open(plan, versions),
    });
    return stream.finish(answer);
  } catch (error) {
    const reason = inflight.reasonOf(error);
    if (reason instanceof QueryError && stream.fail(reason)) return reply;
    throw reason;
  }
}

async function explained(
  service: Service,
  question: Question,
  wanted: Upstream | null,
  reply: FastifyReply,
  signal: AbortSignal,
): Promise<FastifyReply> {
  const { plan, caller, upstream } = await explainPlan(service, question, wanted, signal);
  const mayReadSql = caller.access.adminRoles.size > 0;
  const body = {
    request_id: question.requestId,
    form: plan.form,
    plan: explain(plan),
    objects: plan.objects,
    grants: plan.grants,
    columns: columnsOf(plan).map(describedColumn),
    ...redactionsIn(plan),
    ...deprecatedIn(plan.objects, caller.manifest),
    ...(mayReadSql ? { sql: emit(plan).sql } : {}),
    ...(upstream !== null ? { upstream } : {}),
    versions: versionsOf(caller),
  };
  return sendJson(reply, question.requestId, body);
}

/** Arrow's library takes its time to load, and only answers in Arrow wait for it. */
async function encodingOf(layout: Layout): Promise<Encoding> {
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
