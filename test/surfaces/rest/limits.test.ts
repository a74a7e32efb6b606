import { test } from 'tap';
import { DEFAULT_LIMITS } from '../../../policy/index.js';
import { inOneMoment } from '../../support/moment.js';
import { sealedParts } from '../../support/sealed-parts.js';
import { eventually, freshAddress, type Reply, startRest } from './fixture.js';

const rest = await startRest();
test('limits', async (t) => {
  t.teardown(() => rest.close());
  const many = (n: number, send: () => Promise<Reply>): Promise<Reply[]> =>
    inOneMoment(() => Promise.all(Array.from({ length: n }, send)));

  await t.test('a subject beyond its limit hears when to come back, and is recorded', async (t) => {
    sealedParts(rest.test.service).limiter.configure({ ...DEFAULT_LIMITS, query: 3 });
    t.teardown(() => sealedParts(rest.test.service).limiter.configure({ ...DEFAULT_LIMITS, query: 1_000 }));
    const replies = await many(8, () => rest.ask('user:ann', { osql: 'SELECT 1 AS a' }));
    const refused = replies.filter((r) => r.status === 429);
    t.ok(refused.length >= 4, `${refused.length} refused`);
    for (const reply of refused) {
      t.match(reply.json(), {
        code: 'E4290',
        sqlstate: '53400',
        detail: /rate limit exceeded for this subject/,
      });
      t.match(reply.headers['retry-after'], /^[1-9]\d*$/);
      t.match(await rest.trail(reply.requestId), [{ subject: 'user:ann', decision: 'error', code: 'E4290' }]);
    }
    const other = await rest.ask('user:ada', { osql: 'SELECT 1 AS a' });
    t.equal(other.status, 200, 'others are not held up');
    const malformed = await many(8, () => rest.ask('user:eu', '{'));
    t.ok(
      malformed.some((r) => r.status === 429),
      'faulty bodies count too',
    );
  });

  await t.test('strangers cost the log little: the first beyond the limit, and a count', async (t) => {
    const from = freshAddress();
    const before = (await rest.test.records()).length;
    const replies = await many(60, () => rest.send('/nope', { from }));
    const limited = replies.filter((r) => r.status === 429);
    t.equal(limited.length, 40);
    for (const reply of limited) {
      t.match(reply.json(), { code: 'E4290', detail: /without a valid token from this address$/ });
      t.ok(reply.headers['retry-after']);
    }
    const since = async () => (await rest.test.records()).slice(before);
    await eventually(async () => (await since()).some((r) => r.kind === 'event'));
    const records = await since();
    t.equal(records.filter((r) => r.code === 'E4040').length, 20);
    const [first, ...more] = records.filter((r) => r.kind === 'decision' && r.code === 'E4290');
    t.equal(more.length, 0);
    const [event] = records.filter((r) => r.kind === 'event');
    t.match(event, { action: 'suppressed', surface: 'rest', code: 'E4290', rows: 39, subject: null });
    t.equal(event?.request_id, first?.request_id);
    t.match(
      rest.test.lines.findLast((l) => l.level === 'warn')?.fields,
      { address: from, count: 39 },
      'the operator learns from where',
    );
    t.equal(
      (await rest.send('/nope', { from: freshAddress() })).status,
      404,
      'another address is not held up',
    );
    const known = await rest.send('/osl/conformance', {
      from,
      headers: { authorization: `Bearer ${await rest.test.token('user:ann')}` },
    });
    t.equal(known.status, 200, 'nor is a valid token from the same address');
  });

  await t.test('every way of being nobody counts against the address', async (t) => {
    const from = freshAddress();
    const ways = [
      () => rest.send('/nope', { from }),
      () => rest.send('/osl/query', { from, method: 'POST' }),
      () => rest.send('/osl/conformance', { from, headers: { authorization: 'Bearer broken' } }),
      () => rest.send('/health', { from, method: 'DELETE' }),
    ];
    const replies = await inOneMoment(() =>
      Promise.all(ways.flatMap((way) => Array.from({ length: 10 }, way))),
    );
    t.equal(replies.filter((r) => r.status === 429).length, 20);
  });

  await t.test('a closing service records what it has only counted', async (t) => {
    const short = await startRest();
    const from = freshAddress();
    await many(30, () => short.send('/nope', { from }));
    const dir = short.test;
    await short.server.close(100);
    dir.service.refusals.settle();
    const events = (await dir.records()).filter((r) => r.kind === 'event' && r.action === 'suppressed');
    t.match(events, [{ rows: 9 }]);
    await dir.close();
  });
});
