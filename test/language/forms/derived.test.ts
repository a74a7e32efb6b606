import t from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { ARTICLES_MANIFEST, ARTICLES_POLICY, articleScript, NOTES, type Note, PEOPLE } from './articles.js';
import { type Answer, at, type Forms, startForms } from './fixture.js';

t.setTimeout(600_000);

const SUBJECTS = ['windmill', 'harbour', 'ledger', 'telescope', 'orchard', 'lantern'];
const MANIFEST = ARTICLES_MANIFEST.replace(
  '    legs: [notes]\n',
  `    legs: [notes]
    derived:
      subject: { facet: notes, operator: CLASSIFY, labels: [${SUBJECTS}], min_score: 0.05 }
      topics: { facet: notes, operator: TAG, labels: [${SUBJECTS}], threshold: 0.1 }
      never: { facet: notes, operator: CLASSIFY, labels: [zebra], min_score: 0.99 }
      named: { facet: notes, operator: CLASSIFY, labels: [${PEOPLE[0].name}, other], min_score: 0.1 }
`,
).concat('metrics: { articles: { entity: article, expression: count(*) } }\n');

function start(notes: readonly Note[] = NOTES): Promise<Forms> {
  const script = articleScript(notes);
  return startForms({ manifest: MANIFEST, policy: ARTICLES_POLICY, script, schema: 'press' });
}

const forms = await start();
t.teardown(() => forms.close());
const { ask } = forms;
const ALL = 'id in (1, 2, 3, 4, 5, 6, 7, 8, 9)';
const QUESTION = `select id, title, subject, topics, never, evidence from osl.entities.article where ${ALL} order by id`;

/** Computes the attributes of a document from the words in it. */
function subjectsOf(key: number, seen: (n: Note) => boolean = () => true): readonly string[] {
  return NOTES.filter((n) => n.article === key && seen(n)).flatMap((n) =>
    SUBJECTS.filter((s) => n.body.includes(s)),
  );
}

function supporting(row: Readonly<Record<string, unknown>>, name: string): readonly string[] {
  const evidence = (row['evidence'] ?? []) as readonly unknown[];
  return evidence
    .filter((e) => (at(e, 'supports') as readonly string[]).includes(name))
    .map((e) => String(at(e, 'cite', 'chunk_id')));
}

t.test('columns, derived attributes and the passages they rest on come in one call', async (t) => {
  const { status, rows, types, json, requestId } = await ask('user:ann', QUESTION);
  t.equal(status, 200);
  t.equal(at(json, 'form'), 'joint');
  t.same(types, ['int4', 'text', 'text', 'text[]', 'text', 'jsonb']);
  for (const row of rows) {
    const id = Number(row['id']);
    t.equal(row['never'], null, 'nothing is sure enough');
    if (id === 9) {
      t.match(row, { subject: null, topics: null, evidence: null }, 'an article without a note');
      continue;
    }
    t.ok(subjectsOf(id).includes(String(row['subject'])), `article ${id}: ${row['subject']}`);
    t.equal((row['topics'] as readonly string[])[0], row['subject']);
    const support = supporting(row, 'subject');
    t.ok(support.length > 0);
    t.equal(new Set(support.map((c) => c.split('#')[0])).size, 1, 'of one document');
    const document = NOTES.find((n) => n.id === support[0]?.split('#')[0]);
    t.ok(document?.body.includes(String(row['subject'])), 'which says so');
  }
  const records = await forms.test.records(requestId);
  t.match(records, [
    { kind: 'decision', form: 'joint', objects: ['osl.entities.article', 'osl.facets.notes'] },
    { kind: 'outcome' },
  ]);
  t.equal(records.length, 2, 'one entry');
  const client = await forms.wire('user:ann');
  const { outcome } = await client.simple(
    `select subject from osl.entities.article where ${ALL} order by id`,
  );
  t.same(
    outcome.kind === 'rows' && outcome.rows.map((r) => r[0]),
    rows.map((r) => r['subject']),
    'the same over the wire',
  );
});

t.test('without its passages an attribute is a column like another', async (t) => {
  const subjects = await ask('user:ann', `select id, subject from osl.entities.article where ${ALL}`);
  const some = String(subjects.rows[0]?.['subject']);
  const where = await ask(
    'user:ann',
    `select id from osl.entities.article where ${ALL} and subject = $1 order by id`,
    { parameters: [some] },
  );
  const expected = subjects.rows.filter((r) => r['subject'] === some).map((r) => r['id']);
  t.same(
    where.rows.map((r) => r['id']),
    expected.sort(),
  );
  const counted = await ask(
    'user:ann',
    `select subject, count(*) as n from osl.entities.article where ${ALL} group by subject order by 2 desc`,
  );
  t.equal(
    counted.rows.reduce((n, r) => n + Number(r['n']), 0),
    9,
  );
  const measured = await ask(
    'user:ann',
    `select subject, measure(articles) as n from osl.entities.article where ${ALL} group by subject order by 2 desc`,
  );
  t.equal(measured.status, 200, measured.message);
  const bySubject = (rows: readonly Readonly<Record<string, unknown>>[]): readonly string[] =>
    rows.map((r) => JSON.stringify(r)).sort();
  t.same(bySubject(measured.rows), bySubject(counted.rows), 'and metrics are grouped by it');
  const one = await ask('user:ann', 'select subject from osl.entities.article where id = $1', {
    parameters: [1],
  });
  t.same(one.rows, [{ subject: subjects.rows.find((r) => r['id'] === 1)?.['subject'] }]);
});

t.test('it takes a list of keys, is not in *, and does not exist without a grant', async (t) => {
  const refused: readonly (readonly [string, string, string])[] = [
    ['user:ann', 'select id, subject from osl.entities.article', 'E0511'],
    ['user:ann', "select id, subject from osl.entities.article where title = 'x'", 'E0511'],
    ['user:ann', "select id from osl.entities.article where subject = 'ledger'", 'E0511'],
    ['user:ann', 'select id from osl.entities.article order by topics', 'E0511'],
    ['user:non', 'select id, subject from osl.entities.article where id = 1', 'E0512'],
    ['user:ann', 'select id, subjekt from osl.entities.article where id = 1', 'E0512'],
    ['user:ann', "select id, subject from osl.entities.person where id = 'p1'", 'E0512'],
  ];
  for (const [who, query, code] of refused) t.equal((await ask(who, query)).code, code, `${who}: ${query}`);
  const hint = await ask('user:ann', 'select id, subject from osl.entities.article');
  t.match(hint.message, /`subject` without a list of keys/);
  t.notMatch((await ask('user:non', 'select subjec from osl.entities.article')).raw.toString(), /subject/);
  const star = await ask('user:ann', 'select * from osl.entities.article where id = 1');
  t.same(Object.keys(star.rows[0] ?? {}), ['id', 'title', 'region', 'views']);
});

t.test('each version has its own: what the masked text does not say is not derived from it', async (t) => {
  const named = `select id, named from osl.entities.article where ${ALL} and named is not null`;
  t.ok(
    (await ask('user:ada', named)).rows.some((r) => r['named'] === PEOPLE[0].name),
    'the raw text says it',
  );
  const masked = await ask('user:ann', named);
  t.notOk(masked.rows.some((r) => r['named'] === PEOPLE[0].name));
  t.same(
    (await ask('user:odd', QUESTION)).rows.map((r) => r['subject']),
    (await ask('user:ann', QUESTION)).rows.map((r) => r['subject']),
    'who may read one label more has that of the same version',
  );
});

t.test('a caller of some documents gets what these say', async (t) => {
  const { rows } = await ask('user:de', QUESTION);
  for (const row of rows) {
    const id = Number(row['id']);
    const said = subjectsOf(id, (n) => n.lang === 'de');
    if (said.length === 0) t.equal(row['subject'], null);
    else t.ok(said.includes(String(row['subject'])), `article ${id}: ${row['subject']} of ${said}`);
  }
  const all = await ask('user:ann', QUESTION);
  t.notSame(
    rows.map((r) => r['subject']),
    all.rows.map((r) => r['subject']),
  );
  const eu = await ask('user:eu', QUESTION);
  t.same(
    eu.rows.map((r) => r['id']),
    [1, 3, 5, 7, 9],
  );
});

t.test('hidden documents do not shift it', async (t) => {
  const HIDDEN: Readonly<Record<string, (n: Note) => boolean>> = {
    'user:eu': (n) => n.article % 2 === 0,
    'user:de': (n) => n.lang !== 'de',
  };
  const seen = async (on: Forms, who: string): Promise<string> => {
    const { rows, json } = await on.ask(who, QUESTION);
    return JSON.stringify([rows, at(json, 'truncated')]);
  };
  const twin = await start();
  t.teardown(() => twin.close());
  for (const [who, hidden] of Object.entries(HIDDEN)) {
    const changes: readonly (readonly [string, readonly Note[]])[] = [
      ['removed', NOTES.filter((n) => !hidden(n))],
      ['changed', NOTES.map((n) => (hidden(n) ? { ...n, body: 'orchard '.repeat(40) } : n))],
      [
        'added',
        [
          ...NOTES,
          ...NOTES.filter(hidden).map((n) => ({ ...n, id: `a${n.id}`, body: 'telescope '.repeat(9) })),
        ],
      ],
    ];
    for (const [name, notes] of changes) {
      const [insert = ''] = /INSERT INTO press\.note [\s\S]*?;\n/.exec(articleScript(notes)) ?? [];
      await twin.test.engine.system.script(generatedSql(`delete from press.note; ${insert}`));
      await twin.reindex();
      t.ok((await seen(twin, who)) === (await seen(forms, who)), `${who}: hidden documents ${name}`);
      t.ok((await seen(twin, 'user:ann')) !== (await seen(forms, 'user:ann')), 'who sees them notices');
    }
  }
});

t.test('a value that has lost a passage is not a value; the index brings it up to date', async (t) => {
  const twin = await start();
  t.teardown(() => twin.close());
  const { system } = twin.test.engine;
  const of = async (id: number): Promise<Answer['rows'][number]> => {
    const { rows } = await twin.ask(
      'user:ann',
      `select id, subject, evidence from osl.entities.article where id = ${id}`,
    );
    return rows[0] ?? {};
  };
  const before = await of(3);
  const [chunk = ''] = supporting(before, 'subject');
  const document = chunk.split('#')[0] ?? '';
  await system.query(sql`delete from osl_content.notes__masked where chunk_id = $1`, [chunk]);
  const [left] = await system.query(
    sql`select count(*) as n from osl_content.notes__masked__derived where chunk_id = $1`,
    [chunk],
  );
  t.equal(Number(left?.['n']), 0, 'what rests on a chunk goes with it');
  t.notOk(
    supporting(await of(3), 'subject').some((c) => c.startsWith(document)),
    'the others do not carry it',
  );
  await system.query(sql`update press.note set body = 'lantern lantern lantern' where article_id = 3`);
  await twin.reindex();
  t.match(await of(3), { subject: 'lantern' });
  await system.query(sql`delete from press.note where article_id = 3`);
  await twin.reindex();
  t.match(await of(3), { subject: null, evidence: null });
  const [rest] = await system.query(
    sql`select count(*) as n from osl_content.notes__masked__derived d
     where not exists (select 1 from osl_content.notes__masked n where n.chunk_id = d.chunk_id)`,
  );
  t.equal(Number(rest?.['n']), 0);
});
