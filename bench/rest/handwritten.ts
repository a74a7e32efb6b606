import { randomUUID } from 'node:crypto';
import { fastify } from 'fastify';
import { Pool } from 'pg';

/**
 * The route that a careful author writes without a gateway: no token, no policy, no audit, one prepared statement, and
 * the same JSON. `HANDWRITTEN_FRAME` contains the members of the answer that never change.
 */
const pool = new Pool({ connectionString: process.env['BENCH_DATABASE_URL'], max: 8 });
const frame: Readonly<Record<string, unknown>> = JSON.parse(process.env['HANDWRITTEN_FRAME'] ?? '{}');
const { form, columns, row_count, ...tail } = frame;

const app = fastify();

app.post<{ Body: { readonly id: number } }>('/account', async (request, reply) => {
  const { rows } = await pool.query({
    name: 'account',
    text: 'select id, owner, balance, opened::text from bench.account where id = $1',
    values: [request.body.id],
  });
  const requestId = randomUUID();
  reply.header('x-request-id', requestId).header('cache-control', 'private, no-store');
  return { request_id: requestId, form, columns, rows, row_count: rows.length, ...tail };
});

await app.listen({ port: 0, host: '127.0.0.1' });
const address = app.server.address();
const port = typeof address === 'object' ? address?.port : null;
process.stdout.write(`${JSON.stringify({ event: 'listening', port })}\n`);
process.once('SIGTERM', () => void app.close().then(() => pool.end()));
