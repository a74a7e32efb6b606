import { asJson, readArrow } from '../../../surfaces/rest/arrow/read.js';
import {
  answeredAndRefused,
  at,
  authors,
  type Check,
  FIVE_FORMS,
  LETTERS,
  listAt,
  refusedEverywhere,
  reviews,
  sameEverywhere,
} from './check.js';

/** Statements of two of the forms. */
const OF_TWO_FORMS = [
  `select r.text from ${reviews()} r where r.book_id in (select id from ${authors("('1')")})`,
  `select text from ${reviews()} order by (select count(*) from book)`,
  `select text from ${reviews()} limit (select count(*) from book)`,
  `select id from book where id in (1) or id = (select max(1) from ${reviews()})`,
  `select array(select text from ${reviews()}) from book`,
  `select text from ${reviews()} union all select title from book`,
  `select title from book except select text from ${reviews()}`,
  `select id from ${authors("('1')")} union select id from author`,
  'select id from book union select id from book where id in (1) and evidence is not null',
  `select id, (select max(score) from ${reviews()}) as best from book`,
  `select text, (select count(*) from book) as books from ${reviews()}`,
  `with r as (select text from ${reviews()}) select id from book`,
];

/** What joins a book with what somebody wrote, on a sealed key of each side. */
const JOINED = [
  'book b join wrote w on w.book = b.id',
  'book b left join wrote w on b.id = w.book',
  'book b, wrote w where w.book = b.id',
  'book b join (select id from book where pages > 100) c using (id)',
  'book b join (select w.book from wrote w join author a on a.id = w.author group by 1) w on w.book = b.id',
  'book b join (select id as k from author union select book from (select w.book from book c join wrote w on w.book = c.id) x) u on u.k = b.id',
  'book b cross join lateral (select w.author from wrote w where w.book = b.id) x',
  'book where id in (select w.book from wrote w join author a on a.id = w.author)',
  'book b where exists (select 1 from wrote w where w.book = b.id)',
  'wrote v join wrote w on (v.book, v.author) = (w.book, w.author) join book b on b.id = v.book',
];

/** What would join them on something else. */
const UNJOINED = [
  'book b cross join author a',
  'book b, author a where b.pages > a.id',
  'book b join author a on a.id + 0 = b.id',
  'book b join (select pages from book) c using (pages)',
  'book b natural join (select title from book) c',
  'book b join (select id::int8 as id from book) c on c.id = b.id',
  'book b join (select max(id) as id from book) c on c.id = b.id',
  'book b join (select id from book union select pages from book) c on c.id = b.id',
  'book b join (values (1), (2)) v (id) on v.id = b.id',
  'book b cross join lateral (select c.id from book c where c.pages = b.pages) x',
  'book b cross join lateral (select c.id from book c where c.id = b.id and c.pages > b.pages) x',
  'book where pages in (select pages from book)',
  'book where id not in (select pages from book)',
  'book b where exists (select 1 from author)',
  'book b where not exists (select 1 from book c where c.title = b.title)',
  'book b where (b.id, b.pages) in (select id, pages from book)',
  'book b where b.pages = any (array(select pages from book))',
];

/** Statements, with the columns and the fields of passages that are redacted for `user:ann` in their answers. */
const REDACTED: readonly (readonly [osql: string, columns: readonly string[], fields: readonly string[]])[] =
  [
    ['select * from book limit 1', ['book.owner'], []],
    ['select upper(owner) as o from book limit 1', ['book.owner'], []],
    ['select title from book limit 1', [], []],
    ['select owner as a from book union select title from book', ['book.owner'], []],
    [`select text from ${reviews(12)}`, [], []],
    [`select text, lang from ${reviews(1)}`, [], []],
    [`select lang, reviewer from ${reviews(1)}`, [], ['reviewer']],
    [
      `select b.owner, r.reviewer from book b join ${reviews(1)} r on b.id = r.book_id`,
      ['book.owner'],
      ['reviewer'],
    ],
    ['select id, evidence from book where id in (6)', [], []],
    ['select id, evidence from book where id in (1)', [], []],
  ];

/** What goes beyond the shap of the five forms, by each of its switches. */
const EXTENSIONS = [
  'select id from book union select id from author',
  'select title from book intersect select name from author',
  'select title from book except select name from author',
  'select id from book where id in (select id from author)',
  'select id from book b where exists (select 1 from author a where a.id = b.id)',
  'select (select count(*) from author) as n from book',
  'select array(select id from author) as n from book',
  'select id from (select id from book) b',
  'with b as (select id from book) select id from b',
  'select id, row_number() over (order by id) as n from book',
  'select id, n from book, generate_series(1, id) n',
  `select a.text from ${reviews()} a join ${reviews()} b on a.book_id = b.book_id`,
  "select similarity(title, 'whales') as s from book",
];

/** Constructs that are no part of the language, each of another kind. */
const UNKNOWN = [
  'select id, from book',
  'select id from book for update',
  'select id from book for share',
  'select pg_sleep(1) from book',
  "select pg_read_file('x') from book",
  "select query_to_xml('select 1', true, true, '') from book",
  'select current_user from book',
  'select id::regclass from book',
  "select 'book'::regclass from book",
  'select id from only book',
  'select * from book tablesample system (10)',
  "select * from dblink('x', 'y') as t(a int), book",
  'select id from rows from (generate_series(1, 2)) x(id), book',
  'select id into y from book',
  'with d as (delete from book returning id) select id from d',
];

/** Statements that are no SELECT. The wire takes some of them for its sessions, as psql does; `osql` takes none. */
const OTHER_STATEMENTS = [
  'delete from book',
  'select 1; select 2',
  'set role postgres',
  'copy book to stdout',
  'do $$ begin end $$',
  'explain select id from book',
  'create table y as select id from book',
  'truncate book',
  'lock book',
  'begin',
  'call x()',
];

export const QUERY_CHECKS = {
  'service.4.5': async (t, world) => {
    for (const body of [
      { osql: 'select id, title, owner, pages from book order by id' },
      { osql: `select text, score, cite, redacted_fields from ${reviews()} order by score desc` },
      { osql: `select id, name, depth from ${authors("('1')")} order by id` },
      { osql: 'select id, topic, evidence from osl.entities.book where id in (2, 9) order by id' },
      {
        osql: `select b.id, r.score from book b join ${reviews()} r on b.id = r.book_id order by r.score desc`,
      },
      { sql: 'select id, owner from lib.t_book order by id' },
      { metrics: ['page_total'], group_by: ['book__region'], order_by: ['book__region'] },
    ]) {
      const { rows } = await world.post('user:ann', '/osl/query', body);
      const headers = { accept: 'application/vnd.apache.arrow.stream' };
      const reply = await world.rest.ask('user:ann', body, { headers });
      t.equal(reply.headers['content-type'], headers.accept, JSON.stringify(body));
      const stream = readArrow(reply.bytes);
      t.ok(rows.length > 0);
      t.same(asJson(stream), rows, 'in columns as in JSON');
      t.match(stream.trailer, { request_id: reply.requestId, row_count: rows.length, truncated: false });
    }
    const authorization = `Bearer ${await world.rest.test.token('user:ann')}`;
    for (const [osql, status, code] of [
      ['select shelf from book', 403, 'E2101'],
      ['select id from nowhere', 400, 'E0512'],
    ] as const) {
      const accept = 'application/vnd.apache.arrow.stream';
      const headers = { authorization, accept, 'content-type': 'application/json' };
      const refused = await world.send('/osl/query', { method: 'POST', headers, body: { osql } });
      t.match(refused, { status, code, headers: { 'content-type': /problem\+json/ } }, 'no stream is begun');
    }
  },
  'query.1': async (t, world) => {
    for (const body of [
      {},
      { osql: 5 },
      { osql: null },
      { OSQL: 'select 1' },
      { osql: 'select 1', nope: 1 },
      [],
    ]) {
      const name = JSON.stringify(body);
      t.match(await world.post('user:ann', '/osl/query', body), { status: 400, code: 'E0511' }, name);
    }
    const answered = await world.post('user:ann', '/osl/query', { osql: 'select id from book where id = 1' });
    t.same(answered.rows, [{ id: 1 }]);
  },
  'query.2': async (t, world) => {
    const shapes = { osql: 'select id from book', sql: 'select id from lib.t_book', metrics: ['page_total'] };
    const { osql, sql, metrics } = shapes;
    for (const body of [{ osql }, { sql }, { metrics }])
      t.equal((await world.post('user:ann', '/osl/query', body)).status, 200, 'one by itself');
    for (const body of [
      { osql, sql: '' },
      { osql, sql: null },
      { sql, metrics: [] },
      { osql: '', metrics },
    ])
      t.match(await world.post('user:ann', '/osl/query', body), { status: 400, code: 'E0513' });
    for (const body of [{ osql, sql }, { osql, metrics }, { sql, metrics }, shapes]) {
      const names = Object.keys(body).join();
      t.match(await world.post('user:ann', '/osl/query', body), { status: 400, code: 'E0513' }, names);
    }
    const misplaced = await world.post('user:ann', '/osl/query', { osql, group_by: [] });
    t.match(misplaced, { status: 400, code: 'E0511' }, 'a member of another shape is no second shape');
  },
  'query.3': async (t, world) => {
    for (const body of [
      { osql: 'select id from book' },
      { sql: 'select id from lib.t_book' },
      { metrics: ['nothing'] },
    ]) {
      const heard = await world.post('user:ann', '/osl/query', body);
      t.equal(heard.body['request_id'], heard.requestId);
      const records = await world.rest.test.records(heard.requestId);
      t.match(records[0], { kind: 'decision', subject: 'user:ann', action: 'query' });
      t.ok(records.every((r) => r.request_id === heard.requestId));
    }
    const owners = [
      { osql: 'select owner from book where id = 1' },
      { sql: 'select owner from lib.t_book where id = 1' },
    ];
    for (const body of owners) world.withheld(t, await world.post('user:ann', '/osl/query', body), /Quux/);
    for (const body of [{ osql: 'select sum(pages) from book' }, { metrics: ['page_total'] }])
      t.match(await world.post('user:eu', '/osl/query', body), { status: 400, code: 'E0512' }, 'no grant');
    t.match(await world.post('user:eu', '/osl/query', { sql: 'select pages from lib.t_book' }), {
      code: 'E0512',
    });
  },
  'query.osql': async (t, world) => {
    const { rows } = await world.osql(
      'user:eu',
      'select id, title from osl.entities.book order by id limit 2',
    );
    t.same(rows, [
      { id: 1, title: 'Book 1' },
      { id: 3, title: 'Book 3' },
    ]);
    const empty = await world.osql('user:eu', '');
    t.match(empty, { status: 400, code: 'E0511' });
  },
  'query.sql': async (t, world) => {
    const raw = (who: string, sql: string) => world.post(who, '/osl/query', { sql });
    const ids = (await raw('user:eu', 'select id from lib.t_book order by id')).rows.map((r) => r['id']);
    t.same(ids, [1, 3, 5, 7, 9, 11], 'its rows only');
    t.same((await raw('user:ann', 'select owner from lib.t_book where id = 1')).rows, [
      { owner: '[redacted]' },
    ]);
    t.match(await raw('user:ann', 'select id from lib.t_author'), { status: 403, code: 'E0512' });
    t.match(await raw('user:ann', 'delete from lib.t_book'), { status: 400, code: 'E0511' });
    for (const empty of ['', '   ', ';', '-- nothing'])
      t.match(await raw('user:ann', empty), { status: 400, code: 'E0246' }, JSON.stringify(empty));
    for (const beyond of [
      'select * from pg_authid',
      'select id from lib.t_book where id in (select id from lib.t_author)',
      'with a as (select id from lib.t_author) select id from a',
      'select table_name from information_schema.tables',
    ])
      t.match(await raw('user:ann', beyond), { status: 403, code: 'E0512' }, beyond);
    t.match(await raw('user:ann', 'select shelf from lib.t_book'), { status: 403, code: 'E2101' });
    for (const write of ["select nextval('x')", 'select id from lib.t_book for update', 'select 1; select 2'])
      t.match(await raw('user:ann', write), { status: 400, code: 'E0511' }, write);
  },
  'query.metrics': async (t, world) => {
    const body = { metrics: ['page_total'], group_by: ['book__region'] };
    const { rows } = await world.post('user:ann', '/osl/query', body);
    t.same(rows.map((r) => r['page_total']).sort(), ['3600', '4200'], 'one sum a region');
    const several = { metrics: ['page_total'], group_by: ['author__name'] };
    t.match(await world.post('user:ann', '/osl/query', several), { status: 422, code: 'E1001' });
    t.match(await world.post('user:ann', '/osl/query', { metrics: ['nope'] }), {
      status: 400,
      code: 'E0512',
    });
    t.match(await world.post('user:ann', '/osl/query', { metrics: [] }), { status: 400, code: 'E0511' });
  },
  'query.4': async (t, world) => {
    const { body, text } = await world.osql('user:ann', 'select title from book', { explain: true });
    t.match(body, { form: 'structured', objects: ['osl.entities.book'], plan: { step: 'select' } });
    t.notOk('rows' in body || text.includes('Book 1'));
    for (const osql of FIVE_FORMS) {
      const planned = await world.osql('user:ann', osql, { explain: true });
      t.match(planned, { status: 200, body: { plan: { step: /./ } } });
      t.notOk('rows' in planned.body, osql);
    }
    const records = await world.rest.test.records(String(body['request_id']));
    t.notOk(records.some((r) => r.rows !== null && r.rows > 0));
    for (const [osql, status, code] of [
      ['select nope from book', 400, 'E0512'],
      ['select shelf from book', 403, 'E2101'],
      ['select a.id from book a join author b on a.title = b.name', 400, 'E0514'],
      [`select m.since from member m join ${LETTERS} r on m.code = r.member`, 403, 'E0515'],
    ] as const)
      t.match(await world.osql('user:ann', osql, { explain: true }), { status, code }, osql);
    t.match(await world.osql('user:ann', 'select 1', { explain: 'true' }), { status: 400, code: 'E0511' });
  },
  'osql.1': async (t, world) => {
    const { rows } = await world.osql('user:ann', 'select title from osl.entities.book where id = 3');
    t.same(rows, [{ title: 'Book 3' }]);
    for (const osql of FIVE_FORMS.slice(1, 3)) t.equal((await world.osql('user:ann', osql)).status, 200);
    const tables = ['pg_class', 'information_schema.tables', 'osl.facets.reviews', 'osl.metrics.page_total'];
    for (const table of tables)
      t.match(await world.osql('user:ann', `select * from ${table}`), { status: 400, code: 'E0512' }, table);
    t.match(await world.osql('user:ann', 'select nope from osl.entities.book'), { code: 'E0512' });
  },
  'osql.1.2': async (t, world) => {
    t.equal((await world.osql('user:ann', 'select id from osl.entities.book')).rows.length, 12);
    for (const text of [
      'select id from lib.t_book',
      'select id from t_book',
      'select body from t_review',
      'select lib.t_book.id from book',
      'select t_book.id from book',
      'select ctid from book',
      'select tableoid from book',
      'select x.id from book b join lib.t_author x on x.id = b.id',
      'with x as (select id from lib.t_author) select id from x',
      'select id from book where id in (select id from lib.t_author)',
    ]) {
      t.match(await world.osql('user:ann', text), { status: 400, code: 'E0512' }, text);
    }
  },
  'osql.2.2': async (t, world) => {
    await sameEverywhere(t, world, 'user:ann', 'select id, upper(title) from book order by id');
    for (const text of UNKNOWN) await refusedEverywhere(t, world, 'user:ann', text, 400, 'E0511');
    for (const osql of OTHER_STATEMENTS) {
      t.match(await world.osql('user:ann', osql), { status: 400, code: 'E0511' }, osql);
      t.match(await world.mcp('user:ann', 'semantic_query', { osql }), { status: 400, code: 'E0511' }, osql);
    }
  },
  'osql.3': async (t, world) => {
    for (const text of OF_TWO_FORMS) await refusedEverywhere(t, world, 'user:ann', text, 400, 'E0511');
    for (const text of FIVE_FORMS.slice(0, 3)) await sameEverywhere(t, world, 'user:ann', text);
    // All extensions are switched off there: what is left is the grammar of the contract.
    const plain = await world.plain();
    for (const osql of FIVE_FORMS)
      t.match(await plain.post('user:ann', '/osl/query', { osql }), { status: 200, rows: [{}] }, osql);
    for (const osql of EXTENSIONS) {
      t.match(await world.osql('user:ann', osql), { status: 200 }, `on: ${osql}`);
      t.match(await plain.post('user:ann', '/osl/query', { osql }), { status: 400, code: 'E0511' }, osql);
    }
    const forms = await Promise.all(
      [
        'select id from book',
        `select text from ${reviews()}`,
        `select id from ${authors("('1')")}`,
        'select id, evidence from book where id in (1)',
        `select b.id from book b join ${reviews()} r on b.id = r.book_id`,
      ].map(async (text) => (await world.osql('user:ann', text)).body['form']),
    );
    t.same(forms, ['structured', 'retrieve', 'traverse', 'joint', 'cross_modal']);
  },
  'osql.3.structured': async (t, world) => {
    const { rows } = await world.osql(
      'user:ann',
      `select region, count(*) as n, sum(pages) as pages from osl.entities.book where id <= 4
       group by region order by region limit 2`,
    );
    t.same(rows, [
      { region: 'eu', n: '2', pages: '400' },
      { region: 'us', n: '2', pages: '600' },
    ]);
    const joined = await world.osql(
      'user:ann',
      'select a.name from book b join wrote w on w.book = b.id join author a on a.id = w.author where b.id = 2',
    );
    t.same(joined.rows, [{ name: 'Yves' }]);
    const unsealed = 'select a.name from book b join author a on a.name = b.title';
    t.match(await world.osql('user:ann', unsealed), { status: 400, code: 'E0514' });
    t.match(await world.osql('user:ann', 'select region, count(*) from book'), {
      status: 400,
      code: 'E0511',
    });
  },
  'osql.3.retrieve': async (t, world) => {
    const { rows } = await world.osql('user:ann', `select lang, similarity(text) as s from ${reviews()}`);
    t.equal(rows.length, 5);
    for (const row of rows) {
      t.match(row['lang'], /^(?:de|en)$/, 'a bare column passes through');
      t.type(row['s'], 'number');
    }
    for (const [osql, code] of [
      [`select title from ${reviews()}`, 'E0512'],
      [`select nothing(text) from ${reviews()}`, 'E0511'],
      ["select text from RETRIEVE(facet => 'reviews', query => 'x')", 'E0511'],
      ["select text from RETRIEVE('reviews', 'x', 1)", 'E0511'],
      ["select text from RETRIEVE(facet => 'reviews', query => 'x', top_k => 1, model => 'other')", 'E0511'],
      ['select text from reviews', 'E0511'],
    ] as const)
      t.match(await world.osql('user:ann', osql), { status: 400, code }, osql);
  },
  'osql.3.traverse': async (t, world) => {
    const { rows } = await world.osql('user:ann', `select id, depth from ${authors("('1')")} order by id`);
    t.same(rows, [
      { id: 1, depth: 1 },
      { id: 2, depth: 1 },
    ]);
    const walk = (anchor: string, target: string, keys = "('1')"): string =>
      `select * from TRAVERSE(anchor => '${anchor}', target => '${target}', keys => ${keys})`;
    t.match((await world.osql('user:ann', walk('author', 'author'))).rows, [{ id: 2, depth: 2 }], 'two hops');
    for (const [osql, status, code] of [
      [walk('book', 'member'), 422, 'E1001'],
      [walk('nowhere', 'author'), 400, 'E0512'],
      [walk('book', 'nowhere'), 400, 'E0512'],
      [walk('book', 'author', '()'), 400, 'E0511'],
      ["select id from TRAVERSE(anchor => 'book', target => 'author')", 400, 'E0511'],
    ] as const)
      t.match(await world.osql('user:ann', osql), { status, code }, osql);
  },
  'osql.3.joint': async (t, world) => {
    const { rows } = await world.osql(
      'user:ann',
      'select id, title, topic, evidence from osl.entities.book where id in (2, 9) order by id',
    );
    t.match(rows, [
      { id: 2, title: 'Book 2', topic: /^(?:whales|stars)$/ },
      { id: 9, title: 'Book 9', topic: null, evidence: null },
    ]);
    t.same(
      listAt(rows, 0, 'evidence').map((e) => at(e, 'cite', 'doc_id')),
      ['r1', 'r7'],
    );
    for (const where of ['', ' where id > 0', ' where id in (1) or id in (2)', " where title = 'Book 1'"]) {
      const all = await world.osql('user:ann', `select id, evidence from book${where}`);
      t.match(all, { status: 400, code: 'E0511' }, `of named records only:${where}`);
    }
    const hidden = await world.osql('user:eu', 'select id, title, evidence from book where id in (1, 2)');
    t.same(
      hidden.rows.map((r) => r['id']),
      [1],
    );
    world.withheld(t, hidden, /Book 2|"r[17]"/);
  },
  'osql.3.cross-modal-equijoin': async (t, world) => {
    const { rows } = await world.osql(
      'user:ann',
      `select b.id, b.title, r.book_id, r.text from osl.entities.book b join ${reviews()} r on b.id = r.book_id`,
    );
    t.equal(rows.length, 5);
    for (const r of rows) t.same([String(r['id']), r['title']], [r['book_id'], `Book ${r['id']}`]);
    const across = (join: string): string => `select x.id, r.text from book x ${join}`;
    for (const join of [
      `cross join ${reviews()} r`,
      `, ${reviews()} r`,
      `join ${reviews()} r on x.title = r.text`,
      `join ${reviews()} r on x.id = r.book_id and x.pages > 100`,
      `join ${reviews()} r on x.id::text = r.book_id::text`,
      `natural join ${reviews()} r`,
      `where exists (select 1 from ${reviews()} r where r.text = x.title)`,
    ])
      t.match(await world.osql('user:ann', across(join)), { status: 400, code: /^E051[24]$/ }, join);
    const walked = `select r.text from ${reviews()} r join ${authors("('1')")} a on a.id = r.book_id`;
    t.match(await world.osql('user:ann', walked), { status: 400, code: 'E0511' }, 'no walk');
  },
  'osql.3.2': answeredAndRefused(
    'user:ann',
    `select text from ${reviews()}`,
    ['nope', 'book', 'REVIEWS', 'osl.facets.nope', ''].map((name) => `select text from ${reviews(5, name)}`),
    400,
    'E0241',
  ),
  'osql.3.4': async (t, world) => {
    for (const topK of ['21', '0', '-1', "'5'", '1.5', 'null', '9999999999999999999', '(select 5)']) {
      const call = `RETRIEVE(facet => 'reviews', query => 'x', top_k => ${topK})`;
      t.match(await world.osql('user:ann', `select text from ${call}`), { status: 400, code: 'E0511' }, topK);
    }
    for (const value of [21, 0, 'x', null]) {
      const osql = "select text from RETRIEVE(facet => 'reviews', query => 'x', top_k => $1)";
      const heard = await world.osql('user:ann', osql, { parameters: [value] });
      t.match(heard, { status: 400, code: 'E0511' }, `a parameter ${value}`);
    }
    await refusedEverywhere(t, world, 'user:ann', `select text from ${reviews(21)}`, 400, 'E0511');
    t.equal((await world.osql('user:ann', `select text from ${reviews(20)}`)).rows.length, 12);
  },
  'osql.3.6': async (t, world) => {
    const served = async (who: string) =>
      (await world.osql(who, `select reviewer, cite from ${reviews(1)}`)).rows.map((r) => [
        r['reviewer'],
        at(r, 'cite', 'version'),
      ]);
    t.same(await served('user:ann'), [['[redacted]', 'masked']]);
    t.same(await served('user:ada'), [['Ira Critic', 'raw']]);
    const letters = `select text, member from ${LETTERS}`;
    t.same((await world.osql('user:key', letters)).rows, [
      { text: 'A letter on the roof.', member: "m-1'; --" },
    ]);
    // There is no version without the codes, so nobody else has any of it.
    for (const who of ['user:ann', 'user:ada']) world.withheld(t, await world.osql(who, letters), /roof|m-1/);
  },
  'osql.3.8': async (t, world) => {
    const few = await world.osql('user:few', `select text from ${reviews()}`);
    t.same([few.status, few.rows], [200, []]);
    world.withheld(t, few, /A review/);
    t.equal((await world.osql('user:ann', `select text from ${reviews()}`)).rows.length, 5);
    for (const who of ['user:few', 'user:nil'])
      for (const told of await world.everywhere(who, `select text, cite from ${reviews()}`, 'withheld'))
        t.same([told.code, told.rows], ['', []], `${told.surface}: ${who}`);
    // Neither has one who has no grant at all.
    const nil = await world.osql('user:nil', `select text, score, cite from ${reviews()} where score > 1`);
    t.same([nil.status, nil.rows], [200, []]);
    const ranked = await world.osql('user:nil', `select similarity(text) from ${reviews()} order by 1`);
    t.same([ranked.status, ranked.rows], [200, []]);
    const undeclared = "select text from RETRIEVE(facet => 'nope', query => 'x', top_k => 1)";
    t.match(await world.osql('user:nil', undeclared), { status: 400, code: 'E0241' });
    for (const beyond of [
      'select 1',
      'select id from book',
      `select b.id from book b join ${reviews()} r on b.id = r.book_id`,
      `select text from ${reviews()} union all select title from book`,
      `select nothing from ${reviews()}`,
    ]) {
      t.match(await world.osql('user:nil', beyond), { status: 403, code: 'E2102' }, beyond);
    }
  },
  'osql.3.9': async (t, world) => {
    const { rows } = await world.osql('user:ann', `select * from ${reviews(20)}`);
    t.equal(rows.length, 12);
    for (const row of rows) {
      const n = Number(String(at(row, 'cite', 'doc_id')).slice(1));
      t.equal(row['book_id'], String(1 + (n % 6)), 'the key is that of the cited review');
    }
  },
  'osql.3.11': async (t, world) => {
    const capped = await world.osql('user:ann', `select id from ${authors("('1')", ', per_hop => 1')}`);
    t.same([capped.rows.length, capped.body['truncated']], [1, true]);
    const counted = await world.osql(
      'user:ann',
      `select count(*) as n from ${authors("('12')", ', per_hop => 1000')}`,
    );
    t.match(counted, { status: 400, code: 'E0519', rows: [] }, 'no figure of 1000 rows out of 1001');
    const most = await world.osql('user:ann', `select id from ${authors("('1')", ', per_hop => 100001')}`);
    t.match(most, { status: 400, code: 'E0511' }, 'the cap that is always there');
  },
  'osql.3.12': async (t, world) => {
    const { rows } = await world.osql('user:ann', `select id from ${authors("('1', '2', '3')")} order by id`);
    t.same(rows, [{ id: 1 }, { id: 2 }], 'either is reached twice');
  },
  'osql.3.13': async (t, world) => {
    const texts = new Set<string>();
    for (const keys of ["('1', '2', '3')", "('3', '2', '1')", "('2', '1', '3')"]) {
      texts.add(JSON.stringify((await world.osql('user:ann', `select * from ${authors(keys)}`)).rows));
    }
    t.equal(texts.size, 1);
  },
  'osql.3.14': async (t, world) => {
    const keys = "('1', '2', '3')";
    const back = keys.replace('3', '2');
    const walk = `select id from TRAVERSE(anchor => 'author', target => 'book', keys => ${back}) order by id`;
    t.same((await world.osql('user:ann', walk)).rows, [{ id: 1 }, { id: 2 }, { id: 3 }]);
    t.same((await world.osql('user:eu', walk)).rows, [{ id: 1 }, { id: 3 }]);
    const whole = walk.replace('select id', 'select *');
    world.withheld(t, await world.osql('user:eu', whole), /Book 2/);
    world.withheld(t, await world.osql('user:ann', whole), /Quux|hidden shelf/);
    t.match(await world.osql('user:few', walk), { status: 400, code: 'E0512' });
  },
  'osql.3.15': async (t, world) => {
    for (const from of JOINED) {
      const text = `select count(*) as n from ${from}`;
      t.match(await world.osql('user:ann', text), { status: 200, rows: [{ n: /^[1-9]/ }] }, text);
    }
    await sameEverywhere(t, world, 'user:ann', `select count(*) as n from ${JOINED[3]}`);
    for (const from of UNJOINED) {
      const text = `select count(*) as n from ${from}`;
      t.equal((await world.osql('user:ann', text)).status, 400, text);
      await refusedEverywhere(t, world, 'user:ann', text, 400, 'E0514');
    }
  },
  'osql.3.16': async (t, world) => {
    const joined = (on: string): string =>
      `select b.id, evidence from book b join wrote w on ${on} where b.id in (1)`;
    t.match(await world.osql('user:ann', joined('w.book = b.id')), { status: 200, rows: [{ id: 1 }] });
    for (const on of ['w.book = b.pages', 'w.book = b.id and w.author > 0']) {
      t.match(await world.osql('user:ann', joined(on)), { status: 400, code: 'E0514' }, on);
    }
    const byTitle = `select b.id from book b join ${reviews()} r on b.title = r.lang`;
    t.match(await world.osql('user:ann', byTitle), { status: 400, code: 'E0514' });
  },
  'osql.3.17': async (t, world) => {
    const joined = (field: string): string =>
      `select b.id from book b join ${reviews()} r on b.id = r.${field}`;
    t.match(await world.osql('user:ann', joined('book_id')), { status: 200, rows: [{}] });
    for (const field of ['reviewer', 'score', 'text', 'lang'])
      t.match(await world.osql('user:ann', joined(field)), { status: 400, code: 'E0514' }, field);
  },
  'osql.3.18': async (t, world) => {
    const joined = (on: string, right = 'book b'): string => `select a.id from book a join ${right} on ${on}`;
    t.match(await world.osql('user:ann', joined('a.id = b.id')), { status: 200, rows: [{}] });
    for (const on of [
      'a.title = b.title',
      'a.id > b.id',
      'a.pages = b.pages',
      'true',
      'a.id = b.id + 0',
      'a.id = b.id and a.pages > 100',
      'a.id = b.id and a.title = b.title',
      'a.id is not distinct from b.id',
      'a.id = b.id or a.pages = b.pages',
      '(a.id, a.title) = (b.id, b.title)',
    ]) {
      t.match(await world.osql('user:ann', joined(on)), { status: 400, code: 'E0514' }, on);
    }
    for (const right of ['(select pages from book) b', '(select max(pages) as pages from book) b']) {
      const on = 'a.pages = b.pages';
      t.match(await world.osql('user:ann', joined(on, right)), { status: 400, code: 'E0514' }, right);
    }
    const withTable = `with b as (select title from book) ${joined('a.title = b.title', 'b')}`;
    await refusedEverywhere(t, world, 'user:ann', withTable, 400, 'E0514');
    for (const kind of ['left', 'right', 'full'])
      t.match(
        await world.osql('user:ann', `select a.id from book a ${kind} join book b on a.title = b.title`),
        { status: 400, code: 'E0514' },
        kind,
      );
  },
  'osql.3.19': async (t, world) => {
    for (const call of ["similarity(text, 'whales')", "complete(text, 'Title of {text}')"]) {
      const { rows } = await world.osql('user:ada', `select ${call} as s from ${reviews()}`);
      t.equal(rows.length, 5, 'the passage, and a text');
    }
    world.sentToModel();
    const title = '(select title from book limit 1)';
    for (const call of [
      `similarity(text, ${title})`,
      'similarity(text, lang)',
      `similarity(text, (select max(text) from ${reviews()}))`,
      'classify(text, array(select title from book))',
      'classify(text, array[lang])',
      'summarize((select text from book))',
      `summarize(${title})`,
      `summarize(text, ${title})`,
      `score(text, ${title})`,
      'generate(text, lang)',
      `generate(text, (select max(text) from ${reviews()}))`,
      `complete(text, ${title})`,
      `extract(text, ${title})`,
      'complete(text, array(select title from book))',
    ]) {
      const osql = `select ${call} from ${reviews()}`;
      t.match(await world.osql('user:ada', osql), { status: 400, code: 'E0511' }, call);
    }
    for (const call of [
      'similarity(r.text, b.title)',
      'similarity(b.title, r.text)',
      'generate(r.text, b.title)',
    ]) {
      const osql = `select ${call} from book b join ${reviews()} r on b.id = r.book_id`;
      t.match(await world.osql('user:ada', osql), { status: 400, code: 'E0511' }, call);
    }
    t.same(world.sentToModel(), []);
  },
  'osql.3.encoder': async (t, world) => {
    const { rows } = await world.osql(
      'user:ann',
      `select similarity(text) as a, classify(text, ARRAY['whales', 'stars']) as b, tag(text, ARRAY['whales', 'stars'], threshold => -1) as c,
         rank(text) as d, dedup(text) as e, outlier(text) as f, cluster(text, k => 2) as g from ${reviews()}`,
    );
    t.equal(rows.length, 5);
    t.same(Object.keys(rows[0] ?? {}), ['a', 'b', 'c', 'd', 'e', 'f', 'g']);
    t.same(rows.map((r) => Number(r['d'])).sort(), [1, 2, 3, 4, 5], 'RANK gives places');
    for (const operator of ['SIMILARITY', 'CLASSIFY', 'TAG', 'RANK', 'DEDUP', 'OUTLIER', 'CLUSTER']) {
      const bare = await world.osql('user:ann', `select ${operator}(text) as a from ${reviews()}`);
      t.same([bare.status, bare.rows.length], [200, 5], `${operator}(text)`);
    }
    for (const call of [
      'classify(text, 5)',
      "tag(text, threshold => 'x')",
      'rank(text, lang, score)',
      'cluster(text, k => 0)',
    ])
      t.match(
        await world.osql('user:ann', `select ${call} from ${reviews()}`),
        { status: 400, code: 'E0511' },
        call,
      );
  },
  'osql.3.decoder': async (t, world) => {
    const calls = [
      `extract(text, '{"type": "object", "properties": {"a": {"type": "string"}}}')`,
      'summarize(text)',
      "score(text, 'useful')",
      "generate(text, 'a title')",
      "complete(text, 'Title of {text}')",
    ];
    for (const call of calls) {
      const osql = `select ${call} as a from ${reviews(2)}`;
      t.equal((await world.osql('user:ada', osql)).rows.length, 2, call);
      t.ok(world.sentToModel().every((sent) => /A review of whales/.test(sent)));
    }
    await sameEverywhere(t, world, 'user:ada', `select summarize(text) from ${reviews(1)}`);
    const summary = await world.osql('user:ada', `select summarize(text) as s from ${reviews(1)}`);
    t.same(summary.rows, [{ s: 'made' }]);
    const plain = await world.plain();
    const bare = [
      'extract(text)',
      'score(text)',
      'generate(text)',
      'complete(text)',
      'score(text, nothing => 1)',
    ];
    for (const call of [...calls, ...bare]) {
      const osql = `select ${call} from ${reviews()}`;
      t.match(await plain.post('user:ada', '/osl/query', { osql }), { status: 503, code: 'E0521' }, call);
    }
    const osql = `select summarize(text) from ${reviews()}`;
    t.match(await plain.mcp('user:ada', 'semantic_query', { osql }), { status: 503, code: 'E0521' });
    const encoded = await plain.post('user:ada', '/osl/query', {
      osql: `select similarity(text) from ${reviews()}`,
    });
    t.equal(encoded.rows.length, 5, 'an encoder needs none');
  },
  'passage.text': async (t, world) => {
    const { rows } = await world.osql('user:ann', `select text from ${reviews(1)}`);
    t.match(rows, [{ text: /^A review of whales, the number \d+\.$/ }]);
    world.withheld(t, await world.osql('user:few', `select text from ${reviews(1)}`), /A review/);
  },
  'passage.score': async (t, world) => {
    const scores = (await world.osql('user:ann', `select score from ${reviews()}`)).rows.map(
      (r) => r['score'],
    );
    t.ok(scores.every((s) => typeof s === 'number'));
    t.same(
      scores,
      [...scores].sort((a, b) => Number(b) - Number(a)),
    );
  },
  'passage.entity_key': async (t, world) => {
    const joined = `select b.id, r.book_id from book b join ${reviews()} r on b.id = r.book_id`;
    for (const accept of ['application/json', 'application/x-ndjson']) {
      const reply = await world.rest.ask('user:ann', { osql: joined }, { headers: { accept } });
      const pairs = [...reply.text.matchAll(/"id":(\d+),"book_id":"(\d+)"/g)].map(([, id, key]) => [id, key]);
      t.equal(pairs.length, 5, accept);
      t.ok(pairs.every(([id, key]) => id === key));
    }
    const { body } = await world.osql('user:ann', joined);
    t.match(body, { columns: [{ type: 'int4' }, { type: 'text' }] });
  },
  'passage.cite': async (t, world) => {
    const { rows } = await world.osql('user:ann', `select cite from ${reviews(1)}`);
    t.match(rows, [{ cite: { source: 'db', doc_id: /^r\d+$/, chunk_id: /^r\d+#\d+$/ } }]);
  },
  'passage.redacted_fields': async (t, world) => {
    const told = async (who: string) =>
      (await world.osql(who, `select redacted_fields from ${reviews(1)}`)).rows;
    t.same(await told('user:ann'), [{ redacted_fields: ['reviewer'] }]);
    const passage = await world.osql('user:ann', `select text, reviewer, redacted_fields from ${reviews(1)}`);
    t.match(passage.rows, [{ reviewer: '[redacted]', redacted_fields: ['reviewer'] }]);
    world.withheld(t, passage, /Critic/);
    t.same(await told('user:ada'), [{ redacted_fields: [] }]);
  },
  'sample.6': async (t, world) => {
    const lists = async (who: string, kind: string, name: string) => {
      const { body } = await world.post(who, '/osl/sample', { kind, name });
      return [body['redacted_columns'], body['redacted_fields']];
    };
    t.same(await lists('user:ann', 'table', 'book'), [['book.owner'], []]);
    t.same(await lists('user:ann', 'facet', 'reviews'), [[], ['reviewer']]);
    t.same(await lists('user:ada', 'table', 'book'), [[], []], 'to whom nothing is redacted');
    t.same(await lists('user:ada', 'facet', 'reviews'), [[], []]);
    // Columns, both lists and the values of an answer say the same of it.
    for (const [osql, columns, fields] of REDACTED) {
      const { body, rows } = await world.osql('user:ann', osql);
      t.same([body['redacted_columns'], body['redacted_fields']], [columns, fields], osql);
      for (const column of listAt(body, 'columns')) {
        const name = String(at(column, 'name'));
        const shown = rows.some((row) => /\[redacted\]/i.test(JSON.stringify(row[name])));
        t.equal(at(column, 'redacted'), shown, `${name} of ${osql}`);
      }
      const clear = await world.osql('user:ada', osql);
      t.match(clear.body, { redacted_columns: [], redacted_fields: [] }, osql);
      t.notMatch(clear.text, /\[redacted\]|"redacted":true/);
    }
    const none = await world.post('user:nil', '/osl/sample', { kind: 'table', name: 'book' });
    t.match(none, { status: 403, code: 'E2102' });
    t.notOk('redacted_columns' in none.body, 'a refusal lists nothing');
  },
  'errors.E0515': async (t, world) => {
    const joined = `select m.since from member m join ${LETTERS} r on m.code = r.member`;
    await sameEverywhere(t, world, 'user:key', joined);
    for (const text of [
      joined,
      `select since from member where code in (select member from ${LETTERS})`,
      `select since from member m where exists (select 1 from ${LETTERS} r where r.member = m.code)`,
    ])
      await refusedEverywhere(t, world, 'user:ann', text, 403, 'E0515');
  },
} satisfies Readonly<Record<string, Check>>;
