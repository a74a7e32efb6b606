import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { indexContent } from '../../../src/service/indexing/index-content.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { startForms } from './fixture.js';
import { NOTES, VECTORS_POLICY, vectorsManifest, vectorsScript } from './vectors.js';

/**
 * A facet whose cutting, metadata and redaction change while questions are asked: it is built beside the store that is
 * served, and no question fails, before the reload or after it.
 */

t.setTimeout(600_000);

const FACET = '    versions: { raw: {} }\n';
const BEFORE = vectorsManifest('{ max_top_k: 50 }').replace('    embedding: { model: toy }\n', '');
/** Other passages, another column, another rule: nothing of the old store could serve it. */
const AFTER = BEFORE.replace('metadata: [lang]', 'metadata: [lang, id]').replace(
  FACET,
  `    chunking: { max_chars: 100, overlap_chars: 0 }\n    versions: { raw: { detectors: [email] } }\n`,
);

const forms = await startForms({
  manifest: BEFORE,
  policy: VECTORS_POLICY,
  script: vectorsScript(NOTES.slice(0, 300)),
  schema: 'press',
});
t.teardown(() => forms.close());
const { engine, open } = forms.test;
const file = join(dirname(forms.test.policyFile), 'manifest.yaml');
const content = settingsFrom({}, '/').content;

const asked = (what = 'cite, score, text') =>
  forms.ask('user:ann', `select ${what} from RETRIEVE(facet => 'notes', query => 'w1 w2 w3', top_k => 5)`);
const index = (manifest: string, onProgress: () => void = () => undefined) =>
  indexContent(parseManifest(manifest, 'm.yaml'), open.databases, content, [], onProgress);
const stores = (): Promise<readonly Record<string, unknown>[]> =>
  engine.system.query(sql`select version, state from osl_content.facet order by version`);

t.test('the old store answers while the new one is built, and until the reload', async (t) => {
  const before = (await asked()).rows;
  t.equal(before.length, 5);
  const during: unknown[] = [];
  const questions: Promise<void>[] = [];
  await index(AFTER, () => {
    questions.push(
      asked().then(({ status, rows, message }) => void during.push(status === 200 ? rows : message)),
    );
  });
  await Promise.all(questions);
  t.ok(during.length > 3, `${during.length} questions meanwhile`);
  for (const rows of during) t.same(rows, before);
  t.same(await stores(), [
    { version: 'raw', state: 'ready' },
    { version: 'raw~next', state: 'ready' },
  ]);
  await engine.system.query(sql`insert into press.note values ('new', 1, 'en', 'w1 w1 w1 w2 w2 w3 w3 w3')`);
  await index(BEFORE);
  t.match((await asked()).rows[0], { cite: { doc_id: 'new' } }, 'the old one is brought up to date, too');
  await index(AFTER);
});

t.test('with the reload the new one takes its place, also under questions', async (t) => {
  writeFileSync(file, AFTER);
  const during = Array.from({ length: 20 }, () => asked());
  await open.reload();
  // The facet is served without addresses now: a question that began under its old text is ended, and asked again.
  for (const { status, message } of await Promise.all(during))
    t.ok(
      status === 200 || (status === 409 && message.includes('your access changed')),
      `${status} ${message}`,
    );
  const after = await Promise.all(Array.from({ length: 10 }, () => asked()));
  t.same([...new Set(after.map(({ status, message }) => `${status} ${message}`))], ['200 ']);
  t.match((await asked('cite, id')).rows[0], { id: 'new' }, 'with its new column');
  t.same(await stores(), [{ version: 'raw', state: 'ready' }]);
  const tables = await engine.system.query(
    sql`select relname from pg_class where relnamespace = 'osl_content'::regnamespace and relkind = 'r' order by 1`,
  );
  t.same(
    tables.map((row) => row['relname']),
    ['document', 'facet', 'notes__raw', 'notes__raw__words'],
  );
  await index(AFTER);
  t.equal((await asked()).status, 200, 'and is brought up to date where it is');
});

t.test('once more, with names that the first time left behind', async (t) => {
  const again = AFTER.replace('detectors: [email]', 'detectors: [email, phone]');
  await index(again);
  writeFileSync(file, again);
  await open.reload();
  t.equal((await asked()).status, 200);
  t.same(await stores(), [{ version: 'raw', state: 'ready' }]);
});
