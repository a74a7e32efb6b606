import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { connectPg } from '../../support/pg-client.js';
import { osl } from '../../tools/cli/support.js';
import { files, openStore } from './store.js';
import { asked, logged, place, served, tokenFor } from './support.js';

/** What a running server tells of its requests: histograms, slow questions, and its log. */

t.setTimeout(120_000);

const SECRET = 'hunter2secret';

t.test('each stage of each request is in a histogram, those of the fast lane too', async (t) => {
  const where = place();
  const server = await served(t, where);
  const authorization = `Bearer ${await tokenFor(where.dataDir)}`;
  const metrics = async () => (await asked(server, '/metrics')).body;
  t.notMatch(await metrics(), /^osl_request_stage_seconds_count\{.*form="structured"/m);
  t.match(await asked(server, '/osl/query', { osql: 'select 1 as a' }, { authorization }), { status: 200 });
  t.match(await asked(server, '/osl/query', { osql: 'select nothing' }, { authorization }), { status: 400 });
  t.match(await asked(server, '/osl/query', { osql: 'select 1' }), { status: 403 });
  const page = await metrics();
  for (const stage of ['identify', 'limit', 'decide', 'record', 'answer', 'total'])
    t.match(page, labelled('count', stage, 'rest', 'structured', 'allow', 1), stage);
  t.match(page, labelled('count', 'total', 'rest', 'other', 'error', 1), 'a refused one has no form yet');
  t.match(page, labelled('count', 'total', 'rest', 'other', 'deny', 1));
  t.match(page, /^osl_requests_total\{surface="rest",form="structured",decision="allow",outcome="ok"\} 1$/m);
  t.match(page, /^osl_errors_total\{code="E2102"\} 1$/m);
  t.match(page, /^osl_pool_size\{purpose="questions"\} 1$/m);
  const total = (text: string) =>
    Number(/stage_seconds_sum\{stage="total",surface="rest",form="structured".*\} (\S+)$/m.exec(text)?.[1]);
  t.ok(total(page) > 0 && total(page) < 30);
  const buckets = [
    ...page.matchAll(
      /_bucket\{le="([^"]+)",stage="total",surface="rest",form="structured",decision="allow"\} (\d+)$/gm,
    ),
  ];
  t.equal(buckets.length, 18);
  t.equal(buckets.at(-1)?.[1], '+Inf');
  t.ok(
    buckets.every(([, , count], i) => Number(count) >= Number(buckets[i - 1]?.[2] ?? 0)),
    'they add up',
  );
});

const store = await openStore(t, 'slow questions');
if (store !== null) {
  const { postgres, admin: lock } = store;
  await t.test(
    'a slow question has a line: its shape and stages and no literal, on the fast lane too',
    async (t) => {
      const where = files();
      const env = { STORE_URL: postgres.readerUrl, OSL_SLOW_QUESTION_MS: '150', OSL_LOG_FORMAT: 'json' };
      const server = await served(t, where, env);
      const lines = () => logged(server).filter(({ msg }) => msg === 'slow question');
      const password = await tokenFor(where.dataDir);
      const { pgPort } = server.record();
      const client = await connectPg({ port: pgPort, user: 'user:analyst', password });
      const ask = (n: number) =>
        client.query(
          `select name as x_1 from osl.entities.account where name <> '${SECRET}${n}' and id = ${n}`,
        );
      /** Asks while the table is locked for longer than the setting says. */
      const askSlowly = async (n: number): Promise<void> => {
        await lock.query('begin; lock table shop.account');
        const asking = ask(n);
        await until(async () => {
          const { rows } = await lock.query(
            "select 1 from pg_locks where not granted and relation = 'shop.account'::regclass",
          );
          return rows.length > 0;
        });
        await sleep(200);
        await lock.query('rollback');
        await asking;
      };
      await askSlowly(1);
      await until(async () => lines().length > 0);
      const fast = async () =>
        Number(/^osl_wire_fast_questions (\d+)$/m.exec((await asked(server, '/metrics')).body)?.[1]);
      for (let n = 2; (await fast()) === 0; n++) await ask(n);
      const before = lines().length;
      await askSlowly(100);
      await until(async () => lines().length > before);
      const [one] = lines();
      const last = lines().at(-1);
      t.match(one, {
        level: 40,
        surface: 'wire',
        form: 'structured',
        fingerprint: /^[0-9a-f]{16}$/,
        outcome: 'ok',
        rows: 1,
      });
      t.match(one, { objects: ['osl.entities.account'], decide_ms: Number, record_ms: Number });
      t.match(last, {
        fingerprint: one?.['fingerprint'],
        objects: ['osl.entities.account'],
        outcome: 'ok',
        rows: 0,
      });
      t.notOk(last !== undefined && 'decide_ms' in last, 'it was decided before');
      for (const line of [one, last]) t.ok(Number(line?.['total_ms']) >= 150);
      t.notMatch(server.stderr, SECRET);
      const page = (await asked(server, '/metrics')).body;
      t.match(page, /^osl_slow_questions [2-9]/m);
      t.match(
        page,
        /^osl_request_stage_seconds_count\{stage="total",surface="wire",form="structured",decision="allow"\} \d/m,
      );
      const counted = Number(
        /^osl_requests_total\{surface="wire",form="structured",decision="allow",outcome="ok"\} (\d+)$/m.exec(
          page,
        )?.[1],
      );
      const ok = (await records(where.dataDir)).filter((r) => r.outcome === 'ok' && r.action === 'query');
      t.equal(counted, ok.length, 'as many as the log has outcomes');
      await client.end();
    },
  );
}

t.test('the log is JSON or for people, and SIGHUP takes up another level from a file', async (t) => {
  const where = place();
  const levels = join(where.dataDir, '..', 'level');
  writeFileSync(levels, 'error\n');
  const server = await served(t, where, { OSL_LOG_FORMAT: 'text', OSL_LOG_LEVEL_FILE: levels });
  const traced = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
  await asked(server, '/health', null, traced);
  t.notMatch(server.stderr, /traced request/);
  writeFileSync(levels, 'info\n');
  server.hangUp();
  await server.said('log level info');
  await asked(server, '/health', null, traced);
  await server.said('info  traced request  request_id=');
  writeFileSync(levels, 'loud');
  server.hangUp();
  await server.said('must hold error, warn or info, not `loud`');
  for (const [name, value] of [
    ['OSL_LOG_FORMAT', 'xml'],
    ['OSL_LOG_LEVEL_FILE', '/nowhere'],
  ] as const) {
    const refused = await osl(
      [
        'serve',
        '--manifest',
        where.manifest,
        '--policy',
        where.policy,
        '--data-dir',
        join(where.dataDir, 'x'),
      ],
      {
        env: { [name]: value },
      },
    );
    t.match(refused, { code: 2, stderr: new RegExp(name) });
  }
});

function labelled(
  of: string,
  stage: string,
  surface: string,
  form: string,
  decision: string,
  value: number,
): RegExp {
  return new RegExp(
    `^osl_request_stage_seconds_${of}\\{stage="${stage}",surface="${surface}",form="${form}",decision="${decision}"\\} ${value}$`,
    'm',
  );
}

async function records(dataDir: string) {
  const found = [];
  for await (const record of readRecords(join(dataDir, 'audit'))) found.push(record);
  return found;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(20);
}
