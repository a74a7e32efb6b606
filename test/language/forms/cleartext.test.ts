import { isDeepStrictEqual } from 'node:util';
import { columnLineage, compile } from 'osl-compiler';
import t from 'tap';
import { accessOfChain } from '../../../src/service/lineage/description.js';
import { facetText, manifestText, policyText } from '../../support/model-text.js';
import { call, connected } from '../../surfaces/mcp/support.js';
import { at, type Forms, startForms } from './fixture.js';

/**
 * Fields of passages as keys, and what is told of those that are redacted. Notes are about articles; `author` has a
 * label, `contact` and `byline` have none but hold what the version `masked` replaces, in each passage and in some;
 * `lang` has neither. `memo` has a key that few may read.
 */
const MANIFEST = manifestText(
  'press',
  {
    'press.article': 'id int4, title text not null',
    'press.person': 'id text, name text person, email text pii',
    'press.language': 'code text, label text',
    'press.account': 'code text secret, title text',
    'press.note': `id text, article_id int4 not null, lang text not null, author text person, age int4 person,
    contact text, byline text, desk text internal, ref text locked, body text not null`,
    'press.memo': 'id text, account text secret, body text',
  },
  `entities:
  article: { source: db.press.article, primary_key: [id], columns: [id, title], legs: [notes] }
  person: { source: db.press.person, primary_key: [id], entity_key_columns: [id, name, email], columns: [id, name, email] }
  language: { source: db.press.language, primary_key: [code], columns: [code, label] }
  account: { source: db.press.account, primary_key: [code], columns: [code, title] }
facets:
${facetText('notes', 'press.note', 'article', 'article_id')}
    metadata: [lang, author, age, contact, byline, desk, ref]
    scalar_indexed: [article_id, lang, author, contact, byline, desk]
    versions:
      raw: {}
      masked: { redact: [pii, person], detectors: [email] }
    retrieval: { max_top_k: 10 }
${facetText('memos', 'press.memo', 'account', 'account')}
    versions: { raw: {} }
    retrieval: { max_top_k: 10 }
`,
);

/**
 * Everybody reads persons in the clear, unless told. `user:ann` the masked version · `user:ada` the raw one ·
 * `user:two` masked, and raw in German only: the masked one · `user:col` masked, of the fields only two · `user:acc` keys of
 * accounts, not those of memos · `user:mem` the other way round · `user:non` nothing but persons
 */
const POLICY = policyText(
  'press',
  {
    'user:ann': 'people, masked',
    'user:ada': 'people, raw',
    'user:two': 'people, masked, german',
    'user:col': 'people, columns',
    'user:acc': 'accounts',
    'user:mem': 'memos',
    'user:non': 'people',
  },
  `roles:
  people:
    grants:
      - { on: article, columns: "*" }
      - { on: person, columns: "*", unmask: [pii, person] }
      - { on: language, columns: "*" }
  masked: { grants: [{ on: notes, columns: "*" }] }
  raw: { grants: [{ on: notes, columns: "*", unmask: [pii, person, internal] }] }
  german: { grants: [{ on: notes, columns: "*", unmask: [pii, person, internal], rows: "lang = 'de'" }] }
  columns: { grants: [{ on: notes, columns: [article_id, lang, contact] }] }
  accounts:
    grants:
      - { on: account, columns: "*", unmask: [secret] }
      - { on: memos, columns: "*" }
  memos:
    grants:
      - { on: account, columns: "*" }
      - { on: memos, columns: "*", unmask: [secret] }
masks: { pii: redact, person: hash, secret: hash, internal: redact, locked: deny }
limits: { query: 100000, sample: 100000, schema: 100000, catalog: 100000 }
`,
);

const SCRIPT = `
CREATE SCHEMA press;
CREATE TABLE press.article (id int4 PRIMARY KEY, title text NOT NULL);
CREATE TABLE press.person (id text PRIMARY KEY, name text, email text);
CREATE TABLE press.language (code text PRIMARY KEY, label text);
CREATE TABLE press.account (code text PRIMARY KEY, title text);
CREATE TABLE press.note (id text PRIMARY KEY, article_id int4 NOT NULL, lang text NOT NULL, author text, age int4,
  contact text, byline text, desk text, ref text, body text NOT NULL);
CREATE TABLE press.memo (id text PRIMARY KEY, account text, body text);
INSERT INTO press.article VALUES (7, 'Mills'), (8, 'Harbours');
INSERT INTO press.person VALUES ('p1', 'Zora Quux', 'zora@press.example'), ('p2', 'Balthasar', 'balt@press.example');
INSERT INTO press.language VALUES ('en', 'English'), ('de', 'German');
INSERT INTO press.account VALUES ('acc-1', 'First');
INSERT INTO press.note VALUES
  ('n1', 7, 'en', 'Zora Quux', 41, 'zora@press.example', 'our own', 'desk one', 'ref-1', 'A report on the windmill.'),
  ('n2', 8, 'de', 'Balthasar', NULL, 'balt@press.example', 'by balt@press.example', 'desk two', 'ref-2', 'A report on the harbour, by balt@press.example.');
INSERT INTO press.memo VALUES ('m1', 'acc-1', 'A report on the budget.');
`;

t.setTimeout(600_000);
const forms: Forms = await startForms({
  manifest: MANIFEST,
  policy: POLICY,
  script: SCRIPT,
  schema: 'press',
});
t.teardown(() => forms.close());
const { ask } = forms;

function notes(query = 'report'): string {
  return `RETRIEVE(facet => 'notes', query => '${query}', top_k => 5)`;
}

const MEMOS = "RETRIEVE(facet => 'memos', query => 'report', top_k => 5)";

/** One question by every surface: the codes in order, empty where it is answered. */
async function codes(subject: string, osql: string): Promise<Readonly<Record<string, string>>> {
  const wire = await forms.wire(subject);
  const mcp = await connected({ port: forms.fronts.httpPort, test: forms.test }, subject, 'auto');
  const codeOf = (outcome: Awaited<ReturnType<typeof wire.simple>>['outcome']): string =>
    outcome.kind === 'refused' ? outcome.code : '';
  const tool = async (name: string): Promise<string> =>
    String(at((await call(mcp, name, { osql })).content, 'problem', 'code') ?? '');
  try {
    return {
      rest: (await ask(subject, osql)).code,
      explain: (await ask(subject, osql, { explain: true })).code,
      simple: codeOf((await wire.simple(osql)).outcome),
      extended: codeOf((await wire.extended(osql)).outcome),
      query: await tool('semantic_query'),
      plan: await tool('semantic_explain'),
    };
  } finally {
    await mcp.close();
  }
}

const everywhere = (code: string) => {
  return { rest: code, explain: code, simple: code, extended: code, query: code, plan: code };
};

/** A join of persons with notes on `field`, in each way to write it. */
const JOINS: readonly ((key: string, field: string) => string)[] = [
  (key, field) => `select p.id, r.text from person p join ${notes()} r on p.${key} = r.${field}`,
  (key, field) => `select p.id, r.text from ${notes()} r left join person p on r.${field} = p.${key}`,
  (key, field) => `select p.id, r.text from person p, ${notes()} r where p.${key} = r.${field}`,
  (key, field) => `select id from person where ${key} in (select r.${field} from ${notes()} r)`,
  (key, field) =>
    `select p.id from person p where exists (select 1 from ${notes()} r where r.${field} = p.${key})`,
  (key, field) =>
    `with d as (select r.${field} as k from ${notes()} r) select p.id from person p join d on p.${key} = d.k`,
];

t.test(
  'a field that the caller’s version redacts is not a key, whatever the join and the surface',
  async (t) => {
    for (const who of ['user:ann', 'user:two']) {
      const filter = `select p.id from person p join ${notes()} r on p.id = r.lang where r.author = p.name`;
      for (const osql of [...JOINS.map((join) => join('name', 'author')), filter]) {
        t.match(await ask(who, osql), { status: 403, code: 'E0515', rows: [] }, `${who}: ${osql}`);
        t.match(await ask(who, osql, { explain: true }), { status: 403, code: 'E0515' }, `explain: ${osql}`);
      }
    }
    t.same(await codes('user:two', JOINS[0]?.('name', 'author') ?? ''), everywhere('E0515'));
    t.match(
      await ask('user:ann', JOINS[0]?.('name', 'desk') ?? ''),
      { code: 'E0515' },
      'nor one that policy masks',
    );
    for (const join of JOINS) {
      const answer = await ask('user:ada', join('name', 'author'));
      t.match(answer, { status: 200, code: '' }, answer.message);
      t.same(answer.rows.map((r) => r['id']).sort(), ['p1', 'p2'], 'who is due the raw version joins on it');
    }
  },
);

t.test('a field that the version redacts is not a key between two RETRIEVEs either', async (t) => {
  const join = (field: string): string =>
    `select a.lang from ${notes()} a join ${notes()} b on a.${field} = b.${field}`;
  for (const field of ['author', 'contact']) {
    t.match(await ask('user:ann', join(field)), { status: 403, code: 'E0515', rows: [] }, field);
    t.match(await ask('user:ada', join(field)), { status: 200, code: '' }, field);
  }
});

t.test('a field without a label is a key where nothing is redacted in it', async (t) => {
  for (const join of JOINS) {
    const osql = join('email', 'contact');
    t.match(await ask('user:ann', osql), { status: 403, code: 'E0515', rows: [] }, osql);
    t.equal((await ask('user:ada', osql)).rows.length, 2);
  }
  const by = (query: string) =>
    ask('user:ann', `select p.id from person p join ${notes(query)} r on p.email = r.byline`);
  t.match(await by('windmill'), { status: 200, rows: [] }, 'none of these passages has a redacted one');
  t.match(await by('harbour'), { status: 403, code: 'E0515' });
  const labels = `select l.label, r.lang from language l join ${notes()} r on l.code = r.lang order by 1`;
  t.match(await ask('user:ann', labels), { rows: [{ label: 'English' }, { label: 'German' }] });
  // No data is read for an explanation: it says what will be looked at.
  const seen = await codes('user:ann', JOINS[0]?.('email', 'contact') ?? '');
  t.same(seen, { ...everywhere('E0515'), explain: '', plan: '' });
  const { json } = await ask('user:ann', JOINS[0]?.('email', 'contact') ?? '', { explain: true });
  t.match(JSON.stringify(json), '"checked_keys":["contact"]');
});

t.test(
  'a key that is masked on either side, or hashed, is refused; without a grant there are no passages',
  async (t) => {
    const join = `select a.title from account a join ${MEMOS} r on a.code = r.account`;
    for (const who of ['user:acc', 'user:mem']) t.same(await codes(who, join), everywhere('E0515'), who);
    const none = await ask('user:non', JOINS[0]?.('name', 'author') ?? '');
    t.match(none, { status: 200, rows: [] });
  },
);

t.test('schema and columns tell of a field that it is, or may be, redacted', async (t) => {
  const schema = async (who: string): Promise<unknown> => {
    const url = `http://127.0.0.1:${forms.fronts.httpPort}/osl/schema?governed=true`;
    const reply = await fetch(url, { headers: { authorization: `Bearer ${await forms.test.token(who)}` } });
    const facets = at(await reply.json(), 'facets') as readonly {
      name: string;
      columns: readonly unknown[];
    }[];
    const columns = facets.find((f) => f.name === 'notes')?.columns ?? [];
    return Object.fromEntries(columns.map((c) => [at(c, 'name'), at(c, 'masked')]));
  };
  const redacted = async (who: string): Promise<unknown> => {
    const { json } = await ask(
      who,
      `select article_id, lang, author, age, contact, byline, desk from ${notes()}`,
    );
    const columns = at(json, 'columns') as readonly unknown[];
    return Object.fromEntries(columns.map((c) => [at(c, 'name'), at(c, 'redacted')]));
  };
  const some = { lang: 'some', contact: 'some', byline: 'some' };
  const all = { author: 'all', age: 'all' };
  t.same(await schema('user:ann'), { article_id: 'none', ...some, ...all, desk: 'all' });
  t.same(await schema('user:two'), { article_id: 'none', ...some, ...all, desk: 'some' });
  t.same(await schema('user:col'), { article_id: 'none', lang: 'some', contact: 'some' });
  const clear = ['article_id', 'lang', 'author', 'age', 'contact', 'byline', 'desk'];
  t.same(await schema('user:ada'), Object.fromEntries(clear.map((name) => [name, 'none'])));
  const flags = (...names: readonly string[]) => Object.fromEntries(clear.map((n) => [n, names.includes(n)]));
  t.same(await redacted('user:ann'), flags('author', 'age', 'contact', 'byline', 'desk'));
  t.same(await redacted('user:two'), flags('author', 'age', 'contact', 'byline', 'desk'));
  t.same(await redacted('user:ada'), flags());
});

/**
 * Columns of one question, each as the field of a passage that it shows. What of them is redacted must be told alike by
 * the values themselves (beside those of `user:ada`, who reads all in the clear), by `columns`, by `redacted_fields` and
 * by lineage.
 */
const SHOWN: readonly (readonly [columns: readonly string[], question: string])[] = [
  [['text'], `select text from ${notes()}`],
  [['lang', 'contact'], `select lang, contact from ${notes()}`],
  [
    ['text', 'lang', 'author', 'age', 'contact', 'byline', 'desk'],
    `select text, lang, author, age, contact, byline, desk from ${notes()}`,
  ],
  [['byline'], `select byline from ${notes()} where article_id = 7`],
  [['byline', 'text'], `select d.byline, d.text from (select * from ${notes()} where article_id = 8) d`],
  [['lang', 'text'], `select r.lang, r.text from article a join ${notes()} r on a.id = r.article_id`],
  [['text', 'desk'], `with d as (select text, desk from ${notes('harbour')}) select text, desk from d`],
  [['lang'], `select lang from ${notes()} union all select lang from ${notes('harbour')}`],
];

t.test('values, columns, fields and lineage tell alike what of a passage is redacted', async (t) => {
  const answerOf = async (who: string, question: string, names: readonly string[]) => {
    const { json, rows } = await ask(who, question);
    const values = rows.map((row) => Object.values(row).map(String)).sort();
    const columns = at(json, 'columns') as readonly { readonly redacted: boolean }[];
    const told = new Map(columns.map(({ redacted }, i) => [names[i] ?? '', redacted]));
    return { values, told, fields: at(json, 'redacted_fields') as readonly string[] };
  };
  const { manifest, snapshot } = forms.test.service.model();
  if (snapshot === null) throw new Error('there is a policy');
  let tried = 0;
  for (const [names, question] of SHOWN) {
    const clear = await answerOf('user:ada', question, names);
    t.notOk([...clear.told.values()].includes(true), `in the clear: ${question}`);
    t.same(clear.fields, []);
    for (const who of ['user:ann', 'user:two']) {
      const { values, told, fields } = await answerOf(who, question, names);
      const isChanged = (i: number): boolean =>
        values.some((row) => /\[redacted\]|^null$/.test(row[i] ?? '')) &&
        !isDeepStrictEqual(values.map((row) => row[i]).sort(), clear.values.map((row) => row[i]).sort());
      const expected = new Map(names.map((name, i) => [name, isChanged(i)]));
      t.strictSame(told, expected, `columns: ${who}: ${question}`);
      const shown = names.filter((name) => name !== 'text' && expected.get(name) === true).sort();
      t.strictSame(fields, shown, `fields: ${who}: ${question}`);
      const plan = compile(question, manifest.catalog, accessOfChain([who], snapshot, manifest));
      const { outputs } = columnLineage(plan);
      for (const [i, name] of names.entries()) {
        const masking = outputs[i]?.inputs.some(({ transformations }) =>
          transformations.some((how) => how.type === 'DIRECT' && how.masking),
        );
        if (expected.get(name) === true) t.equal(masking, true, `lineage of ${name}: ${who}: ${question}`);
        tried += 1;
      }
    }
    const { outputs } = columnLineage(
      compile(question, manifest.catalog, accessOfChain(['user:ada'], snapshot, manifest)),
    );
    t.notMatch(JSON.stringify(outputs), '"masking":true', 'lineage in the clear');
  }
  t.ok(tried >= 30, `${tried} columns`);
});

t.test('evidence says of each passage whether its text is redacted, and of no field', async (t) => {
  const joint = "select id, evidence from article where id in ('7', '8') order by id";
  for (const [who, second] of [
    ['user:ann', true],
    ['user:ada', false],
  ] as const) {
    const { json, rows } = await ask(who, joint);
    t.match(at(json, 'columns'), [{ redacted: false }, { redacted: second }], who);
    t.same(at(json, 'redacted_fields'), [], who);
    const told = rows.flatMap(
      (r) => r['evidence'] as readonly { readonly redacted: boolean; text: string }[],
    );
    t.same(
      told.map((e) => e.redacted),
      [false, second],
      who,
    );
    t.same(
      told.map((e) => e.text.includes('[redacted]')),
      [false, second],
      who,
    );
    t.notMatch(JSON.stringify(told), 'redacted_fields', who);
  }
});

t.test('redacted fields are those of the passage, and of the answer those that it shows', async (t) => {
  const passages = async (who: string, columns: string) => {
    const { json, rows } = await ask(who, `select ${columns} from ${notes()} order by article_id`);
    return { told: at(json, 'redacted_fields'), lists: rows.map((r) => r['redacted_fields']) };
  };
  const own = [
    ['author', 'age', 'contact', 'desk'],
    ['author', 'age', 'contact', 'byline', 'desk'],
  ];
  t.same(await passages('user:ann', '*'), {
    told: ['age', 'author', 'byline', 'contact', 'desk'],
    lists: own,
  });
  t.same((await passages('user:ann', 'text, lang, upper(author) as a')).told, ['author']);
  t.same((await passages('user:ann', 'text, score')).told, []);
  t.same(
    (await passages('user:col', '*')).lists,
    [['contact'], ['contact']],
    'of those that the caller knows of',
  );
  t.same(await passages('user:ada', '*'), { told: [], lists: [[], []] });
});

const FIELDS = ['article_id', 'lang', 'author', 'age', 'contact', 'byline', 'desk', 'ref'];

t.test('a field that no grant covers is none of the passages', async (t) => {
  const names = async (who: string) =>
    Object.keys((await ask(who, `select * from ${notes()}`)).rows[0] ?? {});
  t.same((await names('user:ann')).slice(-2), ['desk', 'ref']);
  t.same(
    (await names('user:col')).filter((name) => FIELDS.includes(name)),
    ['article_id', 'lang', 'contact'],
  );
  for (const text of [
    `select author from ${notes()}`,
    `select text from ${notes()} where author = 'x'`,
    `select p.name from person p join ${notes()} r on p.id = r.author`,
  ])
    t.match(await ask('user:col', text), { status: 400, code: 'E0512' }, text);
});

t.test(
  'without a grant on the facet a field may be named, for there are no passages, and none is listed',
  async (t) => {
    const named = await ask('user:non', `select author from ${notes()}`);
    t.same([named.status, named.rows], [200, []]);
    t.match(await ask('user:non', `select nothing from ${notes()}`), { status: 400, code: 'E0512' });
    const { raw } = await ask('user:non', `select * from ${notes()}`);
    for (const field of ['lang', 'author', 'contact', 'desk', 'ref']) t.notMatch(String(raw), `"${field}"`);
  },
);

t.test('a field that is denied is NULL in passages, and no list names it', async (t) => {
  const { status, rows, raw } = await ask('user:ann', `select ref, redacted_fields from ${notes()}`);
  t.same([status, rows.map((r) => r['ref'])], [200, [null, null]]);
  t.notOk(
    String(raw)
      .replace(/"name":"ref"|"ref":null/g, '')
      .includes('"ref"'),
  );
});

t.test('a cell of a sample that is redacted holds the literal, and the lists name what came', async (t) => {
  const sample = async (who: string, limit: number): Promise<unknown> => {
    const reply = await fetch(`http://127.0.0.1:${forms.fronts.httpPort}/osl/sample`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${await forms.test.token(who)}` },
      body: JSON.stringify({ kind: 'facet', name: 'notes', limit }),
    });
    return reply.json();
  };
  const X = '[redacted]';
  const first = { article_id: '7', lang: 'en', author: X, age: X, contact: X, byline: 'our own', desk: X };
  const second = { article_id: '8', lang: 'de', author: X, age: X, contact: X, byline: X, desk: X };
  const fields = ['author', 'age', 'contact', 'desk'];
  for (const who of ['user:ann', 'user:two']) {
    const both = who === 'user:ann' ? {} : { desk: String };
    t.match(await sample(who, 2), {
      rows: [
        { ...first, ...both },
        { ...second, ...both },
      ],
      redacted_columns: [],
    });
  }
  t.match(await sample('user:ann', 1), {
    rows: [{ ...first, redacted_fields: fields }],
    redacted_fields: [...fields].sort(),
  });
  t.match(await sample('user:col', 2), {
    rows: [{ contact: X, redacted_fields: ['contact'] }, { redacted_fields: ['contact'] }],
    redacted_fields: ['contact'],
  });
});

t.test('the key of a passage is a string in JSON, and keeps its type on the wire', async (t) => {
  const cross = `select x.id, r.article_id, r.article_id + 1 as next from article x
    join ${notes()} r on x.id = r.article_id order by 1`;
  const answer = await ask('user:ann', cross);
  t.same(answer.rows, [
    { id: 7, article_id: '7', next: 8 },
    { id: 8, article_id: '8', next: 9 },
  ]);
  t.same(answer.types, ['int4', 'text', 'int4']);
  const through = `with d as (select article_id as k from ${notes()}) select k, count(*) as n from d group by k order by k`;
  t.match(await ask('user:ann', through), {
    rows: [{ k: '7', n: '1' }, { k: '8' }],
    types: ['text', 'int8'],
  });
  const { json } = await ask('user:ann', cross, { explain: true });
  t.match(at(json, 'columns'), [{ type: 'int4' }, { type: 'text' }, { type: 'int4' }]);
  const wire = await forms.wire('user:ann');
  t.match(await wire.extended(cross), {
    types: ['23', '23', '23'],
    outcome: {
      rows: [
        ['7', '7', '8'],
        ['8', '8', '9'],
      ],
    },
  });
});

t.test('redacted columns are those of the answer; what else is masked is said beside', async (t) => {
  const who = 'user:mem';
  const told = async (osql: string, more = {}) => {
    const { json } = await ask(who, osql, more);
    return [at(json, 'redacted_columns'), at(json, 'redacted_conditions')];
  };
  const shown = 'select code as c, title from account';
  t.same(await told(shown), [['account.code'], undefined]);
  t.same(await told(shown, { explain: true }), [['account.code'], undefined]);
  const filtered = "select title from account where code = 'acc-1'";
  t.same(await told(filtered), [[], ['account.code']]);
  t.same(await told(filtered, { explain: true }), [[], ['account.code']]);
});
