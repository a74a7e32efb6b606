import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { ARTICLES_MANIFEST, ARTICLES_POLICY, articleScript, NOTES, PEOPLE } from './articles.js';
import { at, type Forms, startForms } from './fixture.js';

t.setTimeout(600_000);

const MANIFEST = ARTICLES_MANIFEST.replace(
  'words: { type: int4 }',
  'words: { type: int4, sensitivity: person }',
);
/** `user:den` is denied the facet that a role of his grants. */
const POLICY = ARTICLES_POLICY.replace(
  'roles:\n',
  `  user:den: { ceiling: [masked, no_notes] }
roles:
  no_notes:
    grants: []
    deny: [{ on: notes }]
`,
);

interface Reply {
  readonly status: number;
  readonly json: unknown;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly text: string;
  readonly requestId: string;
}

async function start(notes = NOTES): Promise<Forms> {
  return startForms({ manifest: MANIFEST, policy: POLICY, script: articleScript(notes), schema: 'press' });
}

async function sample(forms: Forms, subject: string, body: unknown): Promise<Reply> {
  const response = await fetch(`http://127.0.0.1:${forms.fronts.httpPort}/osl/sample`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${await forms.test.token(subject)}`,
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const json = JSON.parse(text);
  const requestId = String(at(json, 'request_id'));
  return {
    status: response.status,
    json,
    rows: json.rows ?? [],
    text: text.replace(requestId, ''),
    requestId,
  };
}

const forms = await start();
t.teardown(() => forms.close());
const notes = (limit?: number) => ({ kind: 'facet', name: 'notes', limit });

t.test('a few chunks of the version that is due come, with key, metadata and cite', async (t) => {
  const { json, rows } = await sample(forms, 'user:ann', notes());
  t.equal(rows.length, 5);
  t.same(at(json, 'redacted_columns'), []);
  t.same(at(json, 'redacted_fields'), ['author', 'words']);
  const order = ['text', 'article_id', 'lang', 'words', 'rating', 'tags', 'source', 'author', 'cite'];
  for (const row of rows) {
    t.same(Object.keys(row), [...order, 'redacted_fields']);
    t.match(row, { author: '[redacted]', words: '[redacted]', redacted_fields: ['words', 'author'] });
    t.match(row, { cite: { facet: 'notes', version: 'masked', chunk_id: String, start: Number } });
    t.ok(Array.isArray(row['tags']) && typeof row['article_id'] === 'string');
  }
  const keys = rows.map((r) => `${r['article_id']} ${at(r, 'cite', 'chunk_id')}`);
  t.same(keys, [...keys].sort(), 'in the order of keys');
  t.equal((await sample(forms, 'user:ann', notes())).text, (await sample(forms, 'user:ann', notes())).text);
});

t.test('who may read it sees the raw version, and nobody else a byte of it', async (t) => {
  const clear = await sample(forms, 'user:ada', notes(100));
  t.same(at(clear.json, 'redacted_fields'), []);
  t.ok(clear.rows.every((r) => at(r, 'cite', 'version') === 'raw' && typeof r['words'] === 'number'));
  for (const who of ['user:ann', 'user:eu', 'user:de']) {
    const { text } = await sample(forms, who, notes(100));
    for (const { name, email } of PEOPLE) t.notOk(text.includes(name) || text.includes(email), who);
  }
});

t.test('the same chunks as RETRIEVE may be seen, and none without a grant', async (t) => {
  for (const who of ['user:ann', 'user:ada', 'user:eu', 'user:de']) {
    const found = await forms.ask(
      who,
      `select cite from RETRIEVE(facet => 'notes', query => 'report on the windmill', top_k => 50)`,
    );
    const ids = (rows: readonly unknown[]) => rows.map((r) => at(r, 'cite', 'chunk_id')).sort();
    t.same(ids((await sample(forms, who, notes(100))).rows), ids(found.rows), who);
  }
  const denied = await sample(forms, 'user:den', notes());
  t.match([denied.status, at(denied.json, 'code')], [403, 'E2101'], 'a deny rule is told of');
  for (const who of ['user:non']) {
    const { status, rows, requestId, json } = await sample(forms, who, notes());
    t.same([status, rows, at(json, 'redacted_fields')], [200, [], []], who);
    t.match(await forms.test.records(requestId), [
      { action: 'sample', decision: 'allow', objects: ['osl.facets.notes'], form: 'retrieve' },
      { outcome: 'ok', rows: 0 },
    ]);
  }
});

t.test('passages whose key the caller may not read in the clear do not come', async (t) => {
  const memos = { kind: 'facet', name: 'memos' };
  t.same((await sample(forms, 'user:ann', memos)).rows, []);
  t.equal((await sample(forms, 'user:acc', memos)).rows.length, 2);
});

t.test('a facet that is not declared is E0241, and a model is none', async (t) => {
  for (const name of ['nope', 'article', 'NOTES', '__proto__']) {
    const { status, json } = await sample(forms, 'user:ann', { kind: 'facet', name });
    t.same([status, at(json, 'code')], [400, 'E0241'], name);
  }
  const { json } = await sample(forms, 'user:ann', { kind: 'table', name: 'notes' });
  t.equal(at(json, 'code'), 'E0254', 'a facet is not a table');
});

t.test('hidden chunks change no byte; a store that is being built is not read', async (t) => {
  const twin = await start(NOTES.map((n) => (n.lang === 'de' ? n : { ...n, body: `other ${n.body}` })));
  t.teardown(() => twin.close());
  const texts = async (who: string, limit: number) =>
    Promise.all([forms, twin].map(async (f) => (await sample(f, who, notes(limit))).text));
  for (const limit of [3, 100]) {
    const [here = '', there = ''] = await texts('user:de', limit);
    t.ok(here === there, `user:de, ${limit}`);
    const [all = '', others = ''] = await texts('user:ann', limit);
    t.ok(all !== others, 'a caller of everything sees that they differ');
  }
  await twin.test.engine.system.script(sql`update osl_content.facet set state = 'building'`);
  await new Promise((resolve) => setTimeout(resolve, 5_100)); // a checked store is trusted for 5 s
  const { status, json } = await sample(twin, 'user:ann', notes());
  t.same([status, at(json, 'code')], [503, 'E0522']);
});
