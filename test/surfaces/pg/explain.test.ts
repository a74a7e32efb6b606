import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import tap, { test } from 'tap';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { startTestService } from '../../support/service.js';
import { decisionsAfter, servePg } from './support.js';

/** EXPLAIN over the wire: the governed plan, and nothing of the database's. */

const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
await catalogs.warm();
tap.setTimeout(600_000);
tap.teardown(() => catalogs.close());

const shop = await startTestService({});
const { connect } = await servePg(tap, shop, { catalogs });

async function explained(
  client: pg.Client,
  text: string,
  values: readonly unknown[] = [],
): Promise<string[]> {
  const { rows } = await client.query({ text, values: [...values], rowMode: 'array' });
  return rows.map(([line]) => line);
}

const JOIN = 'select c.region, count(*) from customer c join "order" o on o.customer_id = c.id group by 1';

test('a plan in lines: what is read, by which grants, and what is masked', async (t) => {
  const client = await connect('user:eu');
  const lines = await explained(client, `explain ${JOIN}`);
  t.match(lines[0], /^Select {2}\(grouped\)$/);
  t.match(
    lines.join('\n'),
    / {2}-> {2}Inner join[\s\S]*-> {2}Scan on osl\.entities\.customer {2}\(row filter: applied/,
  );
  t.match(lines.at(-2), /^Objects: osl\.entities\.(customer|order), osl\.entities\.(customer|order)$/);
  t.match(lines.at(-1), /^Grants: g/);
  t.notMatch(lines.join('\n'), /shop\.|rows=|cost=/, 'no table of the source, no estimate');
  await client.end();
});

test('a plan as JSON, with the members that tools draw', async (t) => {
  const client = await connect('user:eu');
  const [text = ''] = await explained(client, `EXPLAIN (FORMAT JSON, COSTS off) ${JOIN}`);
  const [{ Plan: plan, Objects: objects }] = text as unknown as [{ Plan: Plan; Objects: string[] }];
  t.equal(plan['Node Type'], 'Select');
  const [join] = plan.Plans ?? [];
  t.same(join?.Plans?.map((p) => p['Relation Name']).sort(), ['osl.entities.customer', 'osl.entities.order']);
  t.same([...objects].sort(), ['osl.entities.customer', 'osl.entities.order']);
  await client.end();
});

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Plan[];
}

test('the question of an EXPLAIN is found behind any options, and at its place', async (t) => {
  const client = await connect('user:ada');
  const plain = await explained(client, 'explain select id from customer where id = 1');
  for (const text of [
    'explain verbose select id from customer where id = 1;',
    'explain (analyze off, verbose) select id from customer where id = 1',
    'explain (select id from customer where id = 1)',
    'explain (costs) (((select id from customer where id = 1)))',
    '/* ) */ explain ( -- (\n summary ) select id from customer where id = 1',
  ])
    t.same(await explained(client, text), plain, text);
  t.same(await explained(client, 'explain select id from customer where id = $1', [1]), plain);
  t.match(await explained(client, 'explain with a as (select 1) select * from a'), ['Select']);
  const failure = await client.query('explain (costs off) select nope from customer').catch((e) => e);
  t.match(failure, { code: '42703', position: '28' });
  await client.end();
});

test('a right guess of a hidden value looks like a wrong one', async (t) => {
  const client = await connect('user:ann');
  for (const [right, wrong] of [
    ["tax_no = 'DE1'", "tax_no = 'XX9'"],
    ["email = 'ada@eu.example'", "email = 'nobody@eu.example'"],
    ['id = 1', 'id = 999'],
  ] as const)
    t.same(
      await explained(client, `explain select * from customer where ${right}`),
      await explained(client, `explain select * from customer where ${wrong}`),
      right,
    );
  await client.end();
});

test('what an EXPLAIN refuses', async (t) => {
  const client = await connect('user:ada');
  const refused: readonly (readonly [string, string])[] = [
    ['explain analyze select id from customer', '0A000'],
    ['explain (analyze) select id from customer', '0A000'],
    ['explain (analyze true, format json) select id from customer', '0A000'],
    ['explain (analyze maybe) select id from customer', '42601'],
    ['explain (analyze off, analyze on) select id from customer', '0A000'],
    ['explain (nonsense) select id from customer', '42601'],
    ['explain (format xml) select id from customer', '0A000'],
    ['explain (format nonsense) select id from customer', '22023'],
    ['explain delete from customer', '0A000'],
    ['explain execute q', '0A000'],
    ['explain select 1 from customer, pg_class', '0A000'],
    ['explain select 1 from nowhere', '42P01'],
  ];
  for (const [text, code] of refused) t.match(await client.query(text).catch((e) => e), { code }, text);
  t.match(await explained(client, 'explain select relname from pg_class'), [/Seq Scan on pg_class/]);
  await client.end();
});

test('an EXPLAIN is on record as one, whether it is described first or not', async (t) => {
  const client = await connect('user:ada');
  const known = (await shop.records()).length;
  await explained(client, 'explain select id from customer');
  await explained(client, 'explain select id from customer where id = $1', [1]);
  const decisions = await decisionsAfter(shop, known, 2);
  t.same(
    decisions.map(({ action, decision, objects }) => [action, decision, objects]),
    [
      ['explain', 'allow', ['osl.entities.customer']],
      ['explain', 'allow', ['osl.entities.customer']],
    ],
  );
  await client.end();
});

test('a temporary table is refused by its name, with what to write instead', async (t) => {
  const client = await connect('user:ada');
  for (const text of [
    'create temp table t as select id from customer',
    'create temporary table "#Tableau_1" (x int)',
    'create local temporary table t (x int) on commit preserve rows',
    'select id into temp t from customer',
  ])
    t.match(await client.query(text).catch((e) => e), {
      code: '25006',
      message: 'temporary tables are not supported: OSL-SQL is read-only',
      hint: 'use a WITH query in the statement that reads it',
    });
  t.match(await client.query('create table t (x int)').catch((e) => e), { code: '25006', message: /CREATE/ });
  await client.end();
});
