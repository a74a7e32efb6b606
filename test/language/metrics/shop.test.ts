import t, { test } from 'tap';
import { sql } from '../../../src/base/sql.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { answerOf, comparable } from './answers.js';
import { type Asked, recount } from './recount.js';
import { generateShop, METRICS_MANIFEST, METRICS_POLICY, scriptOf } from './shop.js';

t.setTimeout(600_000);

const SHOP = generateShop(7);
const rest = await startRest({ manifest: METRICS_MANIFEST, policy: METRICS_POLICY, script: scriptOf(SHOP) });

interface Case {
  readonly name: string;
  readonly body: Readonly<Record<string, unknown>> & {
    readonly metrics: readonly string[];
    readonly group_by?: readonly string[];
  };
  readonly recount?: Partial<Asked>;
}

const day = (text: string): number => Date.parse(`${text}T00:00:00Z`);
const RUNNING =
  'revenue_so_far revenue_7_days revenue_1_month revenue_of_month orders_of_week buyers_30_days';

const CASES: readonly Case[] = [
  { name: 'one figure', body: { metrics: ['revenue'] } },
  {
    name: 'figures of three entities, in one row',
    body: { metrics: ['revenue', 'pieces', 'refunded', 'buyers'] },
  },
  {
    name: 'orders beside their items and refunds, by customer',
    body: { metrics: ['revenue', 'orders', 'pieces', 'lines', 'refunds'], group_by: ['customer__region'] },
  },
  {
    name: 'by the key of an entity, where some orders have none',
    body: { metrics: ['revenue', 'pieces'], group_by: ['customer'] },
  },
  {
    name: 'a figure of two links on the way',
    body: { metrics: ['pieces'], group_by: ['product__label', 'customer__region'] },
  },
  {
    name: 'ratios and expressions over several entities',
    body: {
      metrics: ['paid_share', 'piece_price', 'refund_rate', 'net', 'per_order'],
      group_by: ['order__status'],
    },
  },
  ...(['hour', 'day', 'week', 'month', 'quarter', 'year'] as const).map(
    (grain): Case => ({
      name: `orders by ${grain}`,
      body: { metrics: ['orders', 'revenue'], group_by: [`metric_time__${grain}`] },
    }),
  ),
  {
    name: 'each metric by its own time',
    body: { metrics: ['revenue', 'refunded', 'net'], group_by: ['metric_time__month'] },
  },
  {
    name: 'all by the time of the order',
    body: {
      metrics: ['revenue', 'refunded', 'pieces'],
      group_by: ['order__placed_at__month', 'order__region'],
    },
  },
  {
    name: 'conditions on rows, before anything is added up',
    body: {
      metrics: ['revenue', 'pieces', 'refunds'],
      group_by: ['customer__region'],
      where: [
        "{{ Dimension('order__status') }} in ('paid', 'open') and {{ Dimension('order__region') }} <> 'asia'",
      ],
    },
    recount: { where: (r) => r.order !== null && r.order.status !== 'void' && r.order.region !== 'asia' },
  },
  {
    name: 'from a day to a day',
    body: {
      metrics: ['revenue', 'refunded'],
      group_by: ['metric_time__day'],
      time_constraint: { start: '2026-01-05', end: '2026-02-03' },
    },
    recount: { start: day('2026-01-05'), before: day('2026-02-04') },
  },
  {
    name: 'to the last day that a body can name',
    body: {
      metrics: ['revenue'],
      group_by: ['metric_time__day'],
      time_constraint: { start: '2026-02-20', end: '9999-12-31' },
    },
    recount: { start: day('2026-02-20') },
  },
  ...(['day', 'week', 'month', 'quarter'] as const).map(
    (grain): Case => ({
      name: `running totals by ${grain}`,
      body: { metrics: RUNNING.split(' '), group_by: [`metric_time__${grain}`] },
    }),
  ),
  {
    name: 'running figures that are no sums',
    body: {
      metrics: ['average_so_far', 'paid_share_so_far', 'buyers_30_days'],
      group_by: ['metric_time__week', 'order__region'],
    },
  },
  {
    name: 'running totals of two entities, each along its own time',
    body: { metrics: ['net_so_far', 'refunded_so_far', 'orders'], group_by: ['metric_time__month'] },
  },
  {
    name: 'running totals by customer, beside plain ones',
    body: {
      metrics: ['revenue_so_far', 'revenue_of_month', 'revenue'],
      group_by: ['customer__region', 'metric_time__week'],
    },
  },
  {
    name: 'a running total knows what was before its first period',
    body: {
      metrics: ['revenue_so_far', 'revenue_1_month', 'revenue_of_month'],
      group_by: ['metric_time__day'],
      time_constraint: { start: '2026-02-20', end: '2026-03-31' },
    },
    recount: { start: day('2026-02-20'), before: day('2026-04-01') },
  },
  {
    name: 'conversions, in the groups of what they followed',
    body: {
      metrics: ['settling', 'settled_there', 'refunds_after', 'orders'],
      group_by: ['order__region', 'customer__region'],
    },
  },
  {
    name: 'conversions along the time of what they followed, which a condition chooses',
    body: {
      metrics: ['settling', 'refunds_after', 'revenue_so_far'],
      group_by: ['metric_time__month', 'order__region'],
      where: "{{ Dimension('customer__region') }} <> 'us'",
    },
    recount: { where: (r) => r.customer !== null && r.customer.region !== 'us' },
  },
  {
    name: 'conversions of some days, whenever they were',
    body: {
      metrics: ['settling', 'refunds_after'],
      time_constraint: { start: '2026-01-05', end: '2026-02-03' },
    },
    recount: { start: day('2026-01-05'), before: day('2026-02-04') },
  },
  {
    name: 'a running total of some rows only',
    body: {
      metrics: ['revenue_so_far', 'buyers_30_days'],
      group_by: ['metric_time__month'],
      where: "{{ Dimension('customer__region') }} = 'eu'",
    },
    recount: { where: (r) => r.customer?.region === 'eu' },
  },
];

test('the shop', async (t) => {
  t.teardown(() => rest.close());

  await t.test('every answer is what a recount without SQL finds', async (t) => {
    for (const c of CASES) {
      const asked: Asked = { metrics: c.body.metrics, groupBy: c.body.group_by ?? [], ...c.recount };
      const expected = recount(SHOP, asked);
      const answer = await answerOf(rest, 'user:all', c.body);
      t.strictSame(comparable(answer), comparable(expected), c.name);
      t.ok(expected.length > 0, `${c.name} has rows`);
    }
  });

  await t.test('and what SQL finds that was written with care, which careless SQL does not', async (t) => {
    const { system } = rest.test.engine;
    const naive = await system.query(sql`
      select c.region, sum(o.amount) filter (where o.status <> 'void')::float8 as revenue, sum(l.quantity)::float8 as pieces
      from shop.orders o left join shop.customers c on c.id = o.customer_id
      left join shop.line_items l on l.order_id = o.id group by 1`);
    const careful = await system.query(sql`
      with o as (
        select c.region, sum(o.amount) filter (where o.status <> 'void') as revenue
        from shop.orders o left join shop.customers c on c.id = o.customer_id group by 1),
      l as (
        select c.region, sum(l.quantity) as pieces from shop.line_items l
        left join shop.orders o on o.id = l.order_id left join shop.customers c on c.id = o.customer_id group by 1)
      select o.region, o.revenue::float8, l.pieces::float8 from o join l on o.region is not distinct from l.region`);
    const answer = await answerOf(rest, 'user:all', {
      metrics: ['revenue', 'pieces'],
      group_by: ['customer__region'],
    });
    const rows = (of: Record<string, unknown>[]) =>
      of.map((r) => [r['region'], r['revenue'], r['pieces']] as (string | number | null)[]); // text and float8
    t.strictSame(comparable(answer), comparable(rows(careful)));
    for (const [region, revenue] of rows(naive)) {
      const [, right] = answer.find((r) => r[0] === region) ?? [];
      t.ok(
        Number(revenue) > 1.2 * Number(right),
        `the careless join says ${revenue} of ${region}, not ${right}`,
      );
    }
  });

  await t.test('a running total is what a window function finds over a calendar', async (t) => {
    const rows = await rest.test.engine.system.query(sql`
      with days as (
        select generate_series(date_trunc('day', min(placed_at) at time zone 'UTC'),
          date_trunc('day', max(placed_at) at time zone 'UTC'), interval '1 day') as day from shop.orders),
      sums as (
        select date_trunc('day', placed_at at time zone 'UTC') as day,
          sum(amount) filter (where status <> 'void') as amount from shop.orders group by 1)
      select day::date::text as day, (sum(amount) over (order by day))::float8 as so_far,
        (sum(amount) over (order by day range between interval '6 days' preceding and current row))::float8 as week,
        (sum(amount) over (partition by date_trunc('month', day) order by day))::float8 as month
      from days left join sums using (day)`);
    const answer = await answerOf(rest, 'user:all', {
      metrics: ['revenue_so_far', 'revenue_7_days', 'revenue_of_month'],
      group_by: ['metric_time__day'],
    });
    const expected = rows.map(
      (r) => [r['day'], r['so_far'], r['week'], r['month']] as (string | number | null)[],
    );
    t.strictSame(comparable(answer), comparable(expected));
    t.ok(
      answer.some((r) => r[2] === null),
      'some weeks are empty, and are there',
    );
  });

  await t.test('order, limit, names and aliases', async (t) => {
    const reply = await rest.ask('user:all', {
      metrics: [{ name: 'REVENUE', alias: 'Umsatz' }, 'orders'],
      groupBy: ['CUSTOMER__Region', { name: 'metric_time', timeGranularity: 'YEAR' }],
      orderBy: ['-umsatz', { name: 'metric_time', grain: 'year', descending: true }],
      limit: 2,
      grain: 'month',
    });
    const { columns, rows, form } = reply.json() as {
      columns: { name: string }[];
      rows: Record<string, string>[];
      form: string;
    };
    t.equal(form, 'metrics');
    t.strictSame(
      columns.map((c) => c.name),
      ['Customer__region', 'metric_time__year', 'Umsatz', 'orders'],
    );
    t.equal(rows.length, 2);
    t.ok(Number(rows[0]?.['Umsatz']) >= Number(rows[1]?.['Umsatz']));
  });

  await t.test('conditions on metrics choose groups', async (t) => {
    const all = await answerOf(rest, 'user:all', { metrics: ['orders', 'pieces'], group_by: ['customer'] });
    const some = await answerOf(rest, 'user:all', {
      metrics: ['orders'],
      group_by: ['customer'],
      where: [
        "{{ Metric('pieces') }} > 20 and {{ Entity('customer') }} is not null",
        "{{ Metric('orders') }} < 12",
      ],
    });
    const expected = all.filter(([id, n, pieces]) => id !== null && Number(pieces) > 20 && Number(n) < 12);
    t.ok(expected.length > 0 && expected.length < all.length);
    t.strictSame(comparable(some), comparable(expected.map(([id, n]) => [id ?? null, n ?? null])));
  });

  await t.test('what cannot be answered is refused, and says which edge', async (t) => {
    const refused = async (body: Record<string, unknown>, subject = 'user:all') => {
      const { status, code, detail, hint } = (await rest.ask(subject, body)).json();
      return { status, code, text: `${detail} ${hint}` };
    };
    const cases: readonly (readonly [Record<string, unknown>, number, string, RegExp])[] = [
      [
        { metrics: ['revenue'], group_by: ['product__label'] },
        422,
        'E1001',
        /`item_order`.*several `line_item`/,
      ],
      [
        { metrics: ['pieces'], group_by: ['refund__day'] },
        422,
        'E1001',
        /`refunded_order`.*several `refund`/,
      ],
      [{ metrics: ['revenue', 'pieces'], group_by: ['product__label'] }, 422, 'E1001', /`revenue`/],
      [
        { metrics: ['revenue'], where: ["{{ Dimension('line_item__quantity') }} > 1"] },
        422,
        'E1001',
        /`item_order`/,
      ],
      [{ metrics: ['revenue'], group_by: ['island'] }, 422, 'E1001', /no declared relationship.*`island`/],
      [
        { metrics: ['revenue'], group_by: ['carrier__label'] },
        422,
        'E1001',
        /`sent_by` and by `returned_by`.*sent_by__/,
      ],
      [{ metrics: ['pieces'], group_by: ['metric_time'] }, 422, 'E1001', /`line_item` has no time dimension/],
      [
        { metrics: ['refunds'], group_by: ['metric_time__hour'] },
        422,
        'E1001',
        /is a date, which has no hour/,
      ],
      [{ metrics: ['revenue_so_far'] }, 422, 'E1001', /needs one `metric_time`/],
      [
        { metrics: ['revenue_so_far'], group_by: ['metric_time__day', 'metric_time__week'] },
        422,
        'E1001',
        /needs one/,
      ],
      [
        {
          metrics: ['net_so_far'],
          group_by: ['metric_time'],
          where: ["{{ Dimension('metric_time') }} > now()"],
        },
        422,
        'E1001',
        /time_constraint/,
      ],
      [{ metrics: ['profit'] }, 400, 'E0512', /`profit`/],
      [{ metrics: ['refundd'] }, 400, 'E0512', /`refunded`/],
      [{ metrics: ['revenue'], group_by: ['order__regio'] }, 400, 'E0512', /`order__region`/],
      [{ metrics: ['revenue'], group_by: ['region'] }, 400, 'E0512', /`\w+__region`/],
      [{ metrics: [] }, 400, 'E0511', /metric/],
      [{ metrics: ['revenue'], group_by: ['a'], groupBy: ['b'] }, 400, 'E0511', /the same field/],
      [{ metrics: ['revenue'], grain: 'fortnight' }, 400, 'E0511', /one of second/],
      [{ metrics: ['revenue'], limit: -1 }, 400, 'E0511', /`limit`/],
      [{ metrics: ['revenue'], limit: 1.5 }, 400, 'E0511', /`limit`/],
      [{ metrics: ['revenue'], where: [7] }, 400, 'E0511', /`where`/],
      [
        { metrics: ['revenue'], order_by: [{ name: 'revenue', descending: 'yes' }] },
        400,
        'E0511',
        /`descending`/,
      ],
      [{ metrics: ['revenue'], order_by: [{ name: 'revenue', nulls: 'first' }] }, 400, 'E0511', /known are/],
      [{ metrics: [{ name: 'revenue', alias: 'a.b' }] }, 400, 'E0511', /not a name/],
      [{ metrics: ['revenue', 'revenue'] }, 400, 'E0511', /two columns/],
      [{ metrics: ['revenue'], time_constraint: { start: '2026-02-30' } }, 400, 'E0511', /`time_constraint`/],
      [
        { metrics: ['revenue'], time_constraint: { end: '9999-12-31T23:00:00-05:00' } },
        400,
        'E0511',
        /`time_constraint`/,
      ],
      [{ metrics: ['revenue'], time_constraint: ['2026-02-01'] }, 400, 'E0511', /`time_constraint`/],
      [{ metrics: Array.from({ length: 51 }, () => 'revenue') }, 400, 'E0511', /limit of 50/],
      [
        { metrics: ['revenue'], group_by: Array.from({ length: 21 }, () => 'order__id') },
        400,
        'E0511',
        /limit of 20/,
      ],
      [{ metrics: ['revenue'], where: `true or ${' '.repeat(100_000)} false` }, 400, 'E0511', /`where`/],
      [{ metrics: ['revenue'], osql: 'select 1' }, 400, 'E0513', /exactly one/],
    ];
    for (const [body, status, code, text] of cases) {
      const said = await refused(body);
      t.match(said, { status, code }, JSON.stringify(body).slice(0, 100));
      t.match(said.text, text, said.text.slice(0, 200));
    }
    const by = await answerOf(rest, 'user:all', { metrics: ['orders'], group_by: ['sent_by__label'] });
    t.equal(by.length, 3, 'a relationship says which way');
  });

  await t.test('what a caller does not know is not there, and no message names it', async (t) => {
    const said = async (body: Record<string, unknown>): Promise<string> =>
      (await rest.ask('user:blind', body)).text;
    for (const [body, code] of [
      [{ metrics: ['buyers'] }, 'E0512'],
      [{ metrics: ['buyer'] }, 'E0512'],
      [{ metrics: ['revenue_so_far'], group_by: ['metric_time'] }, 'E0512'],
      [{ metrics: ['net'] }, 'E0512'],
      [{ metrics: ['refunded'] }, 'E0512'],
      // Its filter reads a parent, over a key that the caller may not see.
      [{ metrics: ['settled_for'] }, 'E0512'],
      [{ osql: 'select measure(settled_for) from "order"' }, 'E0512'],
      [{ metrics: ['orders'], group_by: ['refund'] }, 'E0512'],
      [{ metrics: ['orders'], group_by: ['order__placed_a'] }, 'E0512'],
      [{ metrics: ['orders'], group_by: ['metric_time'] }, 'E1001'],
      [{ metrics: ['orders'], group_by: ['customer__region'] }, 'E1001'],
      [{ metrics: ['pieces'], group_by: ['product__label'] }, 'E0512'],
      [{ metrics: ['orders'], group_by: ['sent_by__label'] }, 'E0512'],
    ] as const) {
      const text = await said(body);
      t.match(text, code, JSON.stringify(body));
      const told = text.replaceAll(JSON.stringify(body).slice(1, -1), '');
      for (const hidden of ['placed_at', 'customer_id', 'refunded_order', 'carrier_', '`buyers`', 'buyer`'])
        if (!JSON.stringify(body).includes(hidden.replaceAll('`', ''))) t.notMatch(told, hidden);
    }
  });

  await t.test('no other fault of a question tells that a hidden metric is there', async (t) => {
    for (const more of [
      { group_by: ['nonsense'] },
      { group_by: ['metric_time'] },
      { order_by: ['nonsense'] },
      { where: 'nonsense' },
      { where: "{{ Dimension('nonsense') }} = 1" },
      { time_constraint: { start: '2026-01-01' } },
    ]) {
      const said = async (metric: string): Promise<string> => {
        const { code, detail, hint } = (await rest.ask('user:blind', { metrics: [metric], ...more })).json();
        return `${code} ${detail} ${hint}`.replaceAll(metric, '…');
      };
      for (const hidden of ['buyers', 'refunded', 'net', 'revenue_so_far', 'settled_for'])
        t.equal(await said(hidden), await said('xyzzy'), `${hidden} ${JSON.stringify(more)}`);
    }
  });

  await t.test('the plan and the records name the metric and what it is made of', async (t) => {
    const body = { metrics: ['refund_rate'], group_by: ['metric_time__month'] };
    const reply = await rest.ask('user:all', { ...body, explain: true });
    const objects = [
      'osl.entities.order',
      'osl.entities.refund',
      'osl.metrics.refund_rate',
      'osl.metrics.refunded',
      'osl.metrics.revenue',
    ];
    t.match(reply.json(), { form: 'metrics', objects });
    const ran = await rest.ask('user:all', body);
    const [decision, outcome] = await rest.test.records(ran.requestId);
    t.match(decision, { kind: 'decision', decision: 'allow', form: 'metrics', objects });
    t.match(outcome, { kind: 'outcome', outcome: 'ok' });
  });

  await t.test(
    'an equal question is compiled once, however it is spelled; another text never finds its plan',
    async (t) => {
      const { plans } = rest.test.service;
      const body = { metrics: ['lines'], group_by: ['order__region'] };
      await rest.ask('user:all', body);
      const { hits } = plans.stats();
      await rest.ask('user:all', { metrics: [{ name: 'LINES' }], groupBy: [{ name: 'Order__Region' }] });
      t.equal(plans.stats().hits, hits + 1);
      const canonical =
        '{"metrics":[{"name":"lines","alias":null}],"groupBy":[{"name":"order__region","grain":null}],"where":[],"orderBy":[],"limit":null,"timeConstraint":null,"grain":null}';
      t.match((await rest.ask('user:all', { osql: canonical })).json(), { code: 'E0511' });
      t.match((await rest.ask('user:all', { sql: canonical })).json(), { code: 'E0511' });
    },
  );
});
