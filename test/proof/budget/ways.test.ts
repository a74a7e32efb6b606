import t, { type Test } from 'tap';
import { createDrafting } from '../../../src/model/drafting/drafting.js';
import { partOf } from '../../support/part.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { password, query, sync, terminate } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { CALLS } from './calls.js';
import { computedChain, DOUBLING_DRAFTS, DRAFTS } from './drafts.js';
import { Gateway } from './gateway.js';
import { NAMES, type NameFamily } from './names.js';
import { type Family, largest } from './texts.js';

/**
 * What comes by other ways than a question does, held to the same 50 ms as in `held.test.ts`: drafts of admins, messages
 * to `/mcp`, names and values of the wire's protocol.
 */

const MOST_MS = 50;
const EACH = Number(process.env['OSL_BUDGET_WAYS'] ?? 1);
/** Drafts are compiled in a thread beside; what the largest of them cost there, the night pays. */
const DRAFT_SIZES = EACH > 1 ? [4_000, 16_000, 70_000, 260_000, 1_000_000] : [70_000];
const CALL_SIZES = EACH > 1 ? [2_000, 16_000, 70_000, 260_000, 1_000_000] : [1_000_000];
/** Runs between two of one draft, message or name, but at night. */
const TURNS = 3;
/** Bytes of the longest message of the wire that is sent; startup packets have 10,000. */
const LONGEST = 1_000_000;
/** Published at once. */
const ENTITIES = 1_000;

t.setTimeout(900_000);
const gateway = await Gateway.start();
t.teardown(() => gateway.end());

const validate = (text: string) => gateway.post('/osl/validate', JSON.stringify({ fragment: text }));
const mcp = (body: string) =>
  gateway.post('/mcp', body, 'token', { accept: 'application/json, text/event-stream' });

// Code that runs for the first time is slow whatever it is asked.
for (let i = 0; i < 10; i++) {
  await validate(JSON.stringify({ lexicon: { [`w${i}`]: { refers_to: 'customer' } } }));
  await mcp(CALLS[0]?.at(10 + i) ?? '');
}

t.test('no draft holds it', { timeout: 600_000 }, async (t) => {
  for (const family of partOf('drafts', DRAFTS, TURNS)) await held(t, family, DRAFT_SIZES, validate);
});

/** Parts of drafts that refer to each other twice: judged or, from some number on, refused. */
const PARTS = EACH > 1 ? [1, 4, 8, 16, 32, 64, 100] : [8, 64];

t.test(
  'nor one whose parts refer to each other twice, nor what asks for it',
  { timeout: 600_000 },
  async (t) => {
    for (const family of partOf('doubling drafts', DOUBLING_DRAFTS, TURNS)) {
      for (const n of PARTS) {
        let reply = { status: 0, body: '' };
        const ms = await gateway.heldBy(async () => {
          reply = await validate(family.at(n));
        }, MOST_MS);
        t.ok(ms <= MOST_MS, `${family.name}: ${n}: held for ${ms.toFixed(0)} ms`);
        t.equal(reply.status, 200, `${family.name}: ${n} are judged: ${reply.body.slice(0, 200)}`);
      }
    }
    const { version } = await gateway.published();
    const draft = JSON.stringify(computedChain(10, (c) => `${c} + ${c}`));
    const published = await gateway.post('/osl/objects', JSON.stringify({ fragment: draft }), 'root', {
      'if-match': `"${version}"`,
    });
    t.equal(published.status, 201, published.body.slice(0, 300));
    for (const columns of [1, 2, 16]) {
      const osql = `select ${Array.from({ length: columns }, (_, i) => `m10 + ${i} as a${i}`).join(', ')} from customer`;
      let status = 0;
      const ask = async (): Promise<void> => {
        ({ status } = await gateway.post('/osl/query', JSON.stringify({ osql }), 'token'));
      };
      const ms = await gateway.heldBy(ask, MOST_MS);
      t.ok(ms <= MOST_MS, `${columns} of the last: held for ${ms.toFixed(0)} ms`);
      t.equal(status, columns < 16 ? 200 : 400, `${columns} of the last`);
    }
  },
);

t.test('no message to /mcp holds it', { timeout: 600_000 }, async (t) => {
  for (const family of partOf('messages to /mcp', CALLS, TURNS)) await held(t, family, CALL_SIZES, mcp);
});

async function held(
  t: Test,
  family: Family,
  sizes: readonly number[],
  send: (text: string) => Promise<{ readonly status: number }>,
): Promise<void> {
  for (const size of sizes) {
    const { text, n } = largest(family, size);
    const statuses = new Set<number>();
    const ms = await gateway.heldBy(async () => statuses.add((await send(text)).status), MOST_MS);
    const what = `${family.name}: ${n}, ${text.length} units, answered ${[...statuses]}`;
    t.ok(ms <= MOST_MS, `${what}: held for ${ms.toFixed(0)} ms`);
    t.notOk(statuses.has(500), what);
  }
}

t.test('no name of the protocol holds it', { timeout: 600_000 }, async (t) => {
  for (const family of partOf('names of the protocol', NAMES, TURNS)) {
    const messages = family.at(family.most ?? LONGEST);
    const ms = await gateway.heldBy(() => spoken(family, messages), MOST_MS);
    t.ok(ms <= MOST_MS, `${family.name}: held for ${ms.toFixed(0)} ms`);
  }
});

/** Logs in, says it, and leaves; whatever is answered. */
async function spoken({ startup }: NameFamily, messages: readonly Buffer[]): Promise<void> {
  const { token } = await gateway.tokens();
  if (startup !== true) {
    const client = await Client.login(gateway.wirePort, 'user:ann', token);
    await client.send(...messages, sync, terminate).rest();
    return;
  }
  const client = await Client.open(gateway.wirePort);
  const asked = await client.send(...messages).until('R 3');
  if (asked.at(-1) === 'closed') return;
  await client.send(password(token), terminate).rest();
}

t.test('nor do rows that a cursor keeps', { timeout: 300_000 }, async (t) => {
  const { token } = await gateway.tokens();
  const client = await Client.login(gateway.wirePort, 'user:ann', token);
  const many = 'select a.id from shop.orders a, shop.orders b, shop.orders c, shop.customers d';
  await client.ask(query('begin'));
  await client.ask(query(`declare c scroll cursor for ${many}`));
  const back = async (): Promise<void> => {
    await client.ask(query('move all from c'));
    t.equal((await client.ask(query('fetch backward all from c'))).at(-2), 'C FETCH 256000');
  };
  // Many times as many may be kept: given in slices they hold it no longer than these do.
  const ms = await gateway.heldBy(back, MOST_MS / 2);
  t.ok(ms <= MOST_MS / 2, `held for ${ms.toFixed(0)} ms`);
});

t.test('nor does what is published', { timeout: 300_000 }, async (t) => {
  const entity = { source: 'db.shop.samples', primary_key: ['id'], columns: ['id', 'words'] };
  const asked = async (body: object, wanted: number): Promise<void> => {
    const { version } = await gateway.published();
    const ifMatch = { 'if-match': `"${version}"` };
    const reply = await gateway.post('/osl/objects', JSON.stringify(body), 'root', ifMatch);
    t.equal(reply.status, wanted, reply.body.slice(0, 300));
  };
  const names = Array.from({ length: ENTITIES }, (_, i) => `e${i}`);
  let tries = 0;
  let back = 1;
  const entities = () => {
    const description = `try ${tries++}`;
    return Object.fromEntries(names.map((name) => [name, { ...entity, description }]));
  };
  const bad = { ...entity, primary_key: ['no'] };
  const reasons = () => Object.fromEntries(names.map((n) => [`entities.${n}`, `try ${tries++}`]));
  const changes: readonly (readonly [string, number, () => object])[] = [
    ['published', 201, () => ({ fragment: JSON.stringify({ entities: entities() }) })],
    ['deprecated', 201, () => ({ deprecate: reasons() })],
    ['rolled back', 201, () => ({ rollback: (back = 1 - back) })],
    ['refused', 422, () => ({ fragment: JSON.stringify({ entities: { ...entities(), bad } }) })],
  ];
  for (const [what, status, body] of changes) {
    const ms = await gateway.heldBy(() => asked(body(), status), MOST_MS);
    t.ok(ms <= MOST_MS, `${what}: held for ${ms.toFixed(0)} ms`);
  }
});

t.test('a draft that takes too long is refused, and the next is judged', async (t) => {
  const rest = await startRest({
    serve: (service) => {
      const drafting = createDrafting({ log: service.log, deadlineMs: 500 });
      t.teardown(() => drafting.close());
      return { ...service, drafting };
    },
  });
  t.teardown(() => rest.close());
  const token = await rest.test.token('user:root', { roles: ['TENANT_ADMIN'] });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const ask = (fragment: string) =>
    rest.send('/osl/validate', { method: 'POST', headers, body: { fragment } });
  const metrics = DRAFTS.find(({ name }) => name === 'metrics');
  if (metrics === undefined) throw new Error('no draft of metrics');
  t.match((await ask(metrics.at(6_000))).json(), {
    code: 'E0511',
    sqlstate: '54001',
    detail: 'the draft cannot be checked: it takes more than 500 ms',
  });
  t.match(rest.test.lines, [{ message: 'a draft was not judged', fields: { task: 'judge' } }]);
  t.match((await ask('lexicon: { client: { refers_to: customer } }')).json(), { ok: true });
});
