import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { emit, explain, QueryError, queryError } from 'osl-compiler';
import type { Service } from '../../service.js';
import { ask, explainPlan, type Question } from '../../spine/index.js';
import { AnswerStream, type Layout } from '../answer-stream.js';
import { columnsOf } from '../columns.js';
import type { Inflight } from '../inflight.js';
import { QUERY_OPERATION } from '../openapi/operations.js';
import { privateHeaders } from '../problem.js';
import { type QueryRequest, readQueryRequest } from '../query-body.js';
import { readRequest } from '../read-request.js';

/** `POST /osl/query`: questions, and with `explain: true` their plans. */
export function queryRoute(app: FastifyInstance, service: Service, inflight: Inflight): void {
  app.post('/osl/query', { schema: QUERY_OPERATION }, async (request, reply) => {
    const asked = await readRequest(service, request, 'query', () => readQueryRequest(request));
    const question: Question = { ...request.call, body: asked.body, parameterOids: [] };
    if (asked.explain) return explained(service, question, reply);
    return inflight.run(reply.raw, (signal) =>
      answered(service, question, asked, request, reply, inflight, signal),
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
  const stream = new AnswerStream(reply, question.requestId, layoutOf(request.headers.accept));
  try {
    const answer = await ask(service, question, {
      parameters: asked.parameters,
      resultFormats: [],
      maxRows: 0,
      signal,
      sink: (plan) => stream.open(plan),
    });
    return stream.finish(answer);
  } catch (error) {
    const told = error instanceof QueryError && error.entry === 'cancelled' && inflight.stopped;
    const reason = told ? queryError('shuttingDown', {}) : error;
    if (reason instanceof QueryError && stream.fail(reason)) return reply;
    throw reason;
  }
}

async function explained(service: Service, question: Question, reply: FastifyReply): Promise<FastifyReply> {
  const { plan, caller } = await explainPlan(service, question);
  const mayReadSql = caller.access.adminRoles.size > 0;
  const body = {
    request_id: question.requestId,
    form: plan.form,
    plan: explain(plan),
    objects: plan.objects,
    grants: plan.grants,
    columns: columnsOf(plan),
    ...(mayReadSql ? { sql: emit(plan).sql } : {}),
    versions: { manifest: caller.manifest.version, policy: caller.snapshot.version },
  };
  return reply
    .headers({ ...privateHeaders(question.requestId), 'content-type': 'application/json' })
    .send(Buffer.from(JSON.stringify(body)));
}

/** NDJSON where the client names it and does not rule it out with `q=0`. */
function layoutOf(accept: string | undefined): Layout {
  const ranges = (accept ?? '').toLowerCase().split(',');
  const wanted = ranges.some((range) =>
    /^\s*application\/x-ndjson\s*(?:;(?!\s*q=0(?:\.0*)?\s*$).*)?$/.test(range),
  );
  return wanted ? 'ndjson' : 'json';
}
