import { compile, emit, literalText, ready } from 'osl-compiler';
import pg from 'pg';
import tap, { type Test, test } from 'tap';
import { effectiveAccess, type IdentityClaims } from '../../../policy/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { grantsText, manifestText, policyText } from '../../support/model-text.js';
import { type NativePostgres, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { connectPg } from '../../support/pg-client.js';
import { startTestService, type TestService } from '../../support/service.js';

/**
 * A question is planned for its own values, however often its shape was asked before and for whatever others, and a
 * tenant's filter reaches the other side of each join. The witnesses are Postgres' own counts of scans.
 */

const DOCS = 60_000;
const TENANTS = 40;

const MANIFEST = manifestText(
  'plans',
  {
    'work.docs': 'id int4, owner int4, state text, at int8, note text',
    'work.customers': 'tenant int4, id int4, name text',
    'work.orders': 'tenant int4, id int4, customer_id int4',
    'work.lines': 'tenant int4, id int4, order_id int4, price numeric',
    'work.labels': 'state text, label text',
    'work.owners': 'owner int4, name text',
  },
  `entities:
  doc: { source: db.work.docs, columns: [id, owner, state, at, note], primary_key: [id], entity_key_columns: [id, state, owner] }
  label: { source: db.work.labels, columns: [state, label], primary_key: [state], entity_key_columns: [state] }
  owner: { source: db.work.owners, columns: [owner, name], primary_key: [owner], entity_key_columns: [owner] }
  customer: { source: db.work.customers, columns: [tenant, id, name], primary_key: [tenant, id], entity_key_columns: [tenant, id] }
  order: { source: db.work.orders, columns: [tenant, id, customer_id], primary_key: [tenant, id], entity_key_columns: [tenant, id, customer_id] }
  line: { source: db.work.lines, columns: [tenant, id, order_id, price], primary_key: [tenant, id], entity_key_columns: [tenant, id, order_id] }
`,
);

const POLICY = policyText(
  'plans',
  {
    'user:all': 'everything',
    'user:large': 'member { attributes: { owner: 1 } }',
    'user:small': 'member { attributes: { owner: 2 } }',
    'user:seven': 'tenant { attributes: { tenant: 7 } }',
    'user:both': 'tenant { attributes: { tenant: [7, 9] } }',
  },
  `roles:
  everything:
    grants:
${grantsText(['doc', 'label', 'owner'])}
  member:
    grants:
      - { on: doc, columns: "*", rows: owner = attribute('owner') }
  tenant:
    grants:
      - { on: customer, columns: "*", rows: tenant = attribute('tenant') }
      - { on: order, columns: "*", rows: tenant = attribute('tenant') }
      - { on: line, columns: "*", rows: tenant = attribute('tenant') }
masks: {}
limits: { query: 100000 }
`,
);

/** Twelve documents are open, and twelve belong to owner 2, each spread over the table. */
const SCRIPT = `
create schema work;
create table work.docs (id int4 primary key, owner int4 not null, state text not null, at int8 not null, note text not null);
insert into work.docs
  select i, case when i % 5000 = 7 then 2 else 1 end, case when i % 5000 = 0 then 'open' else 'closed' end, i, 'note ' || i
    from generate_series(1, ${DOCS}) i;
create index docs_owner on work.docs (owner);
create index docs_state on work.docs (state);
create index docs_at on work.docs (at);
create table work.labels (state text primary key, label text not null);
insert into work.labels values ('open', 'to do'), ('closed', 'done');
create table work.owners (owner int4 primary key, name text not null);
insert into work.owners values (1, 'one'), (2, 'two');
create table work.customers (tenant int4, id int4, name text not null, primary key (tenant, id));
insert into work.customers select t, i, 'c' || i from generate_series(1, ${TENANTS}) t, generate_series(1, 50) i;
create table work.orders (tenant int4, id int4, customer_id int4 not null, primary key (tenant, id));
insert into work.orders select t, i, 1 + i % 50 from generate_series(1, ${TENANTS}) t, generate_series(1, 500) i;
create table work.lines (tenant int4, id int4, order_id int4 not null, price numeric not null, primary key (tenant, id));
insert into work.lines select t, i, 1 + i % 500, i % 100 from generate_series(1, ${TENANTS}) t, generate_series(1, 1500) i;
analyze work.docs, work.labels, work.owners, work.customers, work.orders, work.lines;
`;

await ready();
const postgres = await startNativePostgres();
tap.setTimeout(600_000);
tap.teardown(() => postgres?.stop());

/** Scans of a table and its indexes since the counts began, by name. */
type Scans = Readonly<Record<string, number>>;

interface Asked {
  /** Sends `text` so many times in a row, as the driver sends a text with `values`. */
  ask(
    client: pg.Client,
    times: number,
    text: string,
    values?: readonly unknown[],
  ): Promise<readonly unknown[]>;
  connect(user: string, more?: Partial<pg.ClientConfig>): Promise<pg.Client>;
}

/**
 * The scans that `questions` made. Postgres' counts are those of sessions that have ended, so the gateway is begun for
 * them and stopped.
 */
async function scansOf(
  on: NativePostgres,
  shop: TestService,
  questions: (asked: Asked) => Promise<void>,
): Promise<Scans> {
  const before = await counts(on);
  const frontend = createPgFrontend(shop.service, {});
  const { port } = await frontend.listen(0, '127.0.0.1');
  await questions({
    async ask(client, times, text, values) {
      let last: readonly unknown[] = [];
      for (let i = 0; i < times; i++)
        last = (await client.query({ text, ...(values !== undefined && { values: [...values] }) })).rows;
      return last;
    },
    async connect(user, more = {}) {
      const password = await shop.token(user);
      const client = await connectPg({ port, user, password, ...more });
      return client;
    },
  });
  await frontend.stop();
  await endSessions(on);
  const after = await counts(on);
  return Object.fromEntries(Object.entries(after).map(([name, n]) => [name, n - (before[name] ?? 0)]));
}

async function onServer<T>(on: NativePostgres, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: on.url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** A session tells its counts at its end, if not before. The gateway makes others in their place. */
function endSessions(on: NativePostgres): Promise<void> {
  return onServer(on, async (client) => {
    const ours =
      "from pg_stat_activity where application_name = 'osl-gateway' and datname = current_database()";
    const { rows } = await client.query<{ pid: number }>(`select pid, pg_terminate_backend(pid) ${ours}`);
    const pids = rows.map((r) => r.pid);
    const left = async (): Promise<number> =>
      (await client.query('select from pg_stat_activity where pid = any ($1)', [pids])).rows.length;
    while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  });
}

function counts(on: NativePostgres): Promise<Scans> {
  return onServer(on, async (client) => {
    const { rows } = await client.query<{ name: string; scans: string }>(
      `select relname as name, seq_scan as scans from pg_stat_user_tables
         union all select indexrelname, idx_scan from pg_stat_user_indexes`,
    );
    return Object.fromEntries(rows.map((r) => [r.name, Number(r.scans)]));
  });
}

/** The first by time: of a common value it is found at the beginning of `docs_at`, of a rare one by an index of its own. */
const FIRST = (where: string): string => `select min(at) as first from doc ${where}`;
const RARE = FIRST("where state = 'open'");
const COMMON = FIRST("where state = 'closed'");
const RANGE = (from: number, to: number): string =>
  `select l.label, o.name, count(*) from doc d join label l on l.state = d.state join owner o on o.owner = d.owner ` +
  `where d.at >= ${from} and d.at < ${to} group by 1, 2`;

if (postgres === null) test('plans for values', { skip: NO_NATIVE }, async () => undefined);
else await plansForValues(postgres);

async function plansForValues(on: NativePostgres): Promise<void> {
  const shop = await startTestService({
    postgres: on,
    manifest: MANIFEST,
    policy: POLICY,
    script: SCRIPT,
    schema: 'work',
  });
  tap.teardown(() => shop.close());
  const scans = (questions: (asked: Asked) => Promise<void>): Promise<Scans> => scansOf(on, shop, questions);

  test('a rare literal finds its index at the hundredth run of its shape', async (t) => {
    const { docs_at, docs_state } = await scans(async ({ ask, connect }) => {
      const client = await connect('user:all');
      await ask(client, 99, COMMON);
      await ask(client, 1, RARE);
      await client.end();
    });
    t.strictSame({ docs_at, docs_state }, { docs_at: 99, docs_state: 1 });
  });

  test('so does a value of `$1`, whichever came first', async (t) => {
    const text = FIRST('where state = $1');
    const { docs_at, docs_state } = await scans(async ({ ask, connect }) => {
      const client = await connect('user:all');
      await ask(client, 20, text, ['open']);
      await ask(client, 5, text, ['closed']);
      await ask(client, 5, text, ['open']);
      await client.end();
    });
    t.strictSame({ docs_at, docs_state }, { docs_at: 5, docs_state: 25 });
  });

  test('a narrow range beside wide ones, in a join of three', async (t) => {
    const { docs } = await scans(async ({ ask, connect }) => {
      const client = await connect('user:all');
      await ask(client, 12, RANGE(1, DOCS));
      t.same(await ask(client, 3, RANGE(6, 9)), [
        { label: 'done', name: 'one', count: '2' },
        { label: 'done', name: 'two', count: '1' },
      ]);
      await ask(client, 1, RANGE(1, DOCS));
      await client.end();
    });
    t.equal(docs, 13, 'the table is read for the wide ones alone');
  });

  test('the value of an attribute counts as any other: a small tenant beside a large one', async (t) => {
    const text = FIRST('');
    const { docs_at, docs_owner } = await scans(async ({ ask, connect }) => {
      const [large, small] = [await connect('user:large'), await connect('user:small')];
      await ask(large, 12, text);
      await ask(small, 5, text);
      await ask(large, 1, text);
      await Promise.all([large.end(), small.end()]);
    });
    t.strictSame({ docs_at, docs_owner }, { docs_at: 13, docs_owner: 5 });
  });

  test('a client says otherwise by plan_cache_mode, for itself alone', async (t) => {
    const generic = 'set plan_cache_mode = force_generic_plan';
    const { docs_at, docs_state } = await scans(async ({ ask, connect }) => {
      const [client, other] = [await connect('user:all'), await connect('user:all')];
      await client.query(generic);
      t.same(await ask(client, 1, 'show plan_cache_mode'), [{ plan_cache_mode: 'force_generic_plan' }]);
      await ask(client, 6, RARE);
      await ask(other, 6, RARE);
      await client.query('reset plan_cache_mode');
      t.same(await ask(client, 1, 'show plan_cache_mode'), [{ plan_cache_mode: 'auto' }]);
      await ask(client, 2, RARE);
      await client.query('begin');
      await client.query(generic.replace('set', 'set local'));
      await ask(client, 2, RARE);
      await client.query('commit');
      await ask(client, 2, RARE);
      await client.query('begin isolation level repeatable read');
      await ask(client, 2, RARE);
      await client.query(generic.replace('set', 'set local'));
      await ask(client, 2, RARE);
      await client.query('commit');
      await Promise.all([client.end(), other.end()]);
      const told = await connect('user:all', { options: '-c plan_cache_mode=force_generic_plan' });
      await ask(told, 2, RARE);
      await told.end();
    });
    t.strictSame({ docs_at, docs_state }, { docs_at: 6 + 2 + 2 + 2, docs_state: 6 + 2 + 2 + 2 });
    const client = await (await served(t, shop)).connect('user:all');
    await t.rejects(client.query('set plan_cache_mode = always'), { code: '22023' });
    await client.end();
  });

  test("a tenant's join reads each table once, by its tenant", async (t) => {
    const { lines, lines_pkey, orders, orders_pkey } = await scans(async ({ ask, connect }) => {
      const client = await connect('user:seven');
      const found = await ask(client, 8, JOIN);
      t.equal(found.length, 5);
      await client.end();
    });
    t.strictSame(
      { lines, lines_pkey, orders, orders_pkey },
      { lines: 0, lines_pkey: 8, orders: 0, orders_pkey: 8 },
    );
  });

  test('constants reach the other side of the join, whether it is planned for the value or for any', async (t) => {
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      const plan = await planOf(on, shop, 'user:seven', JOIN, mode);
      const value = mode === 'force_custom_plan' ? '7' : '$1';
      for (const table of ['customers', 'orders', 'lines'])
        t.match(
          plan,
          new RegExp(`on ${table} t[^:]*Cond: \\(+tenant = ${value.replace('$', '\\$')}\\)`),
          `${mode}: ${table}`,
        );
      t.notMatch(plan, /tenant = t_?\d*\.tenant/, mode);
    }
    t.match(
      await planOf(on, shop, 'user:both', JOIN, 'force_custom_plan'),
      "tenant = ANY ('{7,9}'::integer[])",
    );
  });
}

const JOIN =
  'select c.name, sum(l.price) from customer c join "order" o on o.tenant = c.tenant and o.customer_id = c.id ' +
  'join line l on l.tenant = o.tenant and l.order_id = o.id group by 1 order by 2 desc, 1 limit 5';

async function served(t: Test, shop: TestService): Promise<Pick<Asked, 'connect'>> {
  const frontend = createPgFrontend(shop.service, {});
  const { port } = await frontend.listen(0, '127.0.0.1');
  t.teardown(() => frontend.stop());
  return {
    async connect(user) {
      const client = await connectPg({ port, user, password: await shop.token(user) });
      return client;
    },
  };
}

/** How Postgres would run the statement that goes upstream, under a `plan_cache_mode`, on one line. */
function planOf(
  on: NativePostgres,
  shop: TestService,
  user: string,
  text: string,
  mode: string,
): Promise<string> {
  const { manifest, snapshot } = shop.service.model();
  const ceiling = snapshot?.subjects.get(user)?.ceiling ?? new Set<string>();
  if (snapshot === null) throw new Error('there is no policy');
  const identity: IdentityClaims = {
    tenant: 'plans',
    subject: user,
    chain: [user],
    roles: [],
    aclRoles: [...ceiling],
    issuedAt: 0,
    expiresAt: 0,
    tokenId: 'test',
  };
  const access = effectiveAccess(identity, snapshot, manifest.catalog);
  const { sql, slots } = emit(compile(text, manifest.catalog, access));
  const values = slots.map((slot) => {
    if (slot.kind === 'literal') return literalText(slot.value);
    if (slot.kind !== 'attribute') throw new Error(`a slot of ${slot.kind}`);
    const own = access.attributeValues(slot.subject, slot.name);
    return slot.type.endsWith('[]') ? `{${own.join()}}` : own.join();
  });
  return onServer(on, async (client) => {
    await client.query(`set plan_cache_mode = ${mode}; prepare p as ${sql}`);
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain (costs off) execute p (${values.map((v) => `'${v}'`).join()})`,
    );
    return rows.map((r) => r['QUERY PLAN']).join(' ');
  });
}
