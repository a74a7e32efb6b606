import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { chunkSpans } from '../../../src/content/chunk.js';
import { PdfThread } from '../../../src/content/indexer/pdf/pdf-thread.js';
import { indexContent } from '../../../src/service/indexing/index-content.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { grantsText, manifestText } from '../../support/model-text.js';
import { pdfOf } from '../../support/pdf.js';
import { at, startForms } from './fixture.js';

/** A facet whose documents are PDFs: read by pages, redacted, and never at the cost of the whole run. */

t.setTimeout(180_000);

const FACET = `entity: article
    entity_key: article_id
    document_id: id
    format: pdf
    dictionary: tenant
    versions: { masked: { redact: [person] } }
    retrieval: { max_top_k: 20 }`;
const MANIFEST = manifestText(
  'press',
  {
    'press.article': 'id int4, title text',
    'press.person': 'id int4, name text person',
    'press.paper': 'id text, article_id int4 not null, file bytea, coded text',
  },
  `entities:
  article: { source: db.press.article, primary_key: [id], columns: [id, title] }
  person: { source: db.press.person, primary_key: [id], columns: [id, name] }
facets:
  papers:
    source: db.press.paper
    text: file
    ${FACET}
  scans:
    source: db.press.paper
    text: coded
    ${FACET}
`,
);
const POLICY = `
version: 1
tenant: press
subjects: { user:ann: { ceiling: [reader] } }
roles:
  reader:
    grants:
${grantsText(['article', 'papers', 'scans'])}
masks: { person: redact }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`;

const REPORT = pdfOf([
  ['A report on the windmill (old)', 'by Balthasar Quux, caf\xe9'],
  ['The harbour is on page two'],
]);
const DOCUMENTS: Readonly<Record<string, Buffer | null>> = {
  report: REPORT,
  letter: pdfOf([['A letter about the orchard']]),
  torn: REPORT.subarray(0, 300),
  junk: Buffer.from('this is not a PDF'),
  locked: pdfOf([['A secret windmill']], { encrypted: true }),
  none: null,
};
const values = Object.entries(DOCUMENTS).map(([id, bytes], i) => {
  const hex = bytes?.toString('hex');
  return `('${id}', ${(i % 3) + 1}, ${hex === undefined ? 'null, null' : `'\\x${hex}', encode('\\x${hex}', 'base64')`})`;
});

const forms = await startForms({
  manifest: MANIFEST,
  policy: POLICY,
  schema: 'press',
  script: `create schema press;
    create table press.article (id int4 primary key, title text);
    insert into press.article values (1, 'one'), (2, 'two'), (3, 'three');
    create table press.person (id int4 primary key, name text);
    insert into press.person values (1, 'Balthasar Quux');
    create table press.paper (id text primary key, article_id int4 not null, file bytea, coded text);
    insert into press.paper values ${values.join(', ')};`,
});
t.teardown(() => forms.close());
const { open, service, engine } = forms.test;

for (const facet of ['papers', 'scans']) {
  t.test(`passages of \`${facet}\` are of one page each, without what is redacted`, async (t) => {
    const osql = `select text, cite from RETRIEVE(facet => '${facet}', query => 'windmill harbour orchard', top_k => 20)`;
    const { rows, message } = await forms.ask('user:ann', osql);
    const found = rows.map((row) => `${at(row, 'cite', 'doc_id')}: ${row['text']}`).sort();
    t.same(
      found,
      [
        'letter: A letter about the orchard',
        'report: A report on the windmill (old)\nby [redacted], café',
        'report: The harbour is on page two',
      ],
      message,
    );
  });
}

t.test('a document that cannot be read is named, and left out', async (t) => {
  const index = () =>
    indexContent(
      service.model().manifest,
      open.databases,
      settingsFrom({}, '/').content,
      ['papers'],
      () => undefined,
    );
  const unreadable = [
    { id: 'junk', reason: 'broken' },
    { id: 'locked', reason: 'encrypted' },
    { id: 'torn', reason: 'broken' },
  ];
  t.match(await index(), [{ documents: 3, added: 0, changed: 0, removed: 0, unreadable }]);
  await engine.system.query(sql`update press.paper set file = 'no more' where id = 'letter'`);
  const [summary] = await index();
  t.match(summary, { documents: 2, removed: 1 }, 'also one that was read before');
  t.match(
    summary?.unreadable.map(({ id }) => id),
    ['junk', 'letter', 'locked', 'torn'],
  );
});

t.test('reading a document has bounds', async (t) => {
  const slow = pdfOf([Array.from({ length: 300_000 }, () => 'x')]);
  const bounds = [
    [{ mostChars: 100 }, 'too long'],
    [{ deadlineMs: 1 }, 'late'],
    [{ growthMb: -1_000_000 }, 'memory'],
  ] as const;
  for (const [limits, fault] of bounds) {
    const thread = new PdfThread(limits);
    t.same(await thread.read(slow), { fault }, fault);
    await thread.end();
  }
  const thread = new PdfThread({ mostChars: 100 });
  t.teardown(() => thread.end());
  t.same(await thread.read(slow), { fault: 'too long' });
  t.same(await thread.read(pdfOf([['next']])), { text: 'next' }, 'the next one is read');
});

t.test('a package that is not installed is named, with what to do', async (t) => {
  const thread = new PdfThread({}, 'no-such-reader');
  await t.rejects(thread.read(REPORT), {
    code: 'notInstalled',
    message: '`format: pdf` needs the package `no-such-reader`, which is not installed',
    hint: 'run `npm install no-such-reader` beside the gateway',
  });
});

t.test('each page begins a passage, and long ones have several', (t) => {
  const text = `${'word '.repeat(30).trim()}\f\fshort`;
  const spans = chunkSpans(text, { maxChars: 100, overlapChars: 0, by: 'page' });
  t.same(
    spans.map(({ start, end }) => text.slice(start, end)),
    ['word '.repeat(20).trim(), 'word '.repeat(10).trim(), 'short'],
  );
  t.end();
});
