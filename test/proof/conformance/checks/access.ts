import { generatedSql } from '../../../../src/base/sql.js';
import { freshAddress } from '../../../surfaces/rest/fixture.js';
import {
  answeredAndRefused,
  authors,
  type Check,
  examplesIn,
  refusedEverywhere,
  reviews,
  sameEverywhere,
} from './check.js';

/** Method, path and body of every endpoint that needs a token. */
const ENDPOINTS: readonly (readonly [string, string, unknown?])[] = [
  ['POST', '/osl/query', { osql: 'select id from book' }],
  ['POST', '/osl/sample', { kind: 'table', name: 'book' }],
  ['GET', '/osl/domain-map?governed=true'],
  ['GET', '/osl/schema?governed=true'],
  ['GET', '/osl/schema/resolve?term=book'],
  ['GET', '/osl/conformance'],
  ['GET', '/osl/candidates'],
  ['POST', '/osl/suggest', { table: 'db.lib.t_loan' }],
  ['POST', '/osl/validate', { fragment: { metrics: {} } }],
];
const ADMIN = { roles: ['TENANT_ADMIN'] };
const JSON_TYPE = { 'content-type': 'application/json' };

/** All endpoints answer with a good token, and sent with these headers with this status and code. */
function everywhere(headers: Readonly<Record<string, string>>, status: number, code: string): Check {
  return async (t, world) => {
    for (const [method, path, body] of ENDPOINTS) {
      const sent = { method, body, headers: { ...JSON_TYPE, ...headers }, from: freshAddress() };
      t.match(await world.send(path, sent), { status, code, rows: [] }, path);
      const good =
        body === undefined
          ? await world.get('user:root', path, ADMIN)
          : await world.post('user:root', path, body, ADMIN);
      t.equal(good.status, 200, path);
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
    const few = await world.get('user:few', '/osl/schema?governed=true');
    world.withheld(t, few, /author|page_total|reviews|letters/);
  },
  'service.2': async (t, world) => {
    const masked = await world.osql('user:ann', 'select id, owner from book where id < 3 order by id');
    t.same(masked.rows, [
      { id: 1, owner: '[redacted]' },
      { id: 2, owner: '[redacted]' },
    ]);
    world.withheld(t, masked, /Quux/);
    const clear = await world.osql('user:ada', 'select owner from book where id = 1');
    t.same(clear.rows, [{ owner: 'Owner Quux 1' }]);
    world.withheld(t, await world.osql('user:eu', 'select id, title from book where id = 2'), /Book 2/);
    for (const read of [
      'select id, owner from book order by id limit 2',
      'with b as (select owner, id from book) select max(owner) from b group by id order by id limit 1',
      'select b.owner from book b join (select id from book) c using (id) order by id limit 1',
      'select id, owner from book where id = 1 union select id, owner from book where id = 2 order by 1',
    ])
      await sameEverywhere(t, world, 'user:ann', read);
    await refusedEverywhere(t, world, 'user:eu', 'select owner from book', 400, 'E0512');
    await refusedEverywhere(t, world, 'user:ann', 'select pg_sleep(1) from book', 400, 'E0511');
  },
  'service.3.2': async (t, world) => {
    for (const subject of ['user:ann', 'user:eu', 'user:few']) {
      const { body } = await world.get(subject, '/osl/schema?governed=true');
      t.equal((await world.get(subject, '/osl/domain-map?governed=true')).status, 200);
      const examples = examplesIn(body);
      t.ok(examples.length > 0, subject);
      for (const osql of examples) {
        t.match(
          await world.osql(subject, osql, { explain: true }),
          { status: 200, body: { plan: {} } },
          osql,
        );
        t.match(await world.osql(subject, osql), { status: 200 }, osql);
      }
    }
    for (const osql of [
      'select name from author',
      'select id from book b join author a on b.title = a.name',
    ]) {
      const [validated, executed] = [
        await world.osql('user:few', osql, { explain: true }),
        await world.osql('user:few', osql),
      ];
      t.match(validated, { status: 400, code: 'E0512' });
      t.same([validated.status, validated.code], [executed.status, executed.code], osql);
    }
  },
  'service.6': async (t, world) => {
    for (const osql of [`select id from ${authors("('1')")}`, `select text from ${reviews()}`])
      t.match(await world.osql('user:ann', osql), { status: 200 });
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
    for (const type of ['application/json', 'Application/JSON; charset=utf-8']) {
      const headers = { authorization, 'content-type': type };
      t.match(await world.send('/osl/query', { method: 'POST', headers, body }), { status: 200 }, type);
    }
    for (const broken of ['[]', 'null', '{"osql":"select 1"', '{"osql":"select 1","osql":"select 2"}'])
      t.match(await world.post('user:ann', '/osl/query', broken), { status: 400, code: 'E0511' }, broken);
  },
  'endpoint.conformance': async (t, world) => {
    const { status, text } = await world.get('user:ann', '/osl/conformance');
    t.equal(status, 200);
    const levels: unknown = JSON.parse(text);
    t.ok(Array.isArray(levels) && levels.every((level) => typeof level === 'string'));
    t.match(await world.send('/osl/conformance', { from: freshAddress() }), { status: 403, code: 'E2102' });
  },
  'endpoint.health': async (t, world) => {
    const from = freshAddress();
    t.match(await world.send('/health', { from }), { status: 200, body: { status: 'ok' } });
    const headers = { authorization: 'Bearer broken' };
    t.match(await world.send('/health', { from, headers }, 'a broken token'), { status: 200 });
    t.match(await world.send('/health', { from, method: 'POST' }), { status: 405, code: 'E4050' });
  },
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
    world.withheld(t, heard, /Quux/);
    t.same((await world.post('user:ann', '/osl/query', body)).rows, heard.rows, 'as without them');
    t.match(await world.rest.trail(heard.requestId), [{ subject: 'user:ann' }, { subject: 'user:ann' }]);
    t.equal((await world.send('/osl/schema', { headers })).status, 403);
    const { authorization: _, ...alone } = headers;
    const sent = { method: 'POST', headers: alone, body, from: freshAddress() };
    t.match(
      await world.send('/osl/query', sent),
      { status: 403, code: 'E2102' },
      'nor do they replace a token',
    );
  },
  'auth.1': async (t, world) => {
    const token = await world.rest.test.token('user:ann');
    const body = { osql: 'select id from book' };
    const bearer = { authorization: `Bearer ${token}` };
    const ask = (as: string, headers: Readonly<Record<string, string>>, path = '/osl/query', more = {}) => {
      const sent = { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body: { ...body, ...more } };
      return world.send(path, { ...sent, from: freshAddress() }, as);
    };
    t.equal((await ask('token in Authorization', bearer)).rows.length, 12);
    const refused = { status: 403, code: 'E2102', rows: [] };
    t.match(await ask('token in a cookie', { cookie: `token=${token}; access_token=${token}` }), refused);
    t.match(await ask('token in another header', { 'proxy-authorization': `Bearer ${token}` }), refused);
    t.match(await ask('token in the address', {}, `/osl/query?access_token=${token}`), refused);
    t.match(await ask('token in the body', {}, '/osl/query', { access_token: token }), refused);
    t.match(
      await ask('a name in headers', { 'x-osl-subject': 'user:ann', 'x-forwarded-user': 'user:ann' }),
      refused,
    );
    const basic = Buffer.from(`user:ann:${token}`).toString('base64');
    const other = await ask('token as a password', { authorization: `Basic ${basic}` });
    t.match(other, { status: 401, code: 'E3001', rows: [] });
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
    const osql = `select text from ${reviews()}`;
    for (const aclRoles of [[], ['reader']]) {
      const heard = await world.post('user:ada', '/osl/query', { osql }, { aclRoles, roles: ['clear'] });
      world.withheld(t, heard, /A review/);
    }
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
    const chain = ['user:root', 'user:ann'];
    const token = await world.rest.test.token('user:ann', { chain, aclRoles: ['reader'] });
    const whole = { ...JSON_TYPE, authorization: `Bearer ${token}` };
    const [head, payload = '', signature] = token.split('.');
    const claims: object = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const body = { osql: 'select id from book' };
    const ask = (headers: Readonly<Record<string, string>>, as: string) =>
      world.send('/osl/query', { method: 'POST', headers, body, from: freshAddress() }, as);
    t.equal((await ask(whole, 'the whole chain')).rows.length, 12);
    for (const other of [['user:ann'], ['user:ada', 'user:ann'], ['user:ann', 'user:root', 'user:ann']]) {
      const forged = Buffer.from(JSON.stringify({ ...claims, chain: other })).toString('base64url');
      const headers = { ...JSON_TYPE, authorization: `Bearer ${head}.${forged}.${signature}` };
      t.match(await ask(headers, other.join(' → ')), { status: 401, code: 'E3001', rows: [] });
    }
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
    const masked = await world.post('user:ann', '/osl/sample', facet);
    t.match(masked.rows, [{ text: /^A review/, reviewer: '[redacted]' }]);
    world.withheld(t, masked, /Critic/);
    t.equal((await world.post('user:eu', '/osl/sample', { kind: 'table', name: 'book' })).rows.length, 6);
    t.match((await world.post('user:ada', '/osl/sample', facet)).rows, [{ reviewer: 'Ira Critic' }]);
  },
  'sample.2': async (t, world) => {
    const one = { kind: 'table', name: 'book', limit: 1 };
    t.match((await world.post('user:ada', '/osl/sample', one)).rows, [
      { email: 'box1', owner: 'Owner Quux 1' },
    ]);
    const masked = await world.post('user:ann', '/osl/sample', one);
    t.match(
      masked.rows,
      [{ email: 'box1', owner: '[redacted]' }],
      'a name says nothing, the declaration all',
    );
    world.withheld(t, masked, /Quux/);
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
    for (const limit of ['3', 0, -1, 101, 1.5]) {
      const heard = await world.post('user:ann', '/osl/sample', { kind: 'table', name: 'book', limit });
      t.match(heard, { status: 400, code: 'E0511' }, String(limit));
    }
  },
  'sample.5': async (t, world) => {
    const facet = { kind: 'facet', name: 'reviews' };
    const none = await world.post('user:ada', '/osl/sample', facet, { aclRoles: [], roles: [] });
    t.match(none, { status: 200, rows: [] });
    world.withheld(t, none, /A review/);
    t.equal((await world.post('user:ada', '/osl/sample', facet)).rows.length, 5, 'with them');
    const table = await world.post(
      'user:ada',
      '/osl/sample',
      { kind: 'table', name: 'book' },
      { aclRoles: [], roles: [] },
    );
    t.match(table, { status: 403, code: 'E2102', rows: [] });
    t.same((await world.post('user:few', '/osl/sample', facet)).rows, []);
  },
  'sample.7': async (t, world) => {
    const books = await world.post('user:ann', '/osl/sample', { kind: 'table', name: 'book' });
    t.ok(books.rows.length > 0 && books.rows.every((r) => r['owner'] === '[redacted]'));
    world.withheld(t, books, /Quux/);
    const clear = await world.post('user:ada', '/osl/sample', { kind: 'table', name: 'book', limit: 1 });
    t.match(clear.rows, [{ owner: 'Owner Quux 1' }]);
    const member = await world.post('user:ann', '/osl/sample', { kind: 'table', name: 'member' });
    t.ok(member.rows.length > 0 && member.rows.every((r) => r['code'] === '[redacted]'));
  },
  'sample.8': undeclared('facet', 'reviews', ['nope', 'book', 'REVIEWS'], 'E0241'),
  'sample.9': undeclared('table', 'book', ['nope', 'reviews', 'BOOK', 'lib.t_book', 'wrote'], 'E0254'),
  'errors.E0511': answeredAndRefused(
    'user:ann',
    'select id from book where (id = 1)',
    ['select id from book where (', 'select id, from book', "select id from book where title = 'x"],
    400,
    'E0511',
  ),
  'errors.400-E0512': answeredAndRefused(
    'user:ann',
    'select id from osl.entities.book where id = 1',
    ['select id from nowhere', 'select nothing from book', 'select id from "Book"', 'select ctid from book'],
    400,
    'E0512',
  ),
  'errors.E2101': async (t, world) => {
    t.match(await world.osql('user:ann', 'select shelf from book'), { status: 403, code: 'E2101' });
    t.match(await world.osql('user:nil', 'select id from book'), { status: 403, code: 'E2102' });
    await sameEverywhere(t, world, 'user:ann', 'select title from book order by id');
    for (const hidden of [
      'select shelf from book',
      'select id from book where shelf is null',
      'with b as (select shelf as s from book) select count(*) from b where s > 1',
      'select count(*) from book order by max(shelf)',
    ])
      await refusedEverywhere(t, world, 'user:ann', hidden, 403, 'E2101');
    await refusedEverywhere(t, world, 'user:nil', 'select id from book', 403, 'E2102');
  },
  'errors.E1001': async (t, world) => {
    const several = { metrics: ['page_total'], group_by: ['author__name'] };
    t.match(await world.post('user:ann', '/osl/query', several), { status: 422, code: 'E1001', rows: [] });
    const nowhere = "select id from TRAVERSE(anchor => 'book', target => 'member', keys => ('1'))";
    t.match(await world.osql('user:ann', nowhere), { status: 422, code: 'E1001' });
    t.equal((await world.post('user:ann', '/osl/query', { metrics: ['page_total'] })).rows.length, 1);
    t.equal((await world.osql('user:ann', `select id from ${authors("('2')")}`)).rows.length, 1);
  },
  'errors.E0510': async (t, world) => {
    const { system } = world.rest.test.engine;
    await system.script(generatedSql(FAILING_MEMBERS));
    await system.grantRead('lib');
    const failed = await world.osql('user:ann', 'select since from member');
    await system.script(generatedSql(MENDED_MEMBERS));
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
      const declared = { kind, name: kind === 'facet' ? 'reviews' : 'book' };
      t.equal((await world.post('user:ann', '/osl/sample', declared)).status, 200);
    }
  },
} satisfies Readonly<Record<string, Check>>;

/** A sample of what is declared is answered, and of each of `names` refused. */
function undeclared(kind: string, declared: string, names: readonly string[], code: string): Check {
  return async (t, world) => {
    t.ok((await world.post('user:ann', '/osl/sample', { kind, name: declared })).rows.length > 0);
    for (const name of names)
      t.match(await world.post('user:ann', '/osl/sample', { kind, name }), { status: 400, code }, name);
  };
}

/** Members whose table cannot be read, as on a broken disk. */
const FAILING_MEMBERS = `
  ALTER TABLE lib.t_member RENAME TO t_member_kept;
  CREATE FUNCTION lib.unreadable() RETURNS int4 LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not read block' USING ERRCODE = '58030'; END $$;
  CREATE VIEW lib.t_member AS SELECT code, lib.unreadable() AS since FROM lib.t_member_kept;`;
const MENDED_MEMBERS = `
  DROP VIEW lib.t_member; DROP FUNCTION lib.unreadable();
  ALTER TABLE lib.t_member_kept RENAME TO t_member;`;
