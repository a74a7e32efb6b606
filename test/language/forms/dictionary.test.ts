import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { bridgeText, facetText, grantsText, manifestText } from '../../support/model-text.js';
import { type Forms, startForms } from './fixture.js';

/**
 * A facet that says nothing of its dictionary: a text is redacted by the labelled values of its own key and of what declared links
 * lead to from there. Who can write a text with a thousand candidates learns nothing of the values of other rows.
 */

t.setTimeout(600_000);

const MANIFEST = manifestText(
  'press',
  {
    'p.article': 'id int4, author int4, contact text pii',
    'p.person': 'id int4, name text pii, alias text[] pii',
    'p.review': 'article int4, person int4, remark text pii',
    'p.note': 'id int4, article int4, signer text pii, body text not null',
  },
  `entities:
  article:
    source: db.p.article
    primary_key: [id]
    entity_key_columns: [id, author]
    columns: [id, author]
    legs: [notes]
  person: { source: db.p.person, primary_key: [id], columns: [id, name] }
bridges:
${bridgeText('review', 'p.review', ['article', 'article'], ['person', 'person'])}
relationships:
  written: { from: article.author, to: person.id, kind: many_to_one }
facets:
${facetText('notes', 'p.note', 'article', 'article')}
    scalar_indexed: [article]
    versions: { masked: { redact: [pii], detectors: [email] } }
    retrieval: { max_top_k: 50 }
`,
);

const POLICY = `
version: 1
tenant: press
subjects: { "user:ann": { ceiling: [reader] } }
roles:
  reader:
    grants:
${grantsText(['article', 'notes'])}
masks: { pii: redact }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`;

const CANDIDATES = Array.from({ length: 1_000 }, (_, i) => `candidate${String(i).padStart(4, '0')}`);
/** A row of its own for each: who writes them all into a text asks which of them exist. */
const script = (hidden: readonly number[]): string => `
CREATE SCHEMA p;
CREATE TABLE p.article (id int4 PRIMARY KEY, author int4, contact text);
CREATE TABLE p.person (id int4 PRIMARY KEY, name text, alias text[]);
CREATE TABLE p.review (article int4, person int4, remark text);
CREATE TABLE p.note (id int4 PRIMARY KEY, article int4, signer text, body text NOT NULL);
INSERT INTO p.article VALUES (1, 1, 'contactone'), (2, 2, 'contacttwo'), (3, NULL, NULL);
INSERT INTO p.person VALUES (1, 'authorone', '{pseudonymone,"pen name"}'), (2, 'authortwo', NULL), (3, 'reviewerone', NULL);
INSERT INTO p.person SELECT 1000 + n, 'candidate' || lpad(n::text, 4, '0'), NULL FROM unnest('{${hidden.join()}}'::int4[]) n;
INSERT INTO p.review VALUES (1, 3, 'remarkone');
INSERT INTO p.note VALUES
  (1, 1, 'signerone', 'authorone pseudonymone pen name reviewerone remarkone contactone signerone; authortwo contacttwo; a@b.example'),
  (2, 2, NULL, 'authortwo contacttwo; authorone reviewerone contactone'),
  (3, 3, NULL, '${CANDIDATES.join(' ')}');
`;

async function start(
  manifest: string,
  hidden: readonly number[],
  made: (script: string) => string = (script) => script,
): Promise<Forms> {
  const forms = await startForms({ manifest, policy: POLICY, script: made(script(hidden)), schema: 'p' });
  t.teardown(() => forms.close());
  return forms;
}

async function textsOf(forms: Forms): Promise<ReadonlyMap<string, string>> {
  const { rows } = await forms.ask(
    'user:ann',
    "select article, text from RETRIEVE(facet => 'notes', query => 'authorone authortwo candidate0001 redacted', top_k => 50)",
  );
  const all = await forms.test.engine.system.query(
    sql`select doc_id, string_agg(text, $1 order by chunk_id) as t from osl_content.notes__masked group by doc_id`,
    ['|'],
  );
  t.ok(rows.length > 0);
  return new Map(all.map((r) => [String(r['doc_id']), String(r['t'])]));
}

const HIDDEN = [3, 141, 592, 653];
const real = await start(MANIFEST, HIDDEN);

t.test('a text is redacted by the values of its key and of its neighbours, and by no others', async (t) => {
  const texts = await textsOf(real);
  const R = '[redacted]';
  t.equal(texts.get('1'), `${R} ${R} ${R} ${R} ${R} ${R} ${R}; authortwo contacttwo; ${R}`);
  t.equal(texts.get('2'), `${R} ${R}; authorone reviewerone contactone`);
});

t.test('keys that are equal and written differently are the same key', async (t) => {
  const numeric = await start(MANIFEST.replaceAll('int4', 'numeric'), HIDDEN, (script) =>
    script.replaceAll('int4', 'numeric').replace("(1, 1, 'signerone'", "(1, 1.00, 'signerone'"),
  );
  t.strictSame([...(await textsOf(numeric))], [...(await textsOf(real))]);
});

t.test('a thousand candidates tell nothing of the rows that hold some of them', async (t) => {
  const twin = await start(MANIFEST, [7, 8, 9]);
  t.strictSame([...(await textsOf(twin))], [...(await textsOf(real))]);
  t.notMatch((await textsOf(real)).get('3'), /redacted/);
});

t.test('with the dictionary of the tenant they do, which the threat model says', async (t) => {
  const tenant = await start(
    MANIFEST.replace('    versions:', '    dictionary: tenant\n    versions:'),
    HIDDEN,
  );
  const told = (await textsOf(tenant)).get('3') ?? '';
  t.equal(told.split('[redacted]').length - 1, HIDDEN.length);
});

t.test(
  'where a value of a neighbour changes, the texts of that key are made again, and no others',
  async (t) => {
    const { system } = real.test.engine;
    const hashes = async () =>
      new Map(
        (
          await system.query(
            sql`select doc_id, content_hash, served_hash from osl_content.document where facet = 'notes'`,
          )
        ).map((r) => [String(r['doc_id']), `${r['content_hash']} ${r['served_hash']}`] as const),
      );
    const before = await hashes();
    await system.query(sql`update p.person set name = 'contacttwo' where id = 3`, []);
    await real.reindex();
    const after = await hashes();
    t.not(after.get('1'), before.get('1'));
    t.same([after.get('2'), after.get('3')], [before.get('2'), before.get('3')]);
    t.match((await textsOf(real)).get('1'), /reviewerone .*; authortwo \[redacted\]/);
    await system.query(sql`insert into p.review values (3, 2, 'candidate0500')`, []);
    await real.reindex();
    t.equal(
      ((await textsOf(real)).get('3') ?? '').split('[redacted]').length - 1,
      1,
      'a new link, and its own remark',
    );
  },
);
