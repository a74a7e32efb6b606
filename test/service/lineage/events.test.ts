import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { readFrames } from '../../../audit/index.js';
import { startFrontends } from '../../support/frontends.js';
import { connectPg } from '../../support/pg-client.js';
import { startTestService } from '../../support/service.js';
import { SHOP_MANIFEST } from '../../support/shop.js';
import { SECRET } from './endpoint.js';
import { memberIn, openLineageProblems } from './openlineage-schema.js';
import { type Received, runsIn, startReceiver, verifiedWith } from './receiver.js';

t.setTimeout(600_000);

const OLD = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
process.env['OSL_TEST_LINEAGE_OLD'] = OLD;

const receiver = await startReceiver();
const dir = mkdtempSync(join(tmpdir(), 'osl-lineage-'));
const lineageFile = join(dir, 'lineage.yaml');
writeFileSync(
  lineageFile,
  `version: 1
window_seconds: 1
endpoints:
  catalog:
    url: ${receiver.url}
    secrets: ["env:OSL_TEST_LINEAGE_SECRET", "env:OSL_TEST_LINEAGE_OLD"]
    allow_addresses: [127.0.0.1/32]
`,
);
// The names of physical tables below are those of an embedded connector.
const test = await startTestService({ embedded: true, settings: { lineageFile } });
const fronts = await startFrontends(test.open);
t.teardown(async () => {
  await fronts.stop();
  await test.close();
  await receiver.close();
  rmSync(dir, { recursive: true, force: true });
});

async function query(subject: string, osql: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${fronts.httpPort}/osl/query`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await test.token(subject)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ osql }),
  });
  const body: unknown = await response.json();
  return `${response.status} ${String(memberIn(body, 'request_id'))}`;
}

/** Events whose body says `text`, once there are `count`. */
async function eventsWith(text: string, count: number): Promise<readonly Received[]> {
  for (;;) {
    const found = receiver.received.filter((r) => r.body.includes(text));
    if (found.length >= count) return found;
    await sleep(100);
  }
}

t.test('every object of the manifest is announced, with where its columns come from', async (t) => {
  const events = (await eventsWith('DatasetEvent', 7)).map((r): unknown => JSON.parse(r.body));
  const names = events.map((e) => memberIn(e, 'dataset', 'name'));
  t.strictSame(
    [...names].sort(),
    [
      'osl.entities.customer',
      'osl.entities.line',
      'osl.entities.order',
      'osl.entities.product',
      'osl.entities.sample',
      'osl.facets.labels',
      'osl.metrics.revenue',
    ].sort(),
  );
  for (const event of events) t.strictSame(openLineageProblems(event), []);
  const customer = events.find((e) => memberIn(e, 'dataset', 'name') === 'osl.entities.customer');
  const facets = memberIn(customer, 'dataset', 'facets');
  t.strictSame(memberIn(facets, 'columnLineage', 'fields', 'email', 'inputFields', '0'), {
    namespace: 'osl-gateway://shop/db',
    name: 'shop.customers',
    field: 'email',
    transformations: [{ type: 'DIRECT', subtype: 'IDENTITY', masking: false }],
  });
  t.strictSame(memberIn(facets, 'tags', 'tags', '0'), {
    key: 'sensitivity',
    value: 'pii',
    source: 'OSL',
    field: 'email',
  });
  const revenue = events.find((e) => memberIn(e, 'dataset', 'name') === 'osl.metrics.revenue');
  t.strictSame(
    memberIn(revenue, 'dataset', 'facets', 'columnLineage', 'fields', 'revenue', 'inputFields', '0'),
    {
      namespace: 'osl-gateway://shop',
      name: 'osl.entities.order',
      field: 'amount',
      transformations: [{ type: 'DIRECT', subtype: 'AGGREGATION', masking: false }],
    },
  );
});

t.test('runs of one statement within a window are one event', async (t) => {
  const texts = ['evelyn', 'mallory', 'trent'].map(
    (name) =>
      `select c.name, c.email as "its ${name}" from osl.entities.customer c where c.name <> '${name}'`,
  );
  const first = await query('user:ann', texts[0] ?? '');
  for (const text of [...texts, ...texts]) await query('user:ann', text.replace(/its \w+/, 'its evelyn'));
  const [event] = await eventsWith('RunEvent', 1);
  const body: unknown = JSON.parse(event?.body ?? '');
  t.strictSame(openLineageProblems(body), []);
  const runs = receiver.received
    .filter((r) => r.body.includes('RunEvent'))
    .map((r): unknown => JSON.parse(r.body));
  const jobs = new Set(runs.map((r) => memberIn(r, 'job', 'name')));
  t.equal(jobs.size, 1, 'questions that differ in literals only are one job');
  const fields = memberIn(body, 'outputs', '0', 'facets', 'columnLineage', 'fields');
  t.strictSame(
    Object.keys(fields as object),
    ['name', 'c2'],
    "an alias is the caller's word, and is not told",
  );
  t.match(memberIn(fields, 'c2', 'inputFields', '0'), {
    name: 'osl.entities.customer',
    field: 'email',
    transformations: [{ type: 'DIRECT', subtype: 'TRANSFORMATION', masking: true }],
  });
  t.strictSame(memberIn(body, 'run', 'facets', 'osl_governance', 'maskedColumns'), ['customer.email']);
  t.equal(
    memberIn(body, 'run', 'facets', 'osl_governance', 'policyVersion'),
    test.service.model().snapshot?.version,
  );
  t.match(first, /^200 /);
  await t.test('its leaves are those of the records of how runs ended', async (t) => {
    const leaf = memberIn(body, 'run', 'facets', 'osl_audit', 'first');
    const requestId = first.slice(4);
    for await (const { seq, segment, frame } of readFrames(test.auditDir)) {
      if (seq !== memberIn(leaf, 'seq')) continue;
      const record: unknown = JSON.parse(frame.record.toString());
      t.equal(memberIn(record, 'request_id'), requestId);
      t.equal(memberIn(record, 'kind'), 'outcome');
      t.equal(segment, memberIn(leaf, 'segment'));
      const input = Buffer.concat([Buffer.of(0), frame.record]);
      t.equal(createHash('sha256').update(input).digest('hex'), memberIn(leaf, 'leafHash'));
    }
  });
});

t.test('all runs are counted, those of others and of other rights apart', async (t) => {
  for (let i = 0; i < 12; i++)
    await query('user:ada', `select name, email from osl.entities.customer where id = ${i}`);
  for (let i = 0; i < 5; i++)
    await query('user:eu', `select name, email from osl.entities.customer where id = ${i}`);
  const counted = async (masked: string): Promise<number> => {
    const runs = receiver.received
      .filter(
        (r) => r.body.includes('RunEvent') && r.body.includes('"field":"id"') && r.body.includes(masked),
      )
      .map((r) => runsIn(r.body));
    return runs.reduce((a, b) => a + b, 0);
  };
  while ((await counted('"maskedColumns":[]')) < 12 || (await counted('"policy"')) < 5) await sleep(100);
  t.equal(await counted('"maskedColumns":[]'), 12);
  t.equal(await counted('"description":"policy"'), 5, 'who sees a region only runs another statement');
});

t.test('samples and the wire are told of as questions over REST are', async (t) => {
  const headers = {
    authorization: `Bearer ${await test.token('user:ann')}`,
    'content-type': 'application/json',
  };
  const body = JSON.stringify({ kind: 'table', name: 'product', limit: 1 });
  await fetch(`http://127.0.0.1:${fronts.httpPort}/osl/sample`, { method: 'POST', headers, body });
  const client = await connectPg({
    port: fronts.pgPort,
    user: 'user:ann',
    password: await test.token('user:ann'),
  });
  await client.query('select pieces from osl.entities.line l join osl.entities.order o on l.order_id = o.id');
  await client.end();
  const sampled: unknown = JSON.parse(
    (await eventsWith('osl.entities.product"}],"outputs', 1))[0]?.body ?? '',
  );
  t.strictSame(memberIn(sampled, 'run', 'facets', 'osl_reads', 'surfaces'), { rest: 1 });
  t.match(
    memberIn(sampled, 'outputs', '0', 'facets', 'columnLineage', 'fields', 'label', 'inputFields', '0'),
    { field: 'label' },
  );
  const joined: unknown = JSON.parse(
    (await eventsWith('"field":"pieces","transformations"', 2))[1]?.body ?? '',
  );
  t.strictSame(memberIn(joined, 'run', 'facets', 'osl_reads', 'surfaces'), { wire: 1 });
  t.strictSame(
    [memberIn(joined, 'inputs', '0', 'name'), memberIn(joined, 'inputs', '1', 'name')],
    ['osl.entities.line', 'osl.entities.order'],
  );
});

t.test('what reads nothing is no run: refusals, explanations, questions about the graph', async (t) => {
  const before = receiver.received.length;
  await query('user:ann', 'select secret from osl.entities.nothing');
  await query('user:nil', 'select name from osl.entities.customer');
  await fetch(`http://127.0.0.1:${fronts.httpPort}/osl/schema?governed=true`, {
    headers: { authorization: `Bearer ${await test.token('user:ann')}` },
  });
  await sleep(2_500);
  t.equal(receiver.received.length, before);
});

t.test('no event holds a literal, an alias, a row or a name that is not declared', (t) => {
  for (const { body } of receiver.received) {
    for (const word of ['evelyn', 'mallory', 'trent', 'ada@eu.example', 'Ada', 'nothing', 'user:ann'])
      t.notOk(body.includes(word), word);
  }
  t.end();
});

t.test('every request verifies under the new secret and under the old one', (t) => {
  for (const request of receiver.received) {
    t.equal(verifiedWith(request, [SECRET]), SECRET);
    t.equal(verifiedWith(request, [OLD]), OLD);
    t.equal(
      verifiedWith({ ...request, body: `${request.body} ` }, [SECRET, OLD]),
      null,
      'no other body does',
    );
  }
  const ids = receiver.received.map((r) => r.headers['webhook-id']);
  t.equal(new Set(ids).size, ids.length, 'each event has an id of its own');
  t.end();
});

t.test('another manifest announces what changed, and what is gone', async (t) => {
  const before = receiver.received.length;
  const changed = SHOP_MANIFEST.replace(
    / {2}revenue: .*\n/,
    '  turnover: { entity: order, expression: sum(amount) }\n',
  );
  writeFileSync(join(test.policyFile, '..', 'manifest.yaml'), changed);
  await test.open.reload();
  await receiver.until(before + 2);
  await sleep(300);
  const events = receiver.received.slice(before).map((r): unknown => JSON.parse(r.body));
  t.strictSame(events.map((e) => memberIn(e, 'dataset', 'name')).sort(), [
    'osl.metrics.revenue',
    'osl.metrics.turnover',
  ]);
  const gone = events.find((e) => memberIn(e, 'dataset', 'name') === 'osl.metrics.revenue');
  t.equal(memberIn(gone, 'dataset', 'facets', 'lifecycleStateChange', 'lifecycleStateChange'), 'DROP');
  for (const event of events) t.strictSame(openLineageProblems(event), []);
});

t.test('what is published by API is announced as a changed file is', async (t) => {
  const before = receiver.received.length;
  const token = await test.token('user:root', { roles: ['TENANT_ADMIN'] });
  const response = await fetch(`http://127.0.0.1:${fronts.httpPort}/osl/objects`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      fragment: { metrics: { orders: { entity: 'order', expression: 'count(*)' } } },
      base_version: test.service.model().manifest.version,
    }),
  });
  t.equal(response.status, 201);
  await receiver.until(before + 1);
  await sleep(300);
  const events = receiver.received.slice(before).map((r): unknown => JSON.parse(r.body));
  t.strictSame(
    events.map((e) => memberIn(e, 'dataset', 'name')),
    ['osl.metrics.orders'],
  );
});

t.test('/metrics tells of the outbox', async (t) => {
  const delivered = new RegExp(
    `^osl_lineage_delivered\\{endpoint="catalog"\\} ${receiver.received.length}$`,
    'm',
  );
  let text = '';
  while (!delivered.test(text)) {
    await sleep(100);
    text = await (await fetch(`http://127.0.0.1:${fronts.httpPort}/metrics`)).text();
  }
  t.match(text, /^osl_lineage_pending\{endpoint="catalog"\} 0$/m);
});
