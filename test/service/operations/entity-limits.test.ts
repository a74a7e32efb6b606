import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t, { type Test } from 'tap';
import { mintToken } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { NO_REDIS, startRedis } from '../../support/redis.js';
import { osl, type Server } from '../../tools/cli/support.js';
import { adminAsks, listIn } from './admin-listener.js';
import { adminToken, files, openStore } from './store.js';
import { asked, type Place, type Reply, served } from './support.js';

/**
 * Limits on the number of different entities that a caller is shown, and answers that are compared with earlier ones:
 * from outside, with two gateways over one store.
 */

t.setTimeout(240_000);

const PEOPLE = 1_000;
const MOST = 200;
const PERSON = 'select id, name from osl.entities.person';

const MANIFEST = `version: 1
tenant: demo
connectors:
  db:
    kind: postgres
    url_env: STORE_URL
    tables:
      shop.person: { columns: { id: { type: int4 }, name: { type: text, pii: true }, town: { type: text }, age: { type: int4 } } }
      shop.visit: { columns: { id: { type: int4 }, person_id: { type: int4 }, fee: { type: int4 } } }
      shop.badge: { columns: { code: { type: text, sensitivity: secret }, town: { type: text } } }
entities:
  person:
    source: db.shop.person
    primary_key: [id]
    entity_key_columns: [id]
    columns: { id: { column: id }, name: { column: name }, town: { column: town }, age: { column: age } }
    cache: { max_age: 3600 }
  visit:
    source: db.shop.visit
    primary_key: [id]
    entity_key_columns: [id, person_id]
    columns: { id: { column: id }, person_id: { column: person_id }, fee: { column: fee } }
  badge:
    source: db.shop.badge
    primary_key: [code]
    columns: { code: { column: code }, town: { column: town } }
`;

const TABLES = `
  create schema shop;
  create table shop.person (id int primary key, name text, town text, age int);
  insert into shop.person select g, 'n' || g, 't' || g % 10, g % 90 from generate_series(1, ${PEOPLE}) g;
  create table shop.visit (id int primary key, person_id int, fee int);
  insert into shop.visit select g, nullif(g % 50, 0), g from generate_series(1, 500) g;
  create table shop.badge (code text primary key, town text);
  insert into shop.badge select 'b' || g, 't' || g % 10 from generate_series(1, 30) g;
  grant usage on schema shop to osl_reader;
  grant select on all tables in schema shop to osl_reader;`;

const EVERYTHING = [
  { on: 'person', columns: '*', unmask: ['pii'] },
  { on: 'visit', columns: '*' },
  { on: 'badge', columns: '*' },
];
const PER_DAY = { name: 'people_day', per: 'day', each: 'chain', entities: MOST, of: ['person'] };

const ROLES: Readonly<Record<string, object>> = {
  agent: { grants: EVERYTHING, limits: [PER_DAY] },
  tasked: { grants: EVERYTHING, limits: [{ ...PER_DAY, name: 'people_task', per: 'task' }] },
  brief: { grants: EVERYTHING, limits: [{ ...PER_DAY, name: 'people_second', per: 'second' }] },
  labelled: {
    grants: EVERYTHING,
    limits: [{ per: 'day', each: 'subject', entities: 20, labels: ['pii', 'secret'] }],
  },
  // Sees the persons of one town, and others in groups.
  townsman: {
    grants: [{ on: 'person', columns: '*', rows: "town = 't1'", unmask: ['pii'] }],
    limits: [PER_DAY],
  },
  statistician: {
    grants: [{ on: 'person', columns: '*', unmask: ['pii'], min_group_size: 5 }],
    limits: [PER_DAY],
  },
  // Subjects whose answers are compared with those of each other.
  researcher: {
    grants: [
      {
        on: 'person',
        columns: ['id', 'town', 'age'],
        min_group_size: 5,
        overlap: { mode: 'refuse', with: 'research', days: 7 },
      },
    ],
  },
  free: { grants: EVERYTHING },
};

const POLICY = JSON.stringify({
  version: 1,
  tenant: 'demo',
  subjects: {
    ...Object.fromEntries(Object.keys(ROLES).map((role) => [`user:${role}`, { ceiling: [role] }])),
    ...Object.fromEntries(
      ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((n) => [`user:${n}`, { ceiling: ['agent'] }]),
    ),
    'user:colleague': { ceiling: ['researcher'] },
    'user:admin': { ceiling: ['free'], admin: ['TENANT_ADMIN'] },
  },
  roles: ROLES,
  masks: { pii: 'redact', secret: 'hash' },
  limits: { query: 100_000, sample: 1_000, catalog: 1_000, authoring: 1_000 },
});

const ROLE_OF: Readonly<Record<string, string>> = { colleague: 'researcher' };

interface Gateway {
  readonly server: Server;
  readonly place: Place;
  readonly keys: string;
}

type Problem = Readonly<Record<string, unknown>>;

function tokenOf({ place, keys }: Gateway, subject: string): Promise<string> {
  const role = ROLE_OF[subject] ?? (subject.length === 1 ? 'agent' : subject);
  return mintToken(
    { tenant: 'demo', chain: [`user:${subject}`], aclRoles: [role] },
    { algorithm: 'HS256', secret: tenantKeys(place.dataDir, keys).signing },
  );
}

async function post(
  gateway: Gateway,
  subject: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
  path = '/osl/query',
): Promise<Reply> {
  const authorization = `Bearer ${await tokenOf(gateway, subject)}`;
  return asked(gateway.server, path, body, { authorization, ...headers });
}

function ask(gateway: Gateway, subject: string, osql: string, headers = {}): Promise<Reply> {
  return post(gateway, subject, { osql }, headers);
}

function problemOf({ body }: Reply): Problem {
  return JSON.parse(body);
}

async function client(t: Test, gateway: Gateway, subject: string): Promise<pg.Client> {
  const { pgPort } = gateway.server.record();
  const password = await tokenOf(gateway, subject);
  const options = {
    host: '127.0.0.1',
    port: Number(pgPort),
    user: `user:${subject}`,
    database: 'osl',
    password,
  };
  const made = new pg.Client(options);
  await made.connect();
  t.teardown(() => made.end());
  return made;
}

async function callTool(gateway: Gateway, subject: string, osql: string): Promise<Problem> {
  const params = { name: 'semantic_query', arguments: { osql } };
  const accept = 'application/json, text/event-stream';
  const { body } = await post(
    gateway,
    subject,
    { jsonrpc: '2.0', id: 7, method: 'tools/call', params },
    { accept },
    '/mcp',
  );
  const [, data = body] = /^data: (.*)$/m.exec(body) ?? [];
  return JSON.parse(data).result.structuredContent;
}

/** Clients ask for overlapping pages at once, on new connections, until each of them is refused. */
async function countsPersons(t: Test, gateways: readonly Gateway[]): Promise<void> {
  const shown = new Set<number>();
  const clients = Array.from({ length: 4 }, async (_, n) => {
    const gateway = gateways[n % gateways.length];
    if (gateway === undefined) return;
    const c = await client(t, gateway, 'a');
    for (let from = 5 * n; from < PEOPLE; from += 20) {
      try {
        const { rows } = await c.query(`${PERSON} where id > ${from} and id <= ${from + 25}`);
        for (const { id } of rows) shown.add(Number(id));
      } catch (error) {
        t.match(error, { code: '53400', message: /people_day/ });
        return;
      }
    }
  });
  await Promise.all(clients);
  t.ok(shown.size <= MOST && shown.size > MOST - 25, `${shown.size} persons were shown`);
}

const store = await openStore(t, 'limits on different entities', TABLES);
if (store !== null) {
  const { postgres, admin } = store;
  const started = async (env: Readonly<Record<string, string>>): Promise<Gateway> => {
    const place = files(MANIFEST, POLICY);
    const server = await served(t, place, { STORE_URL: postgres.readerUrl, ...env });
    return { place, server, keys: env['OSL_KEYS_DIR'] ?? join(place.dataDir, 'keys') };
  };
  const shared = { OSL_CONTROL_URL: postgres.url, OSL_ADMIN_PORT: '0' };
  const one = await started(shared);
  const two = await started({ ...shared, OSL_KEYS_DIR: one.keys });

  t.test('the Postgres port: an answer that would show one too many stops with an error', async (t) => {
    const [here, there] = [await client(t, one, 'a'), await client(t, two, 'a')];
    for (let from = 1; from <= MOST; from += 20) {
      const page = `${PERSON} where id between ${from} and ${from + 19}`;
      const at = from % 40 === 1 ? here : there;
      t.equal((await at.query(page)).rows.length, 20);
      t.equal((await at.query(page)).rows.length, 20, 'shown before');
    }
    for (const at of [here, there]) {
      t.equal((await at.query(`${PERSON} where id <= ${MOST} order by id desc`)).rows.length, MOST);
      const over = at.query(`${PERSON} where id = ${MOST + 1}`);
      await t.rejects(over, {
        code: '53400',
        message:
          /would exceed a limit of the policy: people_day: 200 different person per day of the chain user:a$/,
        hint: /it renews at \d{4}-/,
      });
      await t.rejects(at.query({ name: 'all', text: PERSON }), { code: '53400' });
      await t.rejects(at.query({ name: 'all', text: PERSON }), { code: '53400' });
      t.equal((await at.query(`${PERSON} where id = 5`)).rows.length, 1, 'the session goes on');
      t.equal(
        (await at.query('select count(*) from osl.entities.badge')).rows.length,
        1,
        'it is not counted',
      );
    }
    await here.query('begin');
    await here.query(`declare c cursor for ${PERSON} where id > ${MOST}`);
    await t.rejects(here.query('fetch 10 from c'), { code: '53400' });
    await here.query('rollback');
  });

  t.test('one large answer shows no more than the limit, and the count is exact at last', async (t) => {
    const c = await client(t, one, 'b');
    const shown = new Set<number>();
    const query = new pg.Query(PERSON);
    const failed = new Promise<unknown>((resolve) => {
      query.on('row', (row) => shown.add(Number(row.id)));
      query.on('error', resolve);
      query.on('end', () => resolve(null));
    });
    c.query(query);
    t.match(await failed, { code: '53400' });
    t.ok(shown.size <= MOST, `${shown.size} persons were shown`);
    const more = Array.from({ length: PEOPLE }, (_, i) => i + 1).filter((id) => !shown.has(id));
    const rest = more.slice(0, MOST - shown.size);
    if (rest.length > 0) await c.query(`${PERSON} where id in (${rest.join()})`);
    const other = more[rest.length];
    await t.rejects(c.query(`${PERSON} where id = ${other}`), { code: '53400' }, 'number 201');
  });

  t.test('REST in each format, MCP and samples count the same persons', async (t) => {
    const page = (from: number, to: number): string => `${PERSON} where id between ${from} and ${to}`;
    t.equal((await ask(one, 'c', page(1, 60))).status, 200);
    t.equal((await ask(two, 'c', page(51, 100), { accept: 'application/x-ndjson' })).status, 200);
    t.match(await callTool(two, 'c', page(91, 130)), { row_count: 40 });
    const { body } = await ask(one, 'c', page(1, 10));
    t.same(
      JSON.parse(body).columns.map(({ name }: { name: string }) => name),
      ['id', 'name'],
      'no key is added',
    );
    t.same(JSON.parse(body).rows[0], { id: 1, name: 'n1' });
    t.equal(
      (await post(one, 'c', { kind: 'table', name: 'person', limit: 100 }, {}, '/osl/sample')).status,
      200,
    );
    t.match(problemOf(await ask(one, 'c', PERSON)), {
      code: 'E4290',
      detail: /people_day: 200 different person per day of the chain user:c$/,
    });
    t.equal((await ask(one, 'c', PERSON)).status, 429);
    t.match(await callTool(one, 'c', PERSON), { problem: { code: 'E4290', detail: /people_day/ } });
    const lines = (await ask(two, 'c', PERSON, { accept: 'application/x-ndjson' })).body.trim().split('\n');
    const last = JSON.parse(lines.at(-1) ?? '');
    t.match(
      last.trailer ?? last,
      last.trailer === undefined ? { code: 'E4290' } : { problem: { code: 'E4290' } },
    );
    const use = await adminAsks(one.server, 'get', '/admin/limits?chain=user:c', await adminToken(one.place));
    const [quota] = listIn(use.body, 'quotas').filter(
      ({ name, whose }) => name === 'people_day' && whose !== null,
    );
    t.match(quota, { unit: 'entities', most: MOST, whose: 'the chain user:c', renews_at: /Z$/ });
    t.ok(Number(quota?.['used']) >= 130 && Number(quota?.['used']) <= MOST, String(quota?.['used']));
    const flags = ['--limits', '--of', 'user:c', '--data-dir', one.place.dataDir, '--subject', 'user:admin'];
    t.match(
      (await osl(['ps', ...flags])).stdout,
      /people_day +\| the chain user:c +\| day +\| 1\d\d +\| 200 +\| entities +\| \d{4}-/,
    );
  });

  t.test('an answer from the cache counts, whoever asked before', async (t) => {
    for (let i = 0; i < 3; i++) t.equal((await ask(one, 'free', `${PERSON} where id <= 150`)).status, 200);
    const asking = (subject: string, osql: string) => ask(one, subject, osql);
    t.equal((await asking('d', `${PERSON} where id <= 150`)).status, 200);
    t.equal(
      (await asking('e', `${PERSON} where id <= 150`)).status,
      200,
      'the same answer for another chain',
    );
    for (const subject of ['d', 'e']) {
      t.equal((await asking(subject, `${PERSON} where id between 151 and 201`)).status, 429);
      t.equal((await asking(subject, `${PERSON} where id between 151 and 200`)).status, 200);
    }
  });

  t.test('what is counted: each row that shows a person, however the query is written', async (t) => {
    let people = 0;
    const counted = async (osql: string, more: number): Promise<void> => {
      const reply = await ask(one, 'f', osql);
      t.equal(reply.status, 200, `${osql}: ${reply.status === 200 ? '' : reply.body}`);
      people += more;
      const use = await adminAsks(
        one.server,
        'get',
        '/admin/limits?chain=user:f',
        await adminToken(one.place),
      );
      const [quota] = listIn(use.body, 'quotas').filter(
        ({ name, whose }) => name === 'people_day' && whose !== null,
      );
      t.equal(quota?.['used'], people, osql);
    };
    const person = 'osl.entities.person';
    await counted(`select name from ${person} where id <= 10`, 10);
    await counted(`select 1 from ${person} where id = 11`, 1);
    await counted(
      `select t.town from (select town, name from ${person} where id <= 12) t where t.name = 'n12'`,
      1,
    );
    await counted(`with w as (select name from ${person} where id = 13) select name from w`, 1);
    await counted(
      `select name from ${person} where id = 14 union all select name from ${person} where id = 15`,
      2,
    );
    await counted(
      `select name from ${person} where id = 16 union all select town from osl.entities.badge`,
      1,
    );
    await counted(`select distinct id, name from ${person} where id = 17`, 1);
    await counted(`select id, count(*) from ${person} where id between 18 and 19 group by id`, 2);
    await counted(`select name, row_number() over (order by id) from ${person} where id = 20`, 1);
    await counted(`select name from ${person} order by id limit 1 offset 20`, 1);
    await counted('select fee from osl.entities.visit', 0);
    const visits = `osl.entities.visit v left join ${person} p on p.id = v.person_id`;
    await counted(`select v.fee, p.name from ${visits} where v.id between 47 and 53`, 3);
    await counted(`select p.id, sum(v.fee) from ${visits} group by p.id order by 2 desc limit 5`, 1);
    await counted(`select * from ${person} where id = -1`, 0);
    t.equal((await post(one, 'f', { osql: `select count(*) from ${person}`, explain: true })).status, 200);
    for (const [osql, reason] of [
      [`select count(*) from ${person}`, /aggregated/],
      [`select town, max(age) from ${person} group by town`, /aggregated/],
      [`select max(age) from ${person} where id = 50`, /aggregated/],
      [`select distinct town from ${person}`, /DISTINCT/],
      [`select name from ${person} union select name from ${person}`, /UNION/],
      [
        `select fee from osl.entities.visit where person_id in (select id from ${person} where age = 7)`,
        /subquery/,
      ],
      [`select name, lag(name) over (order by id) from ${person} where id < 5`, /window function/],
    ] as const) {
      const problem = problemOf(await ask(one, 'f', osql));
      t.match(problem, { code: 'E0536', detail: reason }, osql);
      t.match(String(problem['detail']), /people_day/);
    }
    const c = await client(t, one, 'f');
    await t.rejects(c.query(`select count(*) from ${person}`), { code: '0A000', hint: /primary key/ });
    await t.rejects(c.query({ text: `select max(id) from ${person} where id = $1`, values: [1] }), {
      code: '0A000',
    });
    await counted('select * from osl.entities.badge', 0);
  });

  t.test('groups that policy requires to be large show nobody', async (t) => {
    t.match(
      JSON.parse(
        (await ask(one, 'statistician', 'select town, count(*) from osl.entities.person group by town')).body,
      ),
      { row_count: 10 },
    );
    t.match(JSON.parse((await ask(one, 'statistician', 'select count(*) from osl.entities.person')).body), {
      rows: [{ count: `${PEOPLE}` }],
    });
  });

  t.test('entities by label, whose keys may be masked by hashes', async (t) => {
    t.equal((await ask(one, 'labelled', `${PERSON} where id <= 15`)).status, 200);
    t.equal(
      (await ask(one, 'labelled', `select town from osl.entities.badge where code = 'b1'`)).status,
      200,
    );
    t.equal(
      (await ask(two, 'labelled', 'select code from osl.entities.badge order by code limit 5')).status,
      200,
    );
    t.match(problemOf(await ask(two, 'labelled', 'select town from osl.entities.badge')), {
      detail: /limits\[0\]: 20 different labelled pii, labelled secret per day/,
    });
    t.equal((await ask(one, 'labelled', `${PERSON} where id = 16`)).status, 429);
  });

  t.test('per task, and a new window begins anew', async (t) => {
    t.match(problemOf(await ask(one, 'tasked', PERSON)), { code: 'E0532' });
    t.equal((await ask(one, 'tasked', 'select * from osl.entities.badge')).status, 200, 'it shows no person');
    for (const task of ['T1', 'T2']) {
      t.equal((await ask(one, 'tasked', `${PERSON} where id <= 150`, { 'osl-task': task })).status, 200);
      t.equal((await ask(two, 'tasked', `${PERSON} where id > 900`, { 'osl-task': task })).status, 429);
    }
    for (let from = 0; from < PEOPLE; from += MOST) {
      const page = `${PERSON} where id > ${from} and id <= ${from + MOST}`;
      let reply = await ask(one, 'brief', page);
      for (; reply.status === 429; reply = await ask(one, 'brief', page)) t.ok(reply.headers['retry-after']);
      t.equal(reply.status, 200);
    }
  });

  t.test('rows that policy hides change nothing', async (t) => {
    const town = `select name from osl.entities.person where town like 't%' order by id`;
    const before = await ask(one, 'townsman', town);
    t.equal(JSON.parse(before.body).row_count, 100);
    await admin.query(
      `insert into shop.person select g, 'n' || g, 't0', 1 from generate_series(2000, 3000) g`,
    );
    t.equal(JSON.parse((await ask(one, 'townsman', `${town}, name`)).body).row_count, 100);
    const use = await adminAsks(
      one.server,
      'get',
      '/admin/limits?chain=user:townsman',
      await adminToken(one.place),
    );
    t.ok(listIn(use.body, 'quotas').some(({ name, used }) => name === 'people_day' && used === 100));
    await admin.query('delete from shop.person where id >= 2000');
  });

  t.test('a reload of the same files changes nothing', async (t) => {
    const before = (await ask(one, 'g', `${PERSON} where id <= 3`)).status;
    const { status } = await adminAsks(one.server, 'post', '/admin/reload', await adminToken(one.place), {});
    t.same([before, status], [200, 200]);
    t.equal((await ask(one, 'g', `${PERSON} where id <= 3`)).status, 200);
  });

  t.test('answers of two colleagues at two gateways do not differ by one person', async (t) => {
    const ages = 'select sum(age) from osl.entities.person';
    t.equal((await ask(one, 'researcher', ages)).status, 200);
    t.equal((await ask(two, 'colleague', ages)).status, 200, 'the same question');
    const without = `${ages} where id <> 7`;
    t.match(problemOf(await ask(two, 'colleague', without)), { status: 403, code: 'E0537' });
    t.match(await callTool(one, 'researcher', without), { problem: { code: 'E0537' } });
    const wire = await client(t, two, 'colleague');
    await t.rejects(wire.query(without), { message: /figures of fewer than 5/ });
    t.equal((await ask(two, 'researcher', `${ages} where town <> 't3'`)).status, 200, 'a whole town');
  });

  t.test('two questions at the same moment that differ by one person: one is answered', async (t) => {
    const ages = (most: number): string => `select avg(age) from osl.entities.person where id <= ${most}`;
    for (let most = 100; most < 900; most += 200) {
      const replies = await Promise.all([
        ask(one, 'researcher', ages(most)),
        ask(two, 'colleague', ages(most + 1)),
      ]);
      const statuses = replies.map(({ status }) => status).sort();
      t.same(statuses, [200, 403], `${most} and ${most + 1} persons`);
    }
  });

  t.test('while the store of the counts is away, what they count is refused', async (t) => {
    const moved = 'rename to add_entities_away';
    const signature = 'text[], double precision[], bigint[], bigint[], text[]';
    await admin.query(`alter function osl_control.add_entities(${signature}) ${moved}`);
    t.match(problemOf(await ask(one, 'h', PERSON)), { status: 503, code: 'E5038' });
    t.equal((await ask(one, 'h', 'select * from osl.entities.badge')).status, 200, 'which shows no person');
    await admin.query(`alter function osl_control.add_entities_away(${signature}) rename to add_entities`);
    let reply = await ask(one, 'h', `${PERSON} where id <= ${MOST}`);
    for (; reply.status === 503; reply = await ask(one, 'h', `${PERSON} where id <= ${MOST}`))
      await sleep(250);
    t.equal(reply.status, 200);
  });

  t.test('without a store: two workers, and a single process', async (t) => {
    for (const env of [{ OSL_WORKERS: '2' }, {}]) await countsPersons(t, [await started(env)]);
  });

  t.test('gateways with Redis', async (t) => {
    const redis = await startRedis();
    if (redis === null) {
      t.pass(NO_REDIS, { skip: NO_REDIS });
      return;
    }
    t.teardown(() => redis.stop());
    const first = await started({ OSL_LIMITS_URL: redis.url });
    const second = await started({ OSL_LIMITS_URL: redis.url, OSL_KEYS_DIR: first.keys });
    await countsPersons(t, [first, second]);
  });

  t.test('the control database has hashes that differ for each count', async (t) => {
    const { rows } = await admin.query('select key, member from osl_control.entity_member');
    t.ok(rows.length > 500, `${rows.length} members`);
    t.ok(rows.every(({ member }) => /^[\w-]{22}$/.test(member)));
    t.equal(new Set(rows.map(({ member }) => member)).size, rows.length);
  });
}
