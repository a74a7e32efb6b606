import { freshAddress } from '../../../surfaces/rest/fixture.js';
import { type Check, refused, reviews } from './check.js';

/** Method, path and body of every endpoint that needs a token. */
const ENDPOINTS: readonly (readonly [string, string, unknown?])[] = [
  ['POST', '/osl/query', { osql: 'select id from book' }],
  ['POST', '/osl/sample', { kind: 'table', name: 'book' }],
  ['GET', '/osl/domain-map?governed=true'],
  ['GET', '/osl/schema?governed=true'],
  ['GET', '/osl/schema/resolve?term=book'],
  ['GET', '/osl/conformance'],
];
const JSON_TYPE = { 'content-type': 'application/json' };

/** All endpoints, sent with these headers, answer with this status and code. */
function everywhere(headers: Readonly<Record<string, string>>, status: number, code: string): Check {
  return async (t, world) => {
    for (const [method, path, body] of ENDPOINTS) {
      const sent = { method, body, headers: { ...JSON_TYPE, ...headers }, from: freshAddress() };
      t.match(await world.send(path, sent), { status, code, rows: [] }, path);
    }
  };
}

export const ACCESS_CHECKS = {
  'service.0.1': async (t, world) => {
    const other = await world.get('user:ann', '/osl/schema?governed=true', { tenant: 'other' });
    t.match(other, { status: 401, code: 'E3001' });
    t.equal((await world.get('user:ann', '/osl/schema?governed=true')).status, 200);
  },
  'service.0.2': async (t, world) => {
    const { body, headers } = await world.get('user:ann', '/osl/schema?governed=true');
    t.equal(headers['content-type'], 'application/json');
    t.match(body, {
      entities: [{ name: 'book' }, { name: 'author' }, { name: 'member' }],
      metrics: [{ name: 'page_total' }],
      facets: [{ name: 'reviews' }],
    });
  },
  'service.2': async (t, world) => {
    const { rows } = await world.osql('user:ann', 'select id, owner from book where id < 3 order by id');
    t.same(rows, [
      { id: 1, owner: '[redacted]' },
      { id: 2, owner: '[redacted]' },
    ]);
    const clear = await world.osql('user:ada', 'select owner from book where id = 1');
    t.same(clear.rows, [{ owner: 'Owner Quux 1' }]);
    t.same((await world.osql('user:eu', 'select id from book where id = 2')).rows, []);
    t.match(await world.osql('user:eu', 'select owner from book'), { code: 'E0512' });
    t.match(await world.osql('user:ann', 'select pg_sleep(1) from book'), { code: 'E0511' });
  },
  'service.6': async (t, world) => {
    for (const path of ['/osl/traverse', '/osl/retrieve']) {
      t.match(await world.post('user:ann', path, {}), { status: 404, code: 'E4040' }, path);
    }
  },
  'endpoint.1': everywhere({}, 403, 'E2102'),
  'endpoint.2': async (t, world) => {
    const authorization = `Bearer ${await world.rest.test.token('user:ann')}`;
    const body = { osql: 'select id from book' };
    for (const path of ['/osl/query', '/osl/sample']) {
      const headers = { authorization, 'content-type': 'text/plain' };
      t.match(await world.send(path, { method: 'POST', headers, body }), { status: 415, code: 'E4150' });
      const none = await world.post('user:ann', path, 'no JSON');
      t.match(none, { status: 400, code: 'E0511' });
    }
  },
  'endpoint.conformance': async (t, world) => {
    const { status, text } = await world.get('user:ann', '/osl/conformance');
    t.equal(status, 200);
    const levels: unknown = JSON.parse(text);
    t.ok(Array.isArray(levels) && levels.every((level) => typeof level === 'string'));
  },
  'endpoint.health': async (t, world) =>
    t.match(await world.send('/health', { from: freshAddress() }), { status: 200, body: { status: 'ok' } }),
  'auth.1.2': async (t, world) => {
    const headers = {
      ...JSON_TYPE,
      authorization: `Bearer ${await world.rest.test.token('user:ann')}`,
      'x-actor-roles': 'clear,TENANT_ADMIN',
      'x-osl-subject': 'user:ada',
    };
    const body = { osql: 'select owner from book where id = 1' };
    const heard = await world.send('/osl/query', { method: 'POST', headers, body });
    t.same(heard.rows, [{ owner: '[redacted]' }]);
    t.match(await world.rest.trail(heard.requestId), [{ subject: 'user:ann' }, { subject: 'user:ann' }]);
    t.equal((await world.send('/osl/schema', { headers })).status, 403);
  },
  'auth.2': everywhere({ 'x-osl-subject': 'user:ada' }, 403, 'E2102'),
  'auth.2.3': everywhere({ authorization: 'Bearer broken' }, 401, 'E3001'),
  'auth.3.roles': async (t, world) => {
    const text = 'select owner from book where id = 1';
    const asRole = await world.post(
      'user:ada',
      '/osl/query',
      { osql: text },
      { aclRoles: [], roles: ['clear'] },
    );
    t.match(asRole, { status: 403, code: 'E2102' }, 'they give no data');
    const full = await world.get('user:root', '/osl/schema', { roles: ['TENANT_ADMIN'] });
    t.equal(full.status, 200, 'they open what admins may');
  },
  'auth.3.acl_roles': async (t, world) => {
    const passages = async (aclRoles: readonly string[]) =>
      (await world.post('user:ada', '/osl/query', { osql: `select text from ${reviews()}` }, { aclRoles }))
        .rows;
    t.equal((await passages(['clear'])).length, 5);
    t.equal((await passages([])).length, 0);
    t.equal((await passages(['reader'])).length, 0, 'not below the ceiling');
  },
  'auth.4': async (t, world) => {
    const rows = async (chain: readonly string[]) => {
      const subject = chain.at(-1) ?? '';
      const claims = { chain, aclRoles: ['reader', 'clear'] };
      return (await world.post(subject, '/osl/query', { osql: 'select id from book' }, claims)).rows.length;
    };
    t.equal(await rows(['user:ann']), 12);
    t.equal(await rows(['user:ann', 'user:root']), 12);
    t.equal(await rows(['user:nil', 'user:ann']), 0, 'the first of the chain counts');
  },
  'auth.4.2': async (t, world) => {
    const chain = ['user:nil', 'user:ann'];
    const token = await world.rest.test.token('user:ann', { chain, aclRoles: ['reader'] });
    const [head, payload = '', signature] = token.split('.');
    const claims: object = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const shorter = Buffer.from(JSON.stringify({ ...claims, chain: ['user:ann'] })).toString('base64url');
    const headers = { ...JSON_TYPE, authorization: `Bearer ${head}.${shorter}.${signature}` };
    const body = { osql: 'select id from book' };
    t.match(await world.send('/osl/query', { method: 'POST', headers, body }), { status: 401, rows: [] });
  },
  'versioning.1': async (t, world) => {
    t.equal((await world.get('user:ann', '/osl/schema?governed=true')).status, 200);
    for (const path of ['/osl/v1/schema', '/osl/v2/schema', '/schema']) {
      t.equal((await world.get('user:ann', path)).status, 404, path);
    }
  },
  'sample.1': async (t, world) => {
    const table = await world.post('user:eu', '/osl/sample', { kind: 'table', name: 'book', limit: 2 });
    t.same(table.rows, [
      { id: 1, title: 'Book 1', region: 'eu' },
      { id: 3, title: 'Book 3', region: 'eu' },
    ]);
    const facet = { kind: 'facet', name: 'reviews', limit: 1 };
    t.match((await world.post('user:ann', '/osl/sample', facet)).rows, [
      { text: /^A review/, reviewer: '[redacted]' },
    ]);
    t.match((await world.post('user:ada', '/osl/sample', facet)).rows, [{ reviewer: 'Ira Critic' }]);
  },
  'sample.2': async (t, world) => {
    const { rows } = await world.post('user:ann', '/osl/sample', { kind: 'table', name: 'book', limit: 1 });
    t.match(rows, [{ email: 'box1', owner: '[redacted]' }], 'a name says nothing, the declaration all');
  },
  'sample.kind': async (t, world) => {
    const ask = async (kind: string, name: string) =>
      (await world.post('user:ann', '/osl/sample', { kind, name })).code;
    t.same(await ask('table', 'book'), '');
    t.same(await ask('facet', 'reviews'), '');
    t.same(await ask('view', 'book'), 'E0511');
    t.same(await ask('facet', 'book'), 'E0241', 'each kind has its own names');
  },
  'sample.limit': async (t, world) => {
    const rows = async (kind: string, name: string, more = {}) =>
      (await world.post('user:ann', '/osl/sample', { kind, name, ...more })).rows.length;
    t.equal(await rows('table', 'book'), 8);
    t.equal(await rows('facet', 'reviews'), 5);
    t.equal(await rows('table', 'book', { limit: 3 }), 3);
    t.equal(
      (await world.post('user:ann', '/osl/sample', { kind: 'table', name: 'book', limit: '3' })).status,
      400,
    );
  },
  'sample.5': async (t, world) => {
    const facet = { kind: 'facet', name: 'reviews' };
    const none = await world.post('user:ada', '/osl/sample', facet, { aclRoles: [], roles: [] });
    t.match(none, { status: 200, rows: [] });
    const table = await world.post(
      'user:ada',
      '/osl/sample',
      { kind: 'table', name: 'book' },
      { aclRoles: [], roles: [] },
    );
    t.match(table, { status: 403, code: 'E2102', rows: [] });
    t.same((await world.post('user:few', '/osl/sample', facet)).rows, []);
  },
  'sample.6': async (t, world) => {
    const lists = async (kind: string, name: string) => {
      const { body } = await world.post('user:ann', '/osl/sample', { kind, name });
      return [body['redacted_columns'], body['redacted_fields']];
    };
    t.same(await lists('table', 'book'), [['book.owner'], []]);
    const { body } = await world.osql('user:ann', 'select * from book limit 1');
    t.same(body['redacted_columns'], ['book.owner'], 'in the spelling of answers');
    t.same(await lists('facet', 'reviews'), [[], ['reviewer']]);
  },
  'sample.7': async (t, world) => {
    const { rows } = await world.post('user:ann', '/osl/sample', { kind: 'table', name: 'book' });
    t.ok(rows.length > 0 && rows.every((r) => r['owner'] === '[redacted]'));
    const member = await world.post('user:ann', '/osl/sample', { kind: 'table', name: 'member' });
    t.ok(member.rows.length > 0 && member.rows.every((r) => r['code'] === '[redacted]'));
  },
  'sample.8': async (t, world) =>
    t.match(await world.post('user:ann', '/osl/sample', { kind: 'facet', name: 'nope' }), { code: 'E0241' }),
  'sample.9': async (t, world) =>
    t.match(await world.post('user:ann', '/osl/sample', { kind: 'table', name: 'nope' }), { code: 'E0254' }),
  'errors.E0511': refused('user:ann', 'select id from book where (', 400, 'E0511'),
  'errors.400-E0512': refused('user:ann', 'select id from nowhere', 400, 'E0512'),
  'errors.E2101': async (t, world) => {
    t.match(await world.osql('user:ann', 'select shelf from book'), { status: 403, code: 'E2101' });
    t.match(await world.osql('user:nil', 'select id from book'), { status: 403, code: 'E2102' });
    t.equal((await world.osql('user:ann', 'select title from book')).rows.length, 12);
  },
  'errors.E1001': async (t, world) => {
    const several = { metrics: ['page_total'], group_by: ['author__name'] };
    t.match(await world.post('user:ann', '/osl/query', several), { status: 422, code: 'E1001', rows: [] });
    const nowhere = "select id from TRAVERSE(anchor => 'book', target => 'member', keys => ('1'))";
    t.match(await world.osql('user:ann', nowhere), { status: 422, code: 'E1001' });
  },
  'errors.E0510': async (t, world) => {
    const { system } = world.rest.test.engine;
    await system.script(FAILING_MEMBERS);
    await system.grantRead('lib');
    const failed = await world.osql('user:ann', 'select since from member');
    await system.script(MENDED_MEMBERS);
    t.match(failed, { status: 502, code: 'E0510', rows: [], body: { sqlstate: '58030' } });
    t.match(
      await world.osql('user:ann', 'select since from member'),
      { status: 200 },
      'the database is mended',
    );
    const mistake = await world.osql('user:ann', 'select 1 / (id - id) as q from book');
    t.match(mistake, { status: 400, code: 'E0529' }, "a mistake of the caller's is no failure of the engine");
  },
  'errors.2': async (t, world) => {
    for (const [kind, status, code] of [
      ['facet', 400, 'E0241'],
      ['table', 400, 'E0254'],
    ] as const) {
      const heard = await world.post('user:ann', '/osl/sample', { kind, name: 'nope' });
      t.match(heard, { status, code, body: { title: /./, request_id: heard.requestId } });
    }
  },
} satisfies Readonly<Record<string, Check>>;

/** Members whose table cannot be read, as on a broken disk. */
const FAILING_MEMBERS = `
  ALTER TABLE lib.t_member RENAME TO t_member_kept;
  CREATE FUNCTION lib.unreadable() RETURNS int4 LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not read block' USING ERRCODE = '58030'; END $$;
  CREATE VIEW lib.t_member AS SELECT code, lib.unreadable() AS since FROM lib.t_member_kept;`;
const MENDED_MEMBERS = `
  DROP VIEW lib.t_member; DROP FUNCTION lib.unreadable();
  ALTER TABLE lib.t_member_kept RENAME TO t_member;`;
