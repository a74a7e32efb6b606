import t, { test } from 'tap';
import { startRest } from '../../surfaces/rest/fixture.js';
import { answerOf, comparable } from './answers.js';
import { recount } from './recount.js';
import { dice, generateShop, METRICS_MANIFEST, METRICS_POLICY, type Shop, scriptOf } from './shop.js';

t.setTimeout(600_000);

/**
 * The shop as `user:eu` sees it, cut and masked beforehand: customers and orders of its region, orders that are open
 * without their amount, no large line items, no addresses.
 */
function visibleShop(shop: Shop): Shop {
  return {
    ...shop,
    customers: shop.customers.filter((c) => c.region === 'eu').map((c) => ({ ...c, email: '[redacted]' })),
    orders: shop.orders
      .filter((o) => o.region === 'eu' || o.status === 'open')
      .map((o) => (o.region === 'eu' ? o : { ...o, amount: null })),
    lineItems: shop.lineItems.filter((l) => l.quantity < 8),
  };
}

const METRICS =
  'orders revenue average buyers pieces lines refunded refunds paid_share piece_price refund_rate net per_order settling settled_there refunds_after settled_and_refunded'.split(
    ' ',
  );
const TIMED = new Set(
  'orders revenue average buyers refunded refunds paid_share refund_rate net per_order settling settled_there refunds_after settled_and_refunded'.split(
    ' ',
  ),
);
const RUNNING =
  'revenue_so_far net_so_far revenue_7_days revenue_1_month revenue_of_month orders_of_week buyers_30_days average_so_far paid_share_so_far'.split(
    ' ',
  );
const KEYS = [
  'order__region',
  'order__status',
  'customer__region',
  'customer__email',
  'customer',
  'order__placed_at__month',
];
const WHERE = [
  "{{ Dimension('order__status') }} <> 'void'",
  "{{ Dimension('customer__region') }} = 'eu' or {{ Dimension('order__region') }} = 'us'",
  "{{ Dimension('customer__email') }} like '%@%'",
  "{{ Dimension('order__amount') }} > 300",
  "{{ Metric('orders') }} > 2",
  "10 / ({{ Dimension('order__carrier_out') }} - 4) < 0",
];

/** A random question; running totals are asked along their time. */
function questionOf(roll: () => number) {
  const some = (list: readonly string[], most: number): readonly string[] =>
    list.filter(() => roll() < most / list.length).slice(0, most);
  const running = roll() < 0.4;
  const grain = ['day', 'week', 'month', 'quarter'][Math.floor(roll() * 4)] ?? 'day';
  const timed = running || roll() < 0.4;
  const metrics = [
    ...(running ? some(RUNNING, 2) : []),
    ...some(timed ? METRICS.filter((m) => TIMED.has(m)) : METRICS, 3),
  ];
  return {
    metrics: metrics.length === 0 ? ['orders'] : metrics,
    group_by: [...(timed ? [`metric_time__${grain}`] : []), ...some(KEYS, 2)],
    where: some(WHERE, 1.5),
    ...(roll() < 0.25 ? { time_constraint: { start: '2026-01-10', end: '2026-03-05' } } : {}),
  };
}

test('policy on every step: the answer is that over a copy which was cut and masked beforehand', async (t) => {
  const shop = generateShop(11);
  const options = { manifest: METRICS_MANIFEST, policy: METRICS_POLICY };
  const governed = await startRest({ ...options, script: scriptOf(shop) });
  const copy = await startRest({ ...options, script: scriptOf(visibleShop(shop)) });
  t.teardown(() => Promise.all([governed.close(), copy.close()]));

  const roll = dice(Number(process.env['OSL_SEED'] ?? 1));
  let rows = 0;
  let refused = 0;
  for (let i = 0; i < Number(process.env['OSL_METRICS_QUESTIONS'] ?? 120); i++) {
    const body = questionOf(roll);
    const wanted = await copy.ask('user:all', body);
    if (wanted.status !== 200) {
      const got = await governed.ask('user:eu', body);
      t.match(got.json(), { code: wanted.json()['code'] }, `refused alike: ${JSON.stringify(body)}`);
      refused++;
      continue;
    }
    const expected = await answerOf(copy, 'user:all', body);
    const answer = await answerOf(governed, 'user:eu', body);
    rows += expected.length;
    t.strictSame(comparable(answer), comparable(expected), JSON.stringify(body));
  }
  t.ok(rows > 1_000, `${rows} rows were compared, ${refused} questions refused`);

  const body = {
    metrics: ['revenue', 'pieces', 'net_so_far'],
    group_by: ['metric_time__month', 'customer__region'],
  };
  t.match((await governed.ask('user:eu', body)).json(), { status: 422 }, 'pieces have no time');
  const counted = { metrics: ['revenue', 'net_so_far'], groupBy: ['metric_time__month', 'customer__region'] };
  const answer = await answerOf(governed, 'user:eu', { metrics: counted.metrics, group_by: counted.groupBy });
  t.strictSame(
    comparable(answer),
    comparable(recount(visibleShop(shop), counted)),
    'and that of the recount',
  );

  const said = (
    await governed.ask('user:eu', { metrics: ['revenue'], group_by: ['customer__email'] })
  ).json();
  t.match(said, { redacted_columns: ['Customer.email', 'order.amount'], partial_columns: ['revenue'] });
});
