import { writeFileSync } from 'node:fs';
import tap, { test } from 'tap';
import { AnswerCache, type AnswerCacheBounds } from '../../src/ask/data/answer-cache.js';
import { generatedSql, sql } from '../../src/base/sql.js';
import { AnswerMemory } from '../../src/engine/answer-memory.js';
import { inOneMoment } from '../support/moment.js';
import { nativeOfRun } from '../support/service.js';
import { SHOP_MANIFEST, SHOP_POLICY } from '../support/shop.js';
import { servePg } from '../surfaces/pg/support.js';
import { type Reply, startRest, eventually as until } from '../surfaces/rest/fixture.js';

/*
 * Answers that are given again. What a caller must never be given: an answer of other rights, of other values or
 * settings, of a moment, of a transaction's past, of part of the rows; or one of a state of the data that is known to
 * be over.
 */

const DAY = 86_400;
/** Of customers nothing says that they change; orders have a watermark; products are told of. */
const RULES: Readonly<Record<string, string>> = {
  'columns: [id, name, email, tax_no, born, region]': `cache: { max_age: ${DAY} }`,
  'columns: [id, customer_id, region, quantity, amount, placed_at, note]': `cache: { max_age: ${DAY}, watermark: placed_at }`,
  'columns: [id, label]': `cache: { max_age: ${DAY}, notify: true }`,
};

function withRules(rules: Readonly<Record<string, string>>): string {
  return Object.entries(rules).reduce(
    (yaml, [at, rule]) => yaml.replace(at, `${at}\n    ${rule}`),
    SHOP_MANIFEST,
  );
}

const ROOM: AnswerCacheBounds = { bytes: 1 << 20, entries: 100, answerBytes: 8_192 };

/** An answer of this many bytes, to a query that ran just now. */
function answerOf(bytes: number) {
  const pieces = [{ bytes: new Uint8Array(bytes), rows: 1 }];
  return { pieces, bytes, rows: 1, epoch: 'one', asOf: Date.now(), readAt: performance.now() };
}

test('memory of an answer is given back once, though giving it back serves somebody who waits', async (t) => {
  const full = () => {
    const memory = new AnswerMemory({ rowBytes: 10_000, bytes: 10_000 });
    const cache = new AnswerCache({ bytes: 8_000, entries: 10, answerBytes: 4_000 }, memory);
    t.ok(memory.take('user:ann', 9_000));
    void memory.wait('user:bob', 3_000); // more than there is with an empty cache
    return { memory, cache };
  };
  await t.test('a caller who overtakes frees two answers', async (t) => {
    const { memory, cache } = full();
    cache.store('first', answerOf(1_000));
    cache.store('second', answerOf(500));
    t.notOk(memory.take('user:cy', 1_500));
    t.equal(memory.stats().held, 9_000 + cache.stats().bytes);
    t.ok(memory.take('user:cy', 900));
  });
  await t.test('two equal queries end one after the other', async (t) => {
    const { memory, cache } = full();
    cache.store('same', answerOf(1_000));
    cache.store('same', answerOf(1_000));
    t.equal(memory.stats().held, 9_000 + cache.stats().bytes);
  });
  await t.test('an answer of an earlier epoch is dropped', async (t) => {
    const { memory, cache } = full();
    cache.store('old', answerOf(1_000));
    cache.store('other', answerOf(500));
    t.equal(cache.find('old', 'two', DAY * 1_000), null);
    t.equal(memory.stats().held, 9_000 + cache.stats().bytes);
  });
});

const postgres = await nativeOfRun();
if (postgres === null) tap.pass('no native Postgres for this run');
else {
  const rest = await startRest({
    postgres,
    manifest: withRules(RULES),
    settings: { resultCache: ROOM, caps: { rows: 500, bytes: 1 << 20, evidence: 10, timeoutMs: 30_000 } },
  });
  const { port, connect } = await servePg(tap, rest.test);
  tap.teardown(async () => {
    await rest.server.close(1_000);
    await postgres.stop();
  });
  suite(rest, { port, connect });
}

type Rest = Awaited<ReturnType<typeof startRest>>;
type Wire = Pick<Awaited<ReturnType<typeof servePg>>, 'port' | 'connect'>;

function from(reply: Reply): unknown {
  const { freshness } = reply.json() as { freshness?: { from: string } };
  return freshness?.from ?? 'live, and not kept';
}

function suite(rest: Rest, wire: Wire): void {
  const { test: shop } = rest;
  const { system } = shop.engine;
  const ask = (user: string, osql: string, headers: Record<string, string> = {}): Promise<Reply> =>
    rest.ask(user, { osql }, { headers });
  const rows = (reply: Reply): unknown => reply.json()['rows'];
  const serve = async (policy: string): Promise<void> => {
    writeFileSync(shop.policyFile, policy);
    await shop.open.reload();
  };

  test('the second answer is the first one, and is on record as such', async (t) => {
    const question = 'select name, email from customer where id = 1';
    const first = await ask('user:ada', question);
    t.equal(from(first), 'live');
    t.equal(first.headers['age'], '0');
    await system.script(sql`update shop.customers set name = 'Adela' where id = 1`);
    const second = await ask('user:ada', question);
    t.equal(from(second), 'cache');
    t.same(rows(second), [{ name: 'Ada', email: 'ada@eu.example' }], 'nobody said that the row has changed');
    t.match(String(second.headers['age']), /^\d+$/);
    t.same(
      (second.json()['freshness'] as Record<string, unknown>)['as_of'],
      (first.json()['freshness'] as Record<string, unknown>)['as_of'],
    );
    const [decision, outcome] = await shop.records(second.requestId);
    t.match(decision, { kind: 'decision', decision: 'allow', objects: ['osl.entities.customer'] });
    t.match(outcome, { kind: 'outcome', outcome: 'ok', rows: 1 });
    const { cached } = JSON.parse(String(outcome?.detail)) as { cached: { epoch: string; age_ms: number } };
    t.equal(cached.epoch, 'customer[|by time]');
    t.ok(cached.age_ms >= 0);
    const anew = await ask('user:ada', question, { 'cache-control': 'no-cache' });
    t.equal(from(anew), 'live');
    t.same(rows(anew), [{ name: 'Adela', email: 'ada@eu.example' }]);
    t.same(rows(await ask('user:ada', question)), rows(anew), 'what was read anew is kept');
    await system.script(sql`update shop.customers set name = 'Ada' where id = 1`);
    await ask('user:ada', question, { 'cache-control': 'no-cache' });
  });

  test('a watermark ends what was kept before it moved', async (t) => {
    const question = 'select count(*) as n from "order"';
    t.equal(from(await ask('user:ada', question)), 'live');
    t.equal(from(await ask('user:ada', question)), 'cache');
    await system.script(
      sql`insert into shop.orders values (1000, 1, 'eu', 1, 1, '2026-06-01 00:00:00+00', null)`,
    );
    const after = await ask('user:ada', question);
    t.equal(from(after), 'live');
    t.same(rows(after), [{ n: '41' }]);
    t.equal(from(await ask('user:ada', question)), 'cache');
    await system.script(sql`delete from shop.orders where id = 1000`);
  });

  test('so does a notification, of the entity or of all', async (t) => {
    const question = 'select label from product order by id';
    await until(async () => from(await ask('user:ann', question)) === 'cache');
    for (const [label, notify] of [
      ['coffee', "notify osl_data, 'product'"],
      ['cocoa', 'notify osl_data'],
    ] as const) {
      await system.script(generatedSql(`update shop.products set label = '${label}' where id = 1`));
      t.same(rows(await ask('user:ann', question))?.[0 as never] !== label, true);
      await system.script(sql`notify osl_data, 'another'`);
      await system.script(generatedSql(notify));
      await until(async () => JSON.stringify(rows(await ask('user:ann', question))).includes(label));
    }
    // In this order: an answer of before the change may be kept as soon as the gateway listens again.
    await system.script(sql`update shop.products set label = 'tea' where id = 1`);
    await system.script(
      sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'osl results' and datname = current_database()`,
    );
    await until(async () => from(await ask('user:ann', question)) === 'live');
    await until(async () => from(await ask('user:ann', question)) === 'cache');
    t.same(
      rows(await ask('user:ann', question)),
      [{ label: 'tea' }, { label: 'salt' }],
      'what was not heard is not missed',
    );
  });

  test('an answer is of its rights: masks, row filters, attributes, delegation', async (t) => {
    const question = 'select id, email from customer order by id';
    const callers = ['user:ada', 'user:ann', 'user:eu', 'user:us'];
    const first = new Map<string, string>();
    for (const user of callers) first.set(user, JSON.stringify(rows(await ask(user, question))));
    t.equal(new Set(first.values()).size, callers.length, 'each sees something else');
    for (const user of [...callers, ...callers].reverse()) {
      const again = await ask(user, question);
      t.equal(from(again), 'cache', user);
      t.equal(JSON.stringify(rows(again)), first.get(user), user);
    }
    const claims = { chain: ['user:eu', 'agent:bot'] };
    const delegated = await rest.ask('user:eu', { osql: question }, claims);
    t.equal(from(delegated), 'live', 'a chain has rights of its own');
    t.equal((await ask('user:nil', question)).status, 403);
  });

  test('rights that are gone take their answers with them, and bring back none', async (t) => {
    const question = 'select id, name, email from customer where id < 3 order by id';
    const before = await ask('user:eu', question);
    t.equal(from(await ask('user:eu', question)), 'cache');
    t.teardown(() => serve(SHOP_POLICY));
    await serve(SHOP_POLICY.replace('attributes: { region: eu }', 'attributes: { region: us }'));
    const moved = await ask('user:eu', question);
    t.equal(from(moved), 'live');
    t.same(rows(moved), []);
    await serve(SHOP_POLICY.replace('columns: [id, name, email, region]', 'columns: [id, name, region]'));
    t.equal((await ask('user:eu', question)).status, 400, 'the column is no more');
    await serve(SHOP_POLICY.replace('user:eu: { ceiling: [regional]', 'user:eu: { ceiling: []'));
    t.equal((await ask('user:eu', question)).status, 403);
    await serve(SHOP_POLICY);
    await system.script(sql`update shop.customers set name = 'Bob' where id = 2`);
    const back = await ask('user:eu', question);
    t.equal(from(back), 'live', 'what was kept under the same policy before is forgotten');
    t.notSame(rows(back), rows(before));
    await system.script(sql`update shop.customers set name = 'Bo' where id = 2`);
  });

  test('values are part of the question', async (t) => {
    const asked = (value: unknown): Promise<Reply> =>
      rest.ask('user:ada', { osql: 'select name from customer where id = $1::int4', parameters: [value] });
    t.same(rows(await asked(3)), [{ name: 'Cy' }]);
    t.same(rows(await asked(4)), [{ name: 'Di' }]);
    t.same(rows(await asked(null)), []);
    t.same(rows(await asked(3)), [{ name: 'Cy' }]);
    t.equal(from(await asked(3)), 'cache');
    // What is one value of two parts must not be two values.
    const two = (a: string, b: string): Promise<Reply> =>
      rest.ask('user:ada', {
        osql: 'select $1::text as a, $2::text as b from customer where id = 1',
        parameters: [a, b],
      });
    t.same(rows(await two('x', '1:y')), [{ a: 'x', b: '1:y' }]);
    t.same(rows(await two('x1:', 'y')), [{ a: 'x1:', b: 'y' }]);
  });

  const NEVER: Readonly<Record<string, string>> = {
    'the clock': "select id from customer where born < now() - interval '1 day'",
    'the day': 'select id from customer where born < current_date',
    'a word for the day': "select id from customer where born < date 'today'",
    'a text that may be such a word': 'select id from customer where born < name::text::date and false',
    'an age': 'select age(born) from customer',
    dice: 'select random() from customer',
    'a sample': 'select id from customer tablesample bernoulli (50)',
    'an entity without a rule': 'select id from sample',
    'a bridge': 'select o.id from "order" o join line l on l.order_id = o.id',
    'an entity with, and one without': 'select (select max(id) from sample) as m from customer',
    nothing: 'select 1 as one',
  };
  for (const [what, question] of Object.entries(NEVER)) {
    test(`not kept: ${what}`, async (t) => {
      for (let i = 0; i < 3; i++) t.equal(from(await ask('user:ada', question)), 'live, and not kept');
    });
  }

  test('not kept: a value that names a day', async (t) => {
    const asked = (value: string): Promise<Reply> =>
      rest.ask('user:ada', { osql: 'select id from customer where born < $1::date', parameters: [value] });
    t.equal(from(await asked('today')), 'live, and not kept');
    t.equal(from(await asked('today')), 'live, and not kept');
    t.equal(from(await asked('2026-01-01')), 'live');
    t.equal(from(await asked('2026-01-01')), 'cache');
  });

  test('not kept: what failed, was cut off, or is large', async (t) => {
    const failing = 'select 100 / (id - 1) as x from customer';
    for (let i = 0; i < 2; i++) t.equal((await ask('user:ada', failing)).status, 400);
    const cut = 'select id, generate_series(1, 600) from customer';
    for (let i = 0; i < 2; i++) {
      const reply = await ask('user:ada', cut);
      t.match(reply.json(), { truncated: true, freshness: { from: 'live' } });
    }
    const large = "select repeat('x', 3000) as x from customer";
    for (let i = 0; i < 2; i++)
      t.equal(from(await ask('user:ada', large)), 'live', 'four rows of 3,000 bytes');
  });

  test('the wire is given the same bytes, under the same settings alone', async (t) => {
    const client = await wire.connect('user:ada');
    t.teardown(() => client.end());
    const question = 'select id, placed_at from "order" where id = 7 and region = \'us\'';
    const shown = async (name: string): Promise<string> => (await client.query(`show ${name}`)).rows[0][name];
    const first = await client.query({ text: question, rowMode: 'array' });
    t.equal(await shown('osl.freshness'), 'live');
    const second = await client.query({ text: question, rowMode: 'array' });
    t.same(second.rows, first.rows);
    t.match(await shown('osl.freshness'), /^cache, as of \d{4}-/);
    t.equal(from(await ask('user:ada', question)), 'cache', 'text is text');
    await client.query("set timezone = 'Asia/Tokyo'");
    const types = { getTypeParser: () => (text: string) => text };
    const tokyo = await client.query({ text: question, types });
    t.equal(await shown('osl.freshness'), 'live');
    t.match(tokyo.rows[0], { placed_at: /\+09$/ });
    await client.query({ text: question, types });
    t.match(await shown('osl.freshness'), /^cache/);
    await client.query('reset timezone');
    t.match((await client.query({ text: question, types })).rows[0], { placed_at: /\+00$/ });
    await client.query('set osl.cache = off');
    await client.query(question);
    t.equal(await shown('osl.freshness'), 'live');
    await t.rejects(client.query("set osl.freshness = 'live'"), { code: '55P02' });
  });

  test('a transaction sees what is there, not what was', async (t) => {
    const client = await wire.connect('user:ada');
    t.teardown(() => client.end());
    const question = 'select name from customer where id = 3';
    for (let i = 0; i < 3; i++) await client.query(question);
    t.match((await client.query('show osl.freshness')).rows[0]['osl.freshness'], /^cache/);
    await system.script(sql`update shop.customers set name = 'Cyd' where id = 3`);
    for (const begin of ['begin', 'begin isolation level repeatable read']) {
      await client.query(begin);
      t.same((await client.query(question)).rows, [{ name: 'Cyd' }], begin);
      await client.query('commit');
    }
    t.same((await client.query(question)).rows, [{ name: 'Cy' }], 'outside, it is what was kept');
    await system.script(sql`update shop.customers set name = 'Cy' where id = 3`);
  });

  test('limits count what is given again', async (t) => {
    t.teardown(() => serve(SHOP_POLICY));
    const question = 'select name from customer where id = 4';
    await serve(SHOP_POLICY.replace('query: 100000', 'query: 3'));
    const { hits } = shop.service.answers.stats();
    const statuses = await inOneMoment(async () => {
      const all: number[] = [];
      for (let i = 0; i < 5; i++) all.push((await ask('user:den', question)).status);
      return all;
    });
    t.same(statuses, [200, 200, 200, 429, 429]);
    t.equal(shop.service.answers.stats().hits - hits, 2);
  });

  test('there is room for so many', async (t) => {
    for (let i = 0; i < 300; i++) await ask('user:ada', `select ${i} as i from customer where id = 1`);
    const { entries, bytes, hits } = shop.service.answers.stats();
    t.ok(entries <= ROOM.entries && entries > 50, `${entries} entries`);
    t.ok(bytes <= ROOM.bytes);
    t.ok(hits > 10);
  });

  test('the log is whole', async (t) => {
    t.match(await shop.verdict(), { integrity: 'intact', openDecisions: 0 });
  });
}

test('an answer is too old when its time is over', async (t) => {
  const own = await nativeOfRun();
  if (own === null) {
    t.pass('no native Postgres for this run');
    return;
  }
  const rules = { 'columns: [id, name, email, tax_no, born, region]': 'cache: { max_age: 1 }' };
  const rest = await startRest({ postgres: own, manifest: withRules(rules) });
  t.teardown(async () => {
    await rest.close();
    await own.stop();
  });
  const asked = (): Promise<Reply> =>
    rest.ask('user:ada', { osql: 'select name from customer where id = 1' });
  await asked();
  await rest.test.engine.system.script(sql`update shop.customers set name = 'Adela' where id = 1`);
  await until(async () => JSON.stringify((await asked()).json()['rows']).includes('Adela'));
});
