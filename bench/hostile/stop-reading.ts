import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { password, query, startup } from '../../test/wire/support/bytes.js';
import { type Measure, measure } from '../report.js';
import { residentMib } from '../support/child.js';
import { type Gateway, SUBJECT } from '../support/gateway.js';
import { withClient } from '../support/postgres.js';
import { type Experience, startHonest } from './honest.js';

const LOOK_MS = 100;
/** Far longer than the statement timeout. */
const MOST_MS = 90_000;

/** Requests a result of the given size in MiB; the client reads its beginning and then stops reading. */
export async function stopReading(
  gateway: Gateway,
  postgres: NativePostgres,
  plan: { readonly resultMib: number; readonly statementSeconds: number },
  rows: number,
): Promise<{ readonly measures: readonly Measure[]; readonly experience: Experience }> {
  const honest = await startHonest(gateway, rows);
  const before = residentMib(gateway.child.pid);
  let received = 0;
  const token = await gateway.token();
  const socket = connect({ port: gateway.pgPort, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    received += chunk.length;
    if (received > 1_000_000) socket.pause();
  });
  socket.write(
    Buffer.concat([
      startup({ user: SUBJECT, database: 'osl' }),
      password(token),
      query('select id, body from osl.entities.document'),
    ]),
  );
  const { most, paused, held } = await withClient(postgres.url, async (client) => {
    const began = performance.now();
    let most = before;
    let paused = false;
    let seen = false;
    while (performance.now() - began < MOST_MS) {
      most = Math.max(most, residentMib(gateway.child.pid));
      const { rows: backends } = await client.query<{ wait_event: string | null }>(
        `select wait_event from pg_stat_activity where application_name = 'osl-gateway' and state = 'active' and query like '%bench.document%'`,
      );
      seen ||= backends.length > 0;
      paused ||= backends.some((b) => b.wait_event === 'ClientWrite');
      if (seen && backends.length === 0) break;
      await setTimeout(LOOK_MS);
    }
    return { most, paused, held: (performance.now() - began) / 1_000 };
  });
  socket.destroy();
  return {
    measures: [
      measure('hostile.stopped_reader.result', 'MiB', [plan.resultMib]),
      measure('hostile.stopped_reader.rss_grown', 'MiB', [most - before]),
      measure('hostile.stopped_reader.upstream_paused', '1 if Postgres waits to write', [paused ? 1 : 0]),
      measure('hostile.stopped_reader.held', 's', [held], `statement time-out: ${plan.statementSeconds} s`),
    ],
    experience: await honest.stop(),
  };
}
