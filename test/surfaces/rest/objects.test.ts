import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import t, { test } from 'tap';
import { type AuditEntry, type AuditLog, AuditUnavailable } from '../../../audit/index.js';
import { sql } from '../../../src/base/sql.js';
import { Drafts, VersionStore } from '../../../src/model/versions/versions.js';
import { processorMs } from '../../support/processor.js';
import { sealedParts, sealing } from '../../support/sealed-parts.js';
import type { TokenClaims } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { type Reply, startRest } from './fixture.js';

t.setTimeout(600_000);

const ADMIN: TokenClaims = { roles: ['TENANT_ADMIN'] };
/** Salt and keys of a password that nobody knows. */
const SCRAM = `SCRAM-SHA-256$4096:${Buffer.alloc(16, 7).toString('base64')}$${Buffer.alloc(32, 8).toString('base64')}:${Buffer.alloc(32, 9).toString('base64')}`;
const POLICY = `${SHOP_POLICY}
service_accounts:
  tableau: { subject: user:ann, scram: "${SCRAM}" }
`;

const NOTES = {
  connectors: {
    db: {
      tables: { 'shop.notes': { columns: { id: { type: 'int4' }, body: { type: 'text' } } } },
    },
  },
  entities: { note: { source: 'db.shop.notes', primary_key: ['id'], columns: ['id', 'body'] } },
};
/** Lines of the shop's manifest. */
const PRODUCT = '    source: db.shop.products\n    primary_key: [id]\n    columns: [id, label]\n';
const REVENUE =
  '  revenue: { entity: order, expression: sum(amount), format: { kind: currency, currency: EUR } }\n';
const SPENT = '  spent: { entity: order, expression: max(amount) }\n';
const ORDERS = { metrics: { orders: { entity: 'order', expression: 'count(*)' } } };

/** One service, with what its admin does. */
async function publisher(options: Parameters<typeof startRest>[0] = {}) {
  const rest = await startRest({ policy: POLICY, ...options });
  const send = async (
    method: 'GET' | 'POST',
    path: string,
    body?: unknown,
    more: { claims?: TokenClaims; subject?: string; headers?: Record<string, string> } = {},
  ): Promise<Reply> => {
    const token = await rest.test.token(more.subject ?? 'user:root', more.claims ?? ADMIN);
    const json = body === undefined ? {} : { 'content-type': 'application/json' };
    return rest.send(path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...json, ...more.headers },
      body,
    });
  };
  const version = (): string => rest.test.service.model().manifest.version;
  /** Publishes for the version of now. */
  const post = (body: Record<string, unknown>): Promise<Reply> =>
    send('POST', '/osl/objects', { base_version: version(), ...body });
  return { rest, send, post, version, published: join(dirname(rest.test.auditDir), 'published') };
}

const at = (reply: Reply, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | null)?.[key], reply.json());

test('what is published', async (t) => {
  const p = await publisher();
  const { rest } = p;
  t.teardown(() => rest.close());
  const file = p.version();

  await t.test('is for admins, whose whole chain is, and every call is recorded', async (t) => {
    const calls = [
      ['POST', '/osl/objects', { fragment: ORDERS, base_version: file }, 'publish'],
      ['POST', '/osl/objects', { fragment: ORDERS, state: 'draft' }, 'draft'],
      ['POST', '/osl/objects', { deprecate: { 'metrics.revenue': 'old' }, base_version: file }, 'deprecate'],
      ['POST', '/osl/objects', { withdraw: ['metrics.revenue'], base_version: file }, 'withdraw'],
      ['POST', '/osl/objects', { rollback: 0, base_version: file }, 'rollback'],
      ['POST', '/osl/objects', { discard: `draft-${'0'.repeat(32)}` }, 'discard'],
      ['POST', '/osl/validate', { draft: `draft-${'0'.repeat(32)}` }, 'validate'],
      ['GET', '/osl/objects', undefined, 'objects'],
      ['GET', '/osl/objects/1', undefined, 'objects'],
    ] as const;
    for (const [method, path, body, action] of calls) {
      const refused = [
        await p.send(method, path, body, { claims: {} }),
        await p.send(method, path, body, { subject: 'user:ann' }),
        await p.send(method, path, body, {
          subject: 'agent:bot',
          claims: { ...ADMIN, chain: ['user:root', 'agent:bot'] },
        }),
      ];
      for (const reply of refused) {
        t.match(reply.json(), { status: 403, code: 'E2101' }, `${action} ${reply.text}`);
        t.notMatch(reply.text, /revenue|order|"[0-9a-f]{32}"/, 'nothing is told');
        t.match(await rest.trail(reply.requestId), [{ action, decision: 'deny', code: 'E2101' }]);
      }
      const json = { 'content-type': 'application/json' };
      t.match((await rest.send(path, { method, body, headers: json })).json(), {
        status: 403,
        code: 'E2102',
      });
    }
    t.equal(p.version(), file);
    t.strictSame(readdirSync(dirname(p.published)).includes('published'), false, 'nothing was written');
  });

  await t.test('names the version that it was made for', async (t) => {
    const bare = await p.send('POST', '/osl/objects', { fragment: ORDERS });
    t.match(bare.json(), { status: 428, code: 'E4280', hint: new RegExp(file) });
    const stale = await p.send('POST', '/osl/objects', { fragment: ORDERS, base_version: '0'.repeat(32) });
    t.match(stale.json(), { status: 412, code: 'E4120', hint: new RegExp(file) });
    const headers = { 'if-match': `"${'0'.repeat(32)}"` };
    t.equal((await p.send('POST', '/osl/objects', { fragment: ORDERS }, { headers })).status, 412);
    for (const tag of ['*', 'W/"x"', '"a", "b"', 'x']) {
      const odd = await p.send(
        'POST',
        '/osl/objects',
        { fragment: ORDERS },
        { headers: { 'if-match': tag } },
      );
      t.match(odd.json(), { code: 'E0511' }, tag);
    }
    const both = { fragment: ORDERS, base_version: file };
    t.equal((await p.send('POST', '/osl/objects', both, { headers })).status, 400);
    t.match(await rest.trail(stale.requestId), [{ action: 'publish', decision: 'error', code: 'E4120' }]);
    t.equal(p.version(), file);
  });

  await t.test('is a new version that serves at once, and says who gains', async (t) => {
    const reply = await p.send(
      'POST',
      '/osl/objects',
      { fragment: ORDERS },
      { headers: { 'if-match': `"${file}"` } },
    );
    t.match(reply.json(), {
      state: 'published',
      changed: true,
      version: { number: 1, parent: null, action: 'publish', author: { subject: 'user:root' }, base: file },
      diff: { changes: [{ change: 'added', kind: 'metric', name: 'orders' }] },
      notes: [],
      versions: { manifest: p.version() },
    });
    t.equal(reply.status, 201);
    t.equal(reply.headers['etag'], `"${p.version()}"`);
    t.not(p.version(), file);
    const gains = (
      at(reply, 'diff.access') as { role: string; changes: { object: string; effect: string }[] }[]
    ).find((r) => r.role === 'regional');
    t.match(gains?.changes, [{ object: 'osl.metrics.orders', effect: 'gains' }]);
    const asked = await rest.ask('user:eu', { osql: 'select measure(orders) as n from osl.entities.order' });
    t.equal(asked.status, 200, asked.text);
    t.match(await rest.trail(reply.requestId), [
      { kind: 'decision', action: 'publish', subject: 'user:root', decision: 'allow' },
      { kind: 'outcome', action: 'publish', outcome: 'ok' },
    ]);
    const [decision] = await rest.test.records(reply.requestId);
    t.strictSame(decision?.objects, ['osl.metrics.orders']);
    const found = await p.send('GET', String(reply.headers['location']));
    t.match(found.json(), {
      kind: 'version',
      version: { number: 1, objects: ORDERS, request_id: reply.requestId },
    });
    t.match((await p.send('GET', '/osl/objects/1')).json(), { version: { number: 1 } });
  });

  await t.test('a second time, it is there', async (t) => {
    const again = await p.send('POST', '/osl/objects', { fragment: ORDERS, base_version: file });
    t.match(again.json(), { changed: false, version: { number: 1 }, diff: { changes: [] } });
    t.equal(again.status, 200, 'a lost answer may be asked for again');
    const { document } = rest.test.service.model().manifest;
    const own = await p.post({ fragment: { entities: { order: document.entities['order'] } } });
    t.match(own.json(), { changed: false }, 'what the file says already is no layer over it');
  });

  await t.test('of two made for the same version one serves', async (t) => {
    const base = p.version();
    const metric = (name: string) => ({
      base_version: base,
      fragment: { metrics: { [name]: { entity: 'order', expression: 'max(quantity)' } } },
    });
    const replies = await Promise.all(
      ['one', 'two', 'three'].map((n) => p.send('POST', '/osl/objects', metric(n))),
    );
    t.strictSame(replies.map((r) => r.status).sort(), [201, 412, 412]);
    t.equal(rest.test.service.publishing.versions.head?.number, 2);
  });

  await t.test('goes through draft, validated and published', async (t) => {
    await rest.test.engine.system.script(sql`CREATE TABLE shop.notes (id int PRIMARY KEY, body text)`);
    await rest.test.engine.system.script(sql`INSERT INTO shop.notes VALUES (1, 'hello')`);
    await rest.test.engine.system.grantRead('shop');
    const broken = await p.send('POST', '/osl/objects', { fragment: 'entities: [', state: 'draft' });
    t.match(broken.json(), { state: 'draft', draft: { state: 'draft', validated: null } });
    const bad = String(at(broken, 'draft.id'));
    t.match((await p.send('POST', '/osl/validate', { draft: bad })).json(), {
      ok: false,
      draft: { state: 'draft' },
      diagnostics: [{ code: 'M0003', range: { start: { line: 1 } } }],
    });
    t.match((await p.post({ draft: bad })).json(), { status: 409, code: 'E4090' });
    t.match((await p.send('POST', '/osl/objects', { discard: bad })).json(), { state: 'discarded' });
    t.match((await p.send('POST', '/osl/objects', { discard: bad })).json(), { code: 'E1001' });

    const kept = await p.send('POST', '/osl/objects', { fragment: NOTES, state: 'draft' });
    const id = String(at(kept, 'draft.id'));
    t.equal(
      at(await p.send('POST', '/osl/objects', { fragment: NOTES, state: 'draft' }), 'draft.id'),
      id,
      'the same',
    );
    t.match((await p.post({ draft: id })).json(), { code: 'E4090', hint: /validate/ });
    t.match((await p.send('POST', '/osl/validate', { draft: id })).json(), {
      ok: true,
      draft: { state: 'validated', validated: { by: 'user:root', manifest: p.version() } },
      diff: { access: [] },
    });
    t.notOk(rest.test.service.model().manifest.entities.has('note'), 'it does not serve yet');
    const kinds = async (): Promise<ReadonlyMap<string, string>> => {
      const { nodes } = (await p.send('GET', '/osl/domain-map')).json() as {
        nodes: { name: string; kind: string }[];
      };
      return new Map(nodes.map((n) => [n.name, n.kind]));
    };
    t.match(await kinds(), new Map([['notes', 'candidate']]), 'its table is only discovered');
    const done = await p.post({ draft: id });
    t.match(done.json(), {
      state: 'published',
      version: { number: 3, draft: id },
      notes: ['entity note: no role has a grant on it, so nobody sees it until the policy gives one'],
      diff: { access: [] },
    });
    t.match((await p.send('GET', `/osl/objects/${id}`)).json(), {
      kind: 'draft',
      draft: { state: 'published', published_as: at(done, 'version.id'), text: JSON.stringify(NOTES) },
    });
    t.match(await kinds(), new Map([['note', 'entity']]), 'adopted');
    t.notOk((await kinds()).has('notes'));
    const hidden = await rest.ask('user:ada', { osql: 'select body from osl.entities.note' });
    t.match(hidden.json(), { status: 400, code: 'E0512' }, 'without a grant it does not exist');
    t.match((await p.send('GET', '/osl/objects')).json(), {
      version: p.version(),
      base: file,
      objects: [{ name: 'entities.note' }, { name: 'metrics.orders' }, { over_file: false }],
      history: [{ number: 3 }, { number: 2 }, { number: 1 }],
      drafts: [{ id, state: 'published' }],
      truncated: false,
    });
  });

  await t.test('is deprecated before it is withdrawn, and answers until then', async (t) => {
    t.match((await p.post({ withdraw: ['metrics.orders'] })).json(), { status: 409, code: 'E4090' });
    t.match(
      (await p.post({ withdraw: ['metrics.revenue'] })).json(),
      { status: 422, code: 'E1001' },
      "the file's",
    );
    t.match((await p.post({ deprecate: { 'metrics.nothing': 'x' } })).json(), { code: 'E1001' });
    t.match((await p.post({ deprecate: { 'lexicon.x': 'x' } })).json(), { code: 'E1001' });
    const marked = await p.post({
      deprecate: { 'metrics.orders': 'use count(*)', 'entities.product': 'going' },
    });
    t.match(marked.json(), {
      version: { action: 'deprecate' },
      diff: {
        changes: [
          { kind: 'entity', name: 'product', what: ['deprecated'] },
          { kind: 'metric', name: 'orders', what: ['deprecated'] },
        ],
        access: [],
      },
    });
    const { metrics, entities } = (await p.send('GET', '/osl/schema?governed=true')).json() as Record<
      string,
      { name: string }[]
    >;
    t.match(
      metrics?.find((m) => m.name === 'orders'),
      { deprecated: 'use count(*)' },
    );
    t.match(
      metrics?.find((m) => m.name === 'revenue'),
      { deprecated: null },
    );
    t.match(
      entities?.find((e) => e.name === 'product'),
      { deprecated: 'going' },
    );
    const { nodes } = (await p.send('GET', '/osl/domain-map')).json() as {
      nodes: { id: string; state: string }[];
    };
    t.match(
      nodes.find((n) => n.id === 'metric:orders'),
      { state: 'deprecated' },
    );
    t.match(
      nodes.find((n) => n.id === 'entity:order'),
      { state: 'existing' },
    );
    const asked = { osql: 'select measure(orders) as n from osl.entities.order' };
    t.equal((await rest.ask('user:ann', asked)).status, 200, 'it still answers');
    const explained = await rest.ask('user:ann', {
      osql: 'select id from osl.entities.product',
      explain: true,
    });
    t.match(explained.json(), { deprecated: [{ object: 'osl.entities.product', reason: 'going' }] });
    const measured = await rest.ask('user:ann', { ...asked, explain: true });
    t.match(measured.json(), { deprecated: [{ object: 'osl.metrics.orders', reason: 'use count(*)' }] });

    t.match((await p.post({ withdraw: ['metrics.orders', 'entities.product'] })).json(), {
      version: { action: 'withdraw' },
      diff: {
        changes: [
          { kind: 'entity', what: ['deprecated'] },
          { change: 'removed', name: 'orders' },
        ],
      },
    });
    t.match((await rest.ask('user:ann', asked)).json(), { code: 'E0512' });
    t.equal(
      (await rest.ask('user:ann', { osql: 'select id from osl.entities.product' })).status,
      200,
      'the file has it',
    );
  });

  await t.test('comes back as a new version', async (t) => {
    const before = [...rest.test.service.publishing.versions.history];
    const back = await p.post({ rollback: 1 });
    t.match(back.json(), { version: { action: 'rollback', restores: 1, number: before.length + 1 } });
    t.equal(
      (await rest.ask('user:ann', { osql: 'select measure(orders) from osl.entities.order' })).status,
      200,
    );
    t.notOk(rest.test.service.model().manifest.entities.has('note'));
    t.match((await p.post({ rollback: 1 })).json(), { changed: false });
    const byId = await p.post({ rollback: before[2]?.id });
    t.match(byId.json(), { version: { restores: 3 } });
    t.match((await p.post({ rollback: 999 })).json(), { code: 'E1001' });
    t.match((await p.post({ rollback: 0 })).json(), {
      version: { restores: 0 },
      versions: { manifest: file },
    });
    t.equal(p.version(), file, 'the manifest file alone');
    const { history } = rest.test.service.publishing.versions;
    t.strictSame(history.slice(0, before.length), before, 'history is never rewritten');
    t.strictSame(
      history.map((v) => v.parent),
      [null, ...history.slice(0, -1).map((v) => v.id)],
    );
  });

  await t.test('is the same after a reload and in a new process', async (t) => {
    t.equal((await p.post({ rollback: 3 })).status, 201);
    const version = p.version();
    await rest.test.open.reload();
    t.equal(p.version(), version);
    const versions = await VersionStore.open(p.published);
    t.same(versions.history, rest.test.service.publishing.versions.history);
    t.equal(versions.head?.manifest, version);
    t.equal((await Drafts.open(join(p.published, 'drafts'))).size, 1);
  });

  await t.test('what is damaged is not served', async (t) => {
    const head = readFileSync(join(p.published, 'head'), 'utf8').trim();
    const name = join(p.published, 'versions', `${head}.json`);
    const bytes = readFileSync(name, 'utf8');
    writeFileSync(name, bytes.replace('"int4"', '"int8"'));
    await t.rejects(VersionStore.open(p.published), { name: 'PublishedDamaged' });
    writeFileSync(name, bytes);
    writeFileSync(join(p.published, 'head'), '../../keys/signing.key\n');
    await t.rejects(VersionStore.open(p.published), { name: 'PublishedDamaged' });
    writeFileSync(join(p.published, 'head'), `${head}\n`);
    t.equal((await VersionStore.open(p.published)).head?.id, head);
    const drafts = join(p.published, 'drafts');
    const { size } = await Drafts.open(drafts);
    for (const [i, text] of ['', '{', 'null', '{"text":1}'].entries())
      writeFileSync(join(drafts, `draft-${String(i).repeat(32)}.json`), text);
    t.equal((await Drafts.open(drafts)).size, size, 'a file that is no draft is left out');
  });

  await t.test('leaves a log that verifies', async (t) => {
    t.match(await rest.test.verdict(), { integrity: 'intact', completeness: 'complete', openDecisions: 0 });
  });
});

test('what cannot be published', async (t) => {
  const p = await publisher();
  const { rest } = p;
  t.teardown(() => rest.close());
  const file = p.version();
  const { document } = rest.test.service.model().manifest;
  const customers = document.connectors['db']?.tables['shop.customers']?.columns;
  const own = (name: string) => ({
    connectors: {
      db: { tables: { [name]: { columns: { id: { type: 'int4' }, label: { type: 'text' } } } } },
    },
    entities: { product: { source: `db.${name}`, primary_key: ['id'], columns: ['id', 'label'] } },
  });
  const table = (columns: object) => ({ connectors: { db: { tables: { 'shop.customers': { columns } } } } });

  await t.test('is all but objects and the tables that they rest on', async (t) => {
    const fragments: Readonly<Record<string, unknown>> = {
      'a policy': { policy: { roles: {} } },
      roles: { roles: { analyst: { grants: [] } } },
      subjects: { subjects: { 'user:root': { ceiling: ['auditor'] } } },
      masks: { masks: { pii: 'clear' } },
      limits: { limits: { query: 1 } },
      endpoints: { endpoints: { chat: 'http://127.0.0.1/' } },
      webhooks: { webhooks: [{ url: 'http://127.0.0.1/' }] },
      "the system's own table": own('pg_catalog.pg_roles'),
      "the system's own view": own('information_schema.tables'),
      'a store of text that nothing is redacted in': own('osl_content.chunk_labels_raw'),
      'such a store, in quotes': own('"osl_content".chunk_labels_raw'),
      'a rollup of all rows': own('osl_rollups.orders_by_day'),
      'a rollup': { rollups: { r: { entity: 'order', dimensions: ['region'], max_age: 60 } } },
      'an allowlist': { raw_sql: { allow: ['db.shop.samples'] } },
      'a tenant': { tenant: 'other' },
      'a format': { version: 1 },
      'a connector': { connectors: { other: { kind: 'postgres', url_env: 'PGURL', tables: {} } } },
      'a connector by another name': { connectors: { __proto__x: { tables: {} } } },
      "a connector's kind": { connectors: { db: { kind: 'other' } } },
      "a connector's address": { connectors: { db: { url_env: 'ELSEWHERE' } } },
      'a label taken away': table({ ...customers, email: { type: 'text' } }),
      'a label changed': table({ ...customers, email: { type: 'text', sensitivity: 'birth' } }),
      'a label in JSON text': `{"connectors":{"db":{"tables":{"shop.customers":{"columns":{"email":{"type":"text"}}}}}}}`,
      "the server of a facet's model": {
        facets: {
          notes: { embedding: { model: 'm', endpoint: { protocol: 'openai', url_env: 'ELSEWHERE' } } },
        },
      },
      'a reranker': { rerankers: { best: { protocol: 'cohere', url_env: 'ELSEWHERE', model: 'm' } } },
      'what may be NULL': table({
        ...customers,
        email: { type: 'text', sensitivity: 'pii', nullable: false },
      }),
      'how a column is stored': table({ email: { type: 'text', sensitivity: 'pii', stored: 'inet' } }),
      'a type': table({ ...customers, tax_no: { type: 'bytea', sensitivity: 'secret' } }),
    };
    for (const [what, fragment] of Object.entries(fragments)) {
      const reply = await p.post({ fragment });
      t.match(
        reply.json(),
        { status: 403, code: 'E2101', detail: /^publishing cannot change / },
        `${what} ${reply.text}`,
      );
      t.match(await rest.trail(reply.requestId), [{ action: 'publish', decision: 'deny', code: 'E2101' }]);
      const draft = await p.send('POST', '/osl/objects', { fragment, state: 'draft' });
      const id = at(draft, 'draft.id');
      t.equal((await p.send('POST', '/osl/validate', { draft: id })).status, 403, `${what}, as a draft`);
      t.match((await p.post({ draft: id })).json(), { code: 'E4090' });
    }
    t.equal(p.version(), file);
    const same = table({ email: { type: 'text', sensitivity: 'pii' } });
    t.match(
      (await p.post({ fragment: same })).json(),
      { changed: false },
      'what the file says may be said again',
    );
  });

  await t.test('is what could not be served, with every fault', async (t) => {
    const reply = await p.post({
      fragment: 'metrics:\n  a: { entity: order, expression: sum(nothing) }\n  b: 7\n',
    });
    t.match(reply.json(), { status: 422, code: 'E1002', diagnostics: [{ range: { start: { line: 3 } } }] });
    const renamed = {
      connectors: { db: { tables: { 'shop."customers"': { columns: { email: { type: 'text' } } } } } },
    };
    const twice = await p.post({ fragment: renamed });
    t.match(
      twice.json(),
      { code: 'E1002', diagnostics: [{ code: 'M2009' }] },
      'a second name, without labels',
    );
    const missing = { entities: { customer: { ...document.entities['customer'], columns: ['id'] } } };
    const broken = await p.post({ fragment: missing });
    t.match(broken.json(), { code: 'E1002', diagnostics: [{ document: 'policy', code: /^P/ }] });
    t.match(await rest.trail(reply.requestId), [{ action: 'publish', decision: 'error', code: 'E1002' }]);
    t.equal(p.version(), file);
  });

  await t.test('is any malformed body', async (t) => {
    const bodies: readonly unknown[] = [
      {},
      { fragment: 1 },
      { fragment: [] },
      { fragment: null },
      { fragment: {}, draft: 'x' },
      { draft: '' },
      { draft: 7 },
      { draft: 'x'.repeat(301) },
      { withdraw: [] },
      { withdraw: 'metrics.revenue' },
      { withdraw: [1] },
      { deprecate: {} },
      { deprecate: { 'metrics.revenue': 1 } },
      { deprecate: { 'metrics.revenue': 'x'.repeat(4_001) } },
      { rollback: -1 },
      { rollback: 1.5 },
      { rollback: null },
      { rollback: 1, state: 'draft' },
      { fragment: {}, state: 'live' },
      { fragment: {}, base_version: 1 },
      { fragment: {}, policy: {} },
      '[]',
      '{"fragment":',
    ];
    for (const body of bodies) {
      const reply = await p.send('POST', '/osl/objects', body);
      t.match(reply.json(), { status: 400, code: 'E0511' }, JSON.stringify(body));
      t.match(await rest.trail(reply.requestId), [{ action: 'publish' }]);
    }
    t.equal((await p.send('PUT' as 'POST', '/osl/objects', {})).status, 405);
    t.equal((await p.send('POST', '/osl/objects/1', {})).status, 405);
    t.match((await p.send('GET', '/osl/objects?all=1')).json(), { code: 'E0511' });
  });

  await t.test('names become no paths', async (t) => {
    const odd = [
      '../../keys/signing.key',
      '..%2f..%2fkeys%2fsigning.key',
      'head',
      'draft-..',
      '%00',
      'A'.repeat(90),
    ];
    for (const id of odd) t.equal((await p.send('GET', `/osl/objects/${id}`)).status, 404, id);
    for (const draft of ['../head', `draft-${'0'.repeat(31)}/`, '__proto__', 'constructor'])
      for (const body of [{ draft, base_version: file }, { discard: draft }])
        t.match((await p.send('POST', '/osl/objects', body)).json(), { code: 'E1001' }, draft);
    for (const rollback of ['../../x', '__proto__', 'head', '0'.repeat(64)])
      t.match((await p.post({ rollback })).json(), { code: 'E1001' }, rollback);
    for (const path of [
      '__proto__',
      'constructor',
      'entities.__proto__',
      'entities.constructor',
      'entities',
      '',
      '.x',
    ])
      t.notOk((await p.post({ withdraw: [path] })).status < 400, path);
    const entity = { source: 'db.shop.products', primary_key: ['id'], columns: ['id'] };
    for (const name of ['../x', '__proto__', 'a/b', 'a.b', '"', "x'; drop table shop.orders; --"]) {
      const fragment = JSON.stringify({ entities: { NAME: entity } }).replace(
        'NAME',
        name.replaceAll('"', '\\"'),
      );
      t.match((await p.post({ fragment })).json(), { status: 422, code: 'E1002' }, name);
    }
    t.equal(p.version(), file);
  });

  await t.test('a bomb is not a fragment, and one that is too large neither', async (t) => {
    const lines = ['a: &a [x, x, x, x, x, x, x, x, x, x]'];
    for (let n = 0; n < 9; n++) {
      const [name, other] = [String.fromCharCode(98 + n), String.fromCharCode(97 + n)];
      lines.push(`${name}: &${name} [${Array(10).fill(`*${other}`).join(', ')}]`);
    }
    const started = processorMs();
    const bomb = await p.post({ fragment: lines.join('\n') });
    t.match(bomb.json(), { status: 422, code: 'E1002', diagnostics: [{ code: 'M0006' }] });
    const deep = await p.post({ fragment: `metrics: ${'['.repeat(5_000)}${']'.repeat(5_000)}` });
    t.equal(deep.status, 422, deep.text.slice(0, 200));
    t.ok(processorMs() - started < 5_000, 'and soon');
    const large = await p.post({ fragment: 'x'.repeat(2_100_000) });
    t.match(large.json(), { status: 413, code: 'E4130' });
    t.equal(p.version(), file);
  });

  await t.test('a granted entity over another table is shown for what it is', async (t) => {
    await rest.test.engine.system.script(
      sql`CREATE TABLE shop.salaries (id int PRIMARY KEY, name text, email text)`,
    );
    const moved = {
      connectors: {
        db: {
          tables: {
            'shop.salaries': {
              columns: { id: { type: 'int4' }, label: { type: 'text', nullable: false } },
            },
          },
        },
      },
      entities: { product: { source: 'db.shop.salaries', primary_key: ['id'], columns: ['id', 'label'] } },
    };
    const reply = await p.post({ fragment: moved });
    t.equal(reply.status, 201, reply.text);
    const access = at(reply, 'diff.access') as { role: string; changes: object[] }[];
    t.match(access.find((r) => r.role === 'analyst')?.changes, [
      {
        object: /^osl\.entities\.product\./,
        effect: 'differs',
        before: { reads: /^db\.shop\.products\./ },
        after: { reads: /^db\.shop\.salaries\./ },
      },
    ]);
    const kept = (await p.send('GET', '/osl/objects/1')).json();
    t.match(kept, { version: { access: [{ role: 'analyst' }] } }, 'and stays to be seen');
    t.equal((await p.post({ rollback: 0 })).status, 201);
  });

  await t.test('no answer has a password verifier, a filter or an attribute of the policy', async (t) => {
    const before = await p.post({ fragment: ORDERS });
    const narrow = { entities: { order: { ...document.entities['order'], columns: ['id', 'customer_id'] } } };
    const answers = [
      before,
      await p.post({ fragment: narrow }),
      await p.send('POST', '/osl/validate', { fragment: narrow }),
      await p.send('POST', '/osl/validate', { manifest: { ...document, entities: {} } }),
      await p.send('POST', '/osl/validate', { fragment: ORDERS }),
      await p.send('POST', '/osl/suggest', { table: 'db.shop.orders' }),
      await p.send('POST', '/osl/suggest', { term: 'orders' }),
      await p.send('GET', '/osl/objects'),
      await p.send('GET', '/osl/objects/1'),
      await p.send('GET', '/osl/objects/3'),
      await p.send('GET', '/osl/candidates'),
      await p.send('GET', '/osl/schema'),
      await p.send('GET', '/osl/domain-map'),
      await p.send('POST', '/osl/query', { osql: 'SELECT id FROM osl.entities.customer', explain: true }),
      await p.send('GET', '/metrics'),
    ];
    for (const { text, status } of answers) {
      t.ok(status < 500, text.slice(0, 100));
      // The number of iterations stands between `$` and `:` in a verifier; alone it may be any figure of /metrics.
      t.notMatch(text, /SCRAM|tableau|4096:|attribute\(|BwcHBwcH|CAgICAgI|CQkJCQkJ/, text.slice(0, 100));
    }
    const stored = readdirSync(join(p.published, 'versions')).map((n) =>
      readFileSync(join(p.published, 'versions', n), 'utf8'),
    );
    t.notOk(
      stored.some((text) => /SCRAM|attribute\(/.test(text)),
      'nor has what is stored',
    );
  });
});

test('the manifest file and what was published over it', async (t) => {
  let failing = false;
  const p = await publisher({
    serve: (service) => {
      const { audit } = sealedParts(service);
      return sealing(service, {
        audit: {
          append: (entry: AuditEntry, done?: (failure: AuditUnavailable | null, seq: number) => void) => {
            if (done !== undefined) return audit.append(entry, done);
            return failing
              ? Promise.reject(new AuditUnavailable('disk', 'the disk is full'))
              : audit.append(entry);
          },
          form: (common) => audit.form(common),
          appendForm: (...record) => audit.appendForm(...record),
          fingerprint: (text: string) => audit.fingerprint(text),
          fingerprintOf: (...of) => audit.fingerprintOf(...of),
          close: () => audit.close(),
          stats: () => audit.stats(),
        } as AuditLog, // one function for the two overloads
      });
    },
  });
  const { rest } = p;
  t.teardown(() => rest.close());
  const manifestFile = join(dirname(dirname(rest.test.auditDir)), 'manifest.yaml');
  const text = readFileSync(manifestFile, 'utf8');
  const { document } = rest.test.service.model().manifest;
  const product = { ...document.entities['product'], description: 'Published.' };
  const says = (): string | null | undefined =>
    rest.test.service.model().manifest.catalog.relations.get('product')?.description;

  const metrics = {
    ...ORDERS.metrics,
    revenue: { ...document.metrics?.['revenue'], description: 'Published too.' },
    pieces: { entity: 'order', expression: 'sum(quantity)' },
  };
  const first = await p.post({ fragment: { entities: { product }, metrics } });
  t.equal(first.status, 201, first.text);
  const both = p.version();

  await t.test('without a record nothing is published', async (t) => {
    failing = true;
    const { versions } = rest.test.service.publishing;
    const reply = await p.post({ rollback: 0 });
    failing = false;
    t.match(reply.json(), { status: 503, code: 'E5030' });
    t.equal(p.version(), both);
    t.equal(versions.history.length, 1);
    t.equal(readdirSync(join(p.published, 'versions')).length, 1, 'not on disk either');
  });

  await t.test('change apart', async (t) => {
    writeFileSync(manifestFile, text.replace(REVENUE, `${SPENT}${REVENUE}`));
    await rest.test.open.reload();
    const { metrics: served } = rest.test.service.model().manifest.catalog;
    t.ok(served.has('spent') && served.has('orders'));
    t.equal(says(), 'Published.');
  });

  await t.test('contradict each other: what was served before still is', async (t) => {
    const version = p.version();
    const edits = [
      [
        /`entities\.product` was published over another text/,
        PRODUCT,
        `    description: Edited.\n${PRODUCT}`,
      ],
      [/`metrics\.revenue` was published over another text/, REVENUE, SPENT],
      [
        /`metrics\.orders` was published over another text/,
        REVENUE,
        `${REVENUE}${SPENT.replace('spent', 'orders')}`,
      ],
      [/\/metrics\/pieces\/expression: .*quantity/, 'region, quantity, amount', 'region, amount'],
    ] as const;
    for (const [message, old, edited] of edits) {
      t.ok(text.includes(old), old);
      writeFileSync(manifestFile, text.replace(old, edited));
      await t.rejects(rest.test.open.reload(), { name: 'OverlayConflict', message }, String(message));
      t.equal(p.version(), version);
      t.equal(says(), 'Published.');
    }
  });

  await t.test('agree again once the file says it, or it is withdrawn', async (t) => {
    writeFileSync(manifestFile, text.replace(PRODUCT, `${PRODUCT}    description: Published.\n`));
    await rest.test.open.reload();
    t.equal(says(), 'Published.', 'both say the same');
    writeFileSync(manifestFile, text.replace(PRODUCT, `${PRODUCT}    description: Edited.\n`));
    await t.rejects(rest.test.open.reload(), { name: 'OverlayConflict' });
    t.equal((await p.post({ withdraw: ['entities.product'] })).status, 201, 'withdrawn while the file waits');
    await rest.test.open.reload();
    t.equal(says(), 'Edited.', 'the file has the word again');
    t.match((await p.post({ rollback: 1 })).json(), { status: 409, code: 'E4090' }, 'not over a newer file');
    writeFileSync(manifestFile, text);
    await rest.test.open.reload();
    t.equal((await p.post({ rollback: 1 })).status, 201);
    t.equal(p.version(), both, 'the same objects over the same file are the same version');
  });

  await t.test('a question that has begun keeps its version, and the next has the new one', async (t) => {
    const osql = 'select label from osl.entities.product where id = 1';
    t.equal((await rest.ask('user:ann', { osql })).status, 200);
    const columns = { id: null, label: { column: 'id' } };
    const asking = Array.from({ length: 40 }, () => rest.ask('user:ann', { osql }));
    const publishing = await p.post({ fragment: { entities: { product: { ...product, columns } } } });
    t.equal(publishing.status, 201, publishing.text);
    asking.push(...Array.from({ length: 10 }, () => rest.ask('user:ann', { osql })));
    for (const answer of await Promise.all(asking)) {
      // One that runs while what it reads is declared anew is ended: it gives no row of either version.
      if (answer.status === 409) {
        t.match(answer.json(), { code: 'E2003' });
        continue;
      }
      t.equal(answer.status, 200, answer.text);
      const told = answer.json() as { columns: { type: string }[]; versions: { manifest: string } };
      const type = told.versions.manifest === p.version() ? 'int4' : 'text';
      t.equal(told.columns[0]?.type, type, 'an answer is of one version, whole');
    }
    const after = (await rest.ask('user:ann', { osql })).json();
    t.match(after, { columns: [{ type: 'int4' }], versions: { manifest: p.version() } }, 'no stale plan');
    const { entities } = (await p.send('GET', '/osl/schema?governed=true')).json() as {
      entities: { name: string; columns: { type: string }[] }[];
    };
    t.equal(entities.find((e) => e.name === 'product')?.columns[1]?.type, 'int4', 'no stale schema');
  });

  await t.test('publishing is limited as the schema is', async (t) => {
    writeFileSync(rest.test.policyFile, POLICY.replace('authoring: 100000', 'authoring: 2'));
    await rest.test.open.reload();
    await setTimeout(1_100); // what was counted under the old limit is of another second
    const six = () => Promise.all(Array.from({ length: 6 }, () => p.post({ fragment: ORDERS })));
    let replies = await six();
    t.ok(replies.some((r) => r.status === 200));
    // On a busy machine six may take more than the seconds that let them in.
    while (!replies.some((r) => r.status === 429)) replies = await six();
    t.ok(replies.every((r) => r.status !== 429 || r.headers['retry-after'] !== undefined));
  });
});
