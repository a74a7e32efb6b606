import { finished } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { type Sample, type SampleCell, type SampleRequest, sample } from '../../../ask/data/sample.js';
import type { AnswerParts } from '../../../ask/index.js';
import { rowScheduler } from '../../../engine/index.js';
import { readSampleRequest } from '../bodies/query.js';
import { readRequest } from '../call.js';
import type { Inflight } from '../inflight.js';
import { JsonBytes, PORTION_BYTES, type ValueWriter } from '../json-bytes.js';
import { SAMPLE_OPERATION } from '../openapi/operations.js';
import { privateHeaders } from '../problem.js';
import { keyWriter, valueWriter } from '../values.js';

export function sampleRoute(app: FastifyInstance, service: AnswerParts, inflight: Inflight): void {
  app.post('/osl/sample', { schema: SAMPLE_OPERATION }, async (request, reply) => {
    const asked = await readRequest(service, request.call, 'sample', () => readSampleRequest(request));
    const about = { call: request.call, action: 'sample', text: null };
    return inflight.run(reply.raw, about, async (signal) => {
      const answer = await sample(service, request.call, asked, signal).catch((error: unknown) => {
        throw inflight.reasonOf(error);
      });
      const { memory } = answer;
      const headers = { ...privateHeaders(answer.requestId), 'content-type': 'application/json' };
      try {
        reply.headers(headers).send(await bytesOf(asked, answer));
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

async function bytesOf({ kind, name }: SampleRequest, answer: Sample): Promise<Buffer> {
  const out = new JsonBytes();
  const head = JSON.stringify({ request_id: answer.requestId, kind, name });
  out.text(`${head.slice(0, -1)},"rows":[`);
  const cells = answer.columns.map((c) => {
    const value = c.passageKey === true ? keyWriter(c.type) : valueWriter(c.type);
    return { lead: `${JSON.stringify(c.name)}:`, value };
  });
  for (const [n, row] of answer.rows.entries()) {
    out.text(n === 0 ? '{' : ',{');
    for (const [i, { lead, value }] of cells.entries()) {
      out.text(i === 0 ? lead : `,${lead}`);
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
