import type { FastifyInstance } from 'fastify';
import { type Sample, type SampleCell, type SampleRequest, sample } from '../../../ask/data/sample.js';
import type { AnswerParts } from '../../../ask/index.js';
import { readSampleRequest } from '../bodies/sample.js';
import type { Inflight } from '../inflight.js';
import { JsonBytes } from '../json-bytes.js';
import { SAMPLE_OPERATION } from '../openapi/operations.js';
import { privateHeaders } from '../problem.js';
import { readRequest } from '../read-request.js';
import { keyWriter, valueWriter } from '../values.js';

/** `POST /osl/sample`: a few rows of an entity, or a few chunks of a facet. */
export function sampleRoute(app: FastifyInstance, service: AnswerParts, inflight: Inflight): void {
  app.post('/osl/sample', { schema: SAMPLE_OPERATION }, async (request, reply) => {
    const asked = await readRequest(service, request.call, 'sample', () => readSampleRequest(request));
    const about = { call: request.call, action: 'sample', text: null };
    return inflight.run(reply.raw, about, async (signal) => {
      const answer = await sample(service, request.call, asked, signal).catch((error: unknown) => {
        throw inflight.reasonOf(error);
      });
      const headers = { ...privateHeaders(answer.requestId), 'content-type': 'application/json' };
      return reply.headers(headers).send(bytesOf(asked, answer));
    });
  });
}

/** The literal that stands for a masked cell of any type. */
const REDACTED = '"[redacted]"';

function bytesOf({ kind, name }: SampleRequest, answer: Sample): Buffer {
  const out = new JsonBytes();
  const head = JSON.stringify({ request_id: answer.requestId, kind, name });
  out.text(`${head.slice(0, -1)},"rows":[`);
  const writers = answer.columns.map((c) => {
    const write = c.passageKey === true ? keyWriter(c.type) : valueWriter(c.type);
    return { lead: `${JSON.stringify(c.name)}:`, write };
  });
  for (const [n, row] of answer.rows.entries()) {
    out.text(n === 0 ? '{' : ',{');
    for (const [i, { lead, write }] of writers.entries()) {
      out.text(i === 0 ? lead : `,${lead}`);
      writeCell(row[i] ?? null, write, out);
    }
    out.text('}');
  }
  const lists = { redacted_columns: answer.redactedColumns, redacted_fields: answer.redactedFields };
  out.text(`],${JSON.stringify(lists).slice(1)}`);
  return Buffer.from(out.take());
}

function writeCell(cell: SampleCell, write: ReturnType<typeof valueWriter>, out: JsonBytes): void {
  if (cell === null) out.text('null');
  else if (typeof cell === 'object') out.text(REDACTED);
  else {
    const bytes = Buffer.from(cell, 'utf8');
    write(bytes, 0, bytes.length, out);
  }
}
