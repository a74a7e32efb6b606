import { setTimeout as sleep } from 'node:timers/promises';
import { queryError } from 'osl-compiler';
import t, { test } from 'tap';
import type { ShadowWatch } from '../../src/ask/data/parts.js';
import { ShadowPolicy } from '../../src/ask/shadow/shadow-policy.js';
import type { ShadowReport } from '../../src/ask/shadow/shadows.js';
import { shadowSnapshot } from '../../src/ask/shadow/shadows.js';
import { SHOP_POLICY } from '../support/shop.js';
import { startRest } from '../surfaces/rest/fixture.js';

/** A shadow policy within the process: no false alarms, what conditions do to it, its bounds, its faults. */

t.setTimeout(120_000);

const rest = await startRest();
t.teardown(() => rest.close());
const { service, lines } = rest.test;
const { shadow } = service;

const HOUR_MS = 3_600_000;
const START = {
  by: 'user:root',
  started_at: new Date().toISOString(),
  until: new Date(Date.now() + HOUR_MS).toISOString(),
};

async function start(policy: string): Promise<void> {
  await shadow.obey({ do: 'stop' });
  await shadow.obey({ do: 'start', start: { policy, ...START } });
}

async function report(): Promise<ShadowReport> {
  for (;;) {
    const now = await shadow.obey({ do: 'report' });
    if (now === null) throw new Error('no shadow policy was started');
    if (now.waiting === 0) return now;
    await sleep(20);
  }
}

const ask = (subject: string, osql: string) => rest.ask(subject, { osql });

const LONG = Array.from({ length: 150 }, (_, i) => `quantity <> ${i}`).join(' and ');

/** Statements of many forms. */
const STATEMENTS: readonly unknown[] = [
  { osql: 'select * from osl.entities.customer order by id limit 3' },
  { osql: 'select count(*) from osl.entities.order where quantity > 3 group by region having count(*) > 1' },
  { osql: 'select c.name from osl.entities.customer c join osl.entities.order o on o.customer_id = c.id' },
  {
    osql: 'with q as (select id from osl.entities.customer) select (select count(*) from osl.entities.order) from q',
  },
  { osql: 'select email from osl.entities.customer union all select region from osl.entities.order limit 2' },
  { osql: "select chunk_id from retrieve('labels', query => 'tea', top_k => 2)" },
  { osql: 'select pieces from osl.entities.line limit 1' },
  { osql: `select count(*) from osl.entities.order where ${LONG}` },
  { osql: 'select nothing from osl.entities.customer' },
  { osql: 'select 1' },
  { osql: 'not a statement' },
  { sql: 'select region, sum(amount) from shop.orders group by region' },
  { metrics: ['revenue'], group_by: ['order__region'] },
];

test('a policy with the same rules differs in no question, of whatever form', async (t) => {
  await start(SHOP_POLICY.replace('roles:\n', 'roles:\n  unused: { grants: [] }\n'));
  const callers = ['user:ann', 'user:eu', 'user:nil'];
  for (const subject of callers) for (const body of STATEMENTS) await rest.ask(subject, body);
  const found = await report();
  t.strictSame(found.rows, []);
  const questions = callers.length * STATEMENTS.length;
  t.match(found, { questions, same: questions, not_compared: { failed: 0 } });
});

test('a mask of another kind, other rows in the clear, a deny rule, a metric, a long text', async (t) => {
  const draft = SHOP_POLICY.replace('pii: redact', 'pii: hash')
    .replace('unmask: [pii, secret, birth]', 'unmask: [secret, birth]')
    .replace('columns: [email]', 'columns: [email, name]')
    .replaceAll("region = attribute('region')", "region = attribute('region') and id < 100");
  await start(draft);
  await ask('user:ann', 'select email from osl.entities.customer');
  await ask('user:ada', 'select email from osl.entities.customer');
  await ask('user:den', 'select name from osl.entities.customer');
  await ask('user:den', 'select * from osl.entities.customer');
  await rest.ask('user:eu', { metrics: ['revenue'] });
  await ask('user:eu', `select count(*) from osl.entities.order where ${LONG}`);
  const { rows } = await report();
  const of = (subject: string, object: string) =>
    rows.find((row) => row.chain[0] === subject && row.object === `osl.entities.${object}`);
  t.match(of('user:ann', 'customer'), { questions: 1, other_masks: 1, masked: 0, shown: 0 });
  t.match(of('user:ada', 'customer'), { masked: 1, masked_columns: [{ column: 'email', mask: 'hash' }] });
  t.match(of('user:den', 'customer'), { questions: 2, refused: 1, masked: 1, codes: [/^E/] });
  t.match(of('user:den', 'customer')?.masked_columns, [{ column: 'name', mask: 'hidden' }]);
  t.match(of('user:eu', 'order'), { questions: 2, narrower: 2, wider: 0 });
});

test('conditions hold as they would: surface and time, also for a known shape', async (t) => {
  const soon = Math.ceil(Date.now() / 1_000) * 1_000 + 2_000;
  const ends = new Date(soon).toISOString().replace('.000', '');
  const grant = '      - { on: order, columns: "*" }\n';
  await start(
    SHOP_POLICY.replace(
      `unmask: [pii, secret, birth] }\n${grant}`,
      `unmask: [pii, secret, birth], ends: ${ends} }\n      - { on: order, columns: "*", when: { surfaces: [wire] } }\n`,
    ),
  );
  const question = 'select tax_no from osl.entities.customer where id = ';
  for (let id = 1; id <= 3; id++) await ask('user:ada', `${question}${id}`);
  await ask('user:ada', 'select count(*) from osl.entities.order where id = 5');
  t.match(await report(), { questions: 4, same: 4 }, 'analysts have these rights too');
  await sleep(Math.max(0, soon + 50 - Date.now()));
  for (let id = 1; id <= 3; id++) await ask('user:ada', `${question}${id}`);
  const { rows } = await report();
  t.match(rows, [{ questions: 3, masked: 3, masked_columns: [{ column: 'tax_no', mask: 'hash' }] }]);
});

test('more new statements at once than may wait are counted, and none is lost', async (t) => {
  const policy = new ShadowPolicy(
    () => service,
    await shadowSnapshot(SHOP_POLICY, service.model()),
    manifest(),
  );
  t.teardown(() => policy.close());
  const { caller } = await seenQuestion();
  const refusal = queryError('denied', { object: 'x' });
  for (let n = 0; n < 1_300; n++)
    policy.onDecision(
      caller,
      { body: { kind: 'osql', text: `select ${'x'.repeat(n % 50)} ${n}` }, parameterOids: [] },
      refusal,
    );
  t.match(policy.figures(), { questions: 1_300, waiting: 1_000, not_compared: { queue_full: 300 } });
  const text = `select '${'x'.repeat(5_000_000)}'`;
  policy.onDecision(caller, { body: { kind: 'osql', text }, parameterOids: [] }, refusal);
  t.equal(policy.figures().not_compared.queue_full, 301, 'a very long text neither');
});

test('a pause follows each comparison, also if the next question comes after it', async (t) => {
  const snapshot = await shadowSnapshot(SHOP_POLICY, service.model());
  const policy = new ShadowPolicy(() => service, snapshot, manifest());
  t.teardown(() => policy.close());
  const { caller } = await seenQuestion();
  const refusal = queryError('denied', { object: 'x' });
  const compared = async (text: string): Promise<number> => {
    const began = performance.now();
    policy.onDecision(caller, { body: { kind: 'osql', text }, parameterOids: [] }, refusal);
    while (policy.figures().waiting > 0) await sleep(1);
    return performance.now() - began;
  };
  const long = await compared(`select count(*) from osl.entities.order where ${LONG}`);
  const short = await compared('select count(*) from osl.entities.order');
  t.ok(short > 3 * long, `${short.toFixed()} ms, after ${long.toFixed()} ms`);
});

test('a comparison that fails, or an error of the policy itself, disturbs nobody', async (t) => {
  await shadow.obey({ do: 'stop' });
  const broken = {
    ...service,
    get content(): never {
      throw new Error('broken on purpose');
    },
  };
  const snapshot = await shadowSnapshot(SHOP_POLICY, service.model());
  const policy = new ShadowPolicy(() => broken, snapshot, manifest());
  shadow.running = policy;
  t.teardown(async () => {
    shadow.running = null;
    await policy.close();
  });
  const before = lines.length;
  for (let id = 1; id <= 5; id++)
    t.equal((await ask('user:ann', `select name from osl.entities.customer where id = ${id}`)).status, 200);
  t.equal((await ask('user:nil', 'select name from osl.entities.customer')).status, 403);
  while (policy.figures().waiting > 0) await sleep(20);
  t.match(policy.figures(), { questions: 6, different: 0, not_compared: { failed: 6 } });
  const said = lines.slice(before).filter(({ level }) => level === 'error');
  t.equal(said.length, 2, 'once for each statement that could not be compared');
  t.match(said[0], { message: 'a question was not compared with the shadow policy' });
  t.match(JSON.stringify(said), /broken on purpose/);
});

function manifest() {
  return service.model().manifest;
}

/** The caller and outcome of a real question. */
async function seenQuestion() {
  const seen: { readonly caller: Parameters<ShadowWatch['onDecision']>[0] }[] = [];
  const before = shadow.running;
  const watch: ShadowWatch = {
    onDecision: (caller) => void seen.push({ caller }),
    onFastPath: () => undefined,
  };
  Object.assign(shadow, { running: watch });
  await ask('user:us', 'select name from osl.entities.customer where id = 4');
  shadow.running = before;
  const [first] = seen;
  if (first === undefined) throw new Error('the question was not seen');
  return first;
}
