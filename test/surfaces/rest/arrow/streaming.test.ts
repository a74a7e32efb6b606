import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { RecordBatchReader } from 'apache-arrow';
import { test } from 'tap';
import { replacing } from '../../../support/replacing.js';
import { sealedParts, sealing } from '../../../support/sealed-parts.js';
import { eventually, startRest } from '../fixture.js';
import { ALL, answerOf, BREAKS, begin, LARGE, outcomeOf, ROWS } from '../large.js';
import { asJson, readArrow } from './read.js';

const ARROW = { accept: 'application/vnd.apache.arrow.stream' };

/** All that came before the connection broke. */
async function broken(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
  incoming.resume();
  const [error] = await once(incoming, 'error');
  if (error.code !== 'ECONNRESET') throw error;
  return Buffer.concat(chunks);
}

test('large answers in Arrow', async (t) => {
  const rest = await startRest(LARGE);
  t.teardown(() => rest.close());

  await t.test('come in batches of bounded size', async (t) => {
    const reply = await rest.ask('user:ann', { osql: ALL }, { headers: ARROW });
    t.equal(reply.headers['transfer-encoding'], 'chunked');
    const { batches, trailer, ended } = readArrow(reply.bytes);
    t.equal(
      batches.reduce((sum, b) => sum + b.numRows, 0),
      ROWS,
    );
    t.ok(
      batches.length > 15 && batches.every((b) => b.numRows < 1_200),
      `${batches.length} batches of 1 MiB`,
    );
    t.match(trailer, { row_count: ROWS, truncated: false });
    t.ok(ended);
    const narrow = await rest.ask(
      'user:ann',
      { osql: 'SELECT id FROM osl.entities.event' },
      { headers: ARROW },
    );
    t.strictSame(
      readArrow(narrow.bytes).batches.map((b) => b.numRows),
      [8_192, 8_192, ROWS - 2 * 8_192, 0],
    );
  });

  await t.test('keep each value and each NULL in its row, batch after batch', async (t) => {
    const osql = `SELECT id, CASE WHEN id % 3 = 0 THEN id END AS some, id % 2 = 0 AS even,
        CASE WHEN id % 5 < 3 THEN id % 7 = 0 END AS perhaps, CASE WHEN id > 9000 THEN id::text END AS late,
        CASE WHEN id < 9000 THEN id::numeric / 8 END AS early,
        CASE WHEN id % 11 <> 0 THEN ARRAY[id, NULL, -id] END AS list, NULL::uuid AS none
      FROM osl.entities.event ORDER BY id`;
    const reply = await rest.ask('user:ann', { osql }, { headers: ARROW });
    const stream = readArrow(reply.bytes);
    t.ok(stream.batches.length >= 4, `${stream.batches.length} batches`);
    const rows = (await rest.ask('user:ann', { osql })).json()['rows'];
    if (!Array.isArray(rows)) throw new Error('no rows');
    const ours = asJson(stream);
    t.equal(ours.length, ROWS);
    const differs = rows.findIndex((row, n) => JSON.stringify(row) !== JSON.stringify(ours[n]));
    t.equal(
      differs,
      -1,
      differs < 0 ? 'all rows are those of JSON' : JSON.stringify([rows[differs], ours[differs]]),
    );
  });

  await t.test('that fail later say why, have no end of stream, and break the connection', async (t) => {
    const incoming = await answerOf(await begin(rest, BREAKS, ARROW));
    t.equal(incoming.statusCode, 200);
    const bytes = await broken(incoming);
    t.notOk(incoming.complete);
    const stream = readArrow(bytes);
    t.ok(stream.batches.length > 2, 'some rows had left');
    t.equal(stream.trailer, null);
    t.match(stream.problem, { code: 'E0529', sqlstate: '22012', detail: 'division by zero' });
    t.notOk(stream.ended);
    const id = String(incoming.headers['x-request-id']);
    t.equal(stream.problem?.['request_id'], id);
    t.match(await outcomeOf(rest, id), { outcome: 'error', code: 'E0529' });
  });

  await t.test('that come to a value Arrow has none for fail like any other', async (t) => {
    const osql = `SELECT id, filler, CASE WHEN id = 15000 THEN 'infinity' ELSE '2026-01-01' END::date AS day
      FROM osl.entities.event ORDER BY id`;
    const incoming = await answerOf(await begin(rest, osql, ARROW));
    const stream = readArrow(await broken(incoming));
    t.match(stream, { trailer: null, ended: false, problem: { code: 'E4060' } });
    t.match(await outcomeOf(rest, String(incoming.headers['x-request-id'])), {
      outcome: 'error',
      code: 'E4060',
    });
    t.equal((await rest.ask('user:ann', { osql: `${ALL} WHERE id = 1` })).status, 200, 'the next is served');
  });

  await t.test('reach a reader that reads as they come', async (t) => {
    const response = await fetch(`http://127.0.0.1:${rest.port}/osl/query`, {
      method: 'POST',
      headers: {
        ...ARROW,
        authorization: `Bearer ${await rest.test.token('user:ann')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ osql: ALL }),
    });
    let rows = 0;
    let trailer: unknown = null;
    for await (const batch of await RecordBatchReader.from(response)) {
      rows += batch.numRows;
      trailer = batch.metadata.get('osl.trailer') ?? trailer;
    }
    t.equal(rows, ROWS);
    t.match(JSON.parse(String(trailer)), { row_count: ROWS });
  });

  await t.test('end with their reader', async (t) => {
    const incoming = await answerOf(await begin(rest, ALL, ARROW));
    await once(incoming, 'data');
    incoming.pause();
    incoming.destroy();
    t.match(await outcomeOf(rest, String(incoming.headers['x-request-id'])), { outcome: 'cancelled' });
  });
});

test('a reader that stops pauses the database, and is cut off with the time of its statement', async (t) => {
  const caps = { rows: 1_000_000, bytes: 1_000_000_000, evidence: 1_000, timeoutMs: 5_000 };
  let delivered = 0;
  const counting = await startRest({
    ...LARGE,
    settings: { caps },
    serve: (service) => {
      const engines = new Map(
        [...sealedParts(service).engines].map(([name, engine]) => {
          const execute: typeof engine.execute = (plan, values, options, sink) =>
            engine.execute(plan, values, options, {
              write: (rows, count) => {
                delivered += count;
                return sink.write(rows, count);
              },
            });
          return [name, replacing(engine, { execute })] as const;
        }),
      );
      return sealing(service, { engines });
    },
  });
  t.teardown(() => counting.close());
  const incoming = await answerOf(await begin(counting, ALL, ARROW));
  incoming.pause();
  await eventually(() => delivered > 0);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const paused = delivered;
  t.ok(paused < ROWS, `${paused} of ${ROWS} rows were read`);
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.equal(delivered, paused, 'and no more while it waits');
  t.match(await outcomeOf(counting, String(incoming.headers['x-request-id'])), {
    outcome: 'error',
    code: 'E0517',
  });
  const stream = await broken(incoming);
  t.notOk(incoming.complete);
  t.ok(stream.length < 20_000_000);
});
