import t from 'tap';
import { facetText, manifestText, policyText } from '../../support/model-text.js';
import { call, connected } from '../../surfaces/mcp/support.js';
import { articlesWorld } from './articles.js';
import { type Answer, at, startForms } from './fixture.js';

t.setTimeout(600_000);

const forms = await startForms(articlesWorld());
t.teardown(() => forms.close());
const { ask } = forms;

const WHO = ['user:ann', 'user:ada', 'user:eu', 'user:de', 'user:non'] as const;

/** `RETRIEVE` over the notes. */
function notes(query: string, topK = 5, more = ''): string {
  return `RETRIEVE(facet => 'notes', query => '${query}', top_k => ${topK}${more})`;
}

/** The rows of an answer, each as a text. */
function told({ rows }: Answer): readonly string[] {
  return rows.map((r) => JSON.stringify(r));
}

t.test('several RETRIEVEs in one statement', async (t) => {
  const [mill, port] = [notes('windmill', 4), notes('harbour', 6)];
  const alone = async (who: string, from: string): Promise<readonly string[]> =>
    told(await ask(who, `select article_id, text, score from ${from}`));

  await t.test('each finds what it finds alone, and hidden passages are in none', async (t) => {
    for (const who of WHO) {
      const [mills, ports] = [await alone(who, mill), await alone(who, port)];
      const both = await ask(
        who,
        `select article_id, text, score from ${mill} union all select article_id, text, score from ${port}`,
      );
      t.equal(both.status, 200);
      t.same([...told(both)].sort(), [...mills, ...ports].sort(), who);
      const common = await ask(
        who,
        `with m as (select article_id, text, score from ${mill}), p as (select article_id, text, score from ${port})
         select * from m union all select * from p`,
      );
      t.same([...told(common)].sort(), [...mills, ...ports].sort(), who);
      const only = await ask(
        who,
        `select article_id, text, score from ${port} where article_id in (select article_id from ${mill})`,
      );
      const keys = new Set(mills.map((m) => JSON.parse(m).article_id));
      t.same(
        told(only),
        ports.filter((p) => keys.has(JSON.parse(p).article_id)),
        who,
      );
    }
  });

  await t.test('two are joined on their sealed keys, and with the entity', async (t) => {
    for (const who of WHO) {
      const [mills, ports] = [await alone(who, mill), await alone(who, port)].map((rows) =>
        rows.map((r) => Number(JSON.parse(r).article_id)),
      );
      const pairs = (mills ?? []).flatMap((m) => (ports ?? []).filter((p) => p === m));
      const joined = await ask(
        who,
        `select m.article_id, a.id, m.text, p.score from ${mill} m join ${port} p on m.article_id = p.article_id
         join osl.entities.article a on a.id = m.article_id`,
      );
      t.equal(joined.status, 200, joined.message);
      t.equal(joined.rows.length, pairs.length, who);
      t.ok(joined.rows.every((r) => r['article_id'] === r['id']));
    }
    const unsealed = await ask('user:ann', `select m.text from ${mill} m join ${port} p on m.text = p.text`);
    t.equal(unsealed.code, 'E0514');
  });

  await t.test('operators, filters and parameters belong to their own RETRIEVE', async (t) => {
    const parameters = ['ledger', 'ledger', '40', 'de'];
    const osql = `select m.text, similarity(m.text) as s, p.lang, rank(p.text) as r
      from RETRIEVE(facet => 'notes', query => $1, top_k => 50) m
      join RETRIEVE(facet => 'notes', query => $2, top_k => $3) p on m.article_id = p.article_id where p.lang = $4`;
    const { rows, status, message } = await ask('user:ann', osql, { parameters });
    t.equal(status, 200, message);
    t.ok(rows.length > 0);
    t.ok(rows.every((r) => r['lang'] === 'de'));
    t.ok(rows.every((r) => Number(r['r']) >= 1));
    const client = await forms.wire('user:ann');
    const { outcome } = await client.simple(
      `select count(*) from ${mill} m join ${port} p on m.article_id = p.article_id`,
    );
    t.equal(outcome.kind, 'rows');
  });

  await t.test('eight at most, and no walk and no evidence beside', async (t) => {
    const of = (n: number): string =>
      Array.from({ length: n }, () => `select text from ${notes('windmill', 1)}`).join(' union all ');
    t.equal((await ask('user:ann', of(8))).rows.length, 8);
    const more = await ask('user:ann', of(9));
    t.equal(more.code, 'E0511');
    t.match(more.message, /RETRIEVEs/);
    const evidence = await ask(
      'user:ann',
      `select a.evidence, r.text from osl.entities.article a join ${mill} r on a.id = r.article_id where a.id = 1`,
    );
    t.equal(evidence.code, 'E0511');
    t.match(evidence.message, /evidence/);
  });

  await t.test('explain shows each, and the record names both facets', async (t) => {
    const { json } = await ask('user:acc', `select text from ${mill} union all select text from ${port}`, {
      explain: true,
    });
    t.equal(JSON.stringify(json).split('"step":"retrieve"').length - 1, 2);
  });
});

/** Everything that a caller may see, best first: what pages, floors and documents are taken from. */
async function whole(who: string, query: string): Promise<readonly Passage[]> {
  const { rows } = await ask(who, `select score, cite from ${notes(query, 50)}`);
  return rows.map(passage);
}

interface Passage {
  readonly score: number;
  readonly chunk: string;
  readonly document: string;
}

function passage(row: Readonly<Record<string, unknown>>): Passage {
  const [chunk, document] = ['chunk_id', 'doc_id'].map((name) => String(at(row, 'cite', name)));
  return { score: Number(row['score']), chunk: chunk ?? '', document: document ?? '' };
}

/** Computes from the whole what `wanted` must be: one of each document, those that are good enough, a page of these. */
function taken(
  all: readonly Passage[],
  wanted: { per?: string; min?: number; offset?: number; topK: number },
): readonly Passage[] {
  const { per = 'passage', min = -Infinity, offset = 0, topK } = wanted;
  const firsts = all.filter((p, i) => all.findIndex((q) => q.document === p.document) === i);
  return (per === 'document' ? firsts : all).filter((p) => p.score >= min).slice(offset, offset + topK);
}

t.test('pages, floors and one best per document are exact', async (t) => {
  const query = 'report on the windmill';
  for (const who of WHO) {
    const all = await whole(who, query);
    const middle = all[Math.floor(all.length / 2)]?.score ?? 0;
    for (const per of ['passage', 'document']) {
      for (const [topK, offset, min] of [
        [3, 0, undefined],
        [3, 3, undefined],
        [50, 0, middle],
        [5, 2, middle],
        [50, 7, undefined],
        [5, 10_000, undefined],
        [50, 0, 1_000],
      ] as const) {
        const floor = min === undefined ? '' : `, min_score => ${min}`;
        const osql = `select score, cite from ${notes(query, topK, `, skip => ${offset}, per => '${per}'${floor}`)}`;
        const { rows, status, message } = await ask(who, osql);
        t.equal(status, 200, message);
        const wanted = taken(all, { per, topK, offset, ...(min === undefined ? {} : { min }) });
        t.same(rows.map(passage), wanted, `${who}: ${osql}`);
      }
    }
  }
  const pages = await Promise.all(
    [0, 4, 8, 12].map((offset) =>
      ask('user:ann', `select cite from ${notes(query, 4, `, skip => ${offset}`)}`),
    ),
  );
  const seen = pages.flatMap(({ rows }) => rows.map((r) => at(r, 'cite', 'chunk_id')));
  t.equal(new Set(seen).size, 16, 'pages do not overlap');
});

t.test('pages and floors may be parameters, and are checked whatever they are', async (t) => {
  const from = "RETRIEVE(facet => 'notes', query => 'windmill', top_k => $1, skip => $2, min_score => $3)";
  const osql = `select score, cite from ${from}`;
  const { rows, status, message } = await ask('user:ann', osql, { parameters: ['2', '1', '0.01'] });
  t.equal(status, 200, message);
  t.same(rows.map(passage), (await whole('user:ann', 'windmill')).slice(1, 3));
  for (const parameters of [
    ['2', '-1', '0'],
    ['2', '10001', '0'],
    ['2', null, '0'],
    ['2', '1', 'NaN'],
    ['2', '1', null],
  ]) {
    const refused = await ask('user:ann', osql, { parameters });
    t.match(refused, { status: 400, code: 'E0511' }, JSON.stringify(parameters));
  }
  for (const more of [
    ', skip => -1',
    ', skip => 10001',
    ", min_score => 'high'",
    ", per => 'entity'",
    ', per => 1',
    ', page => 2',
    ', "offset" => 1',
    ', skip => 1, skip => 2',
    ", min_score => 'Infinity'",
  ]) {
    t.match(await ask('user:ann', `select text from ${notes('windmill', 3, more)}`), { code: 'E0511' }, more);
  }
  const client = await forms.wire('user:ann');
  const { outcome } = await client.simple(
    `select cite ->> 'chunk_id' from ${notes('windmill', 2, ", skip => 1, per => 'document', min_score => 0.01")}`,
  );
  t.match(outcome, { kind: 'rows' });
  const mcp = await connected({ port: forms.fronts.httpPort, test: forms.test }, 'user:ann', 'auto');
  const osqlText = `select cite from ${notes('windmill', 2, ', skip => 1, min_score => 0.01')}`;
  const { content } = await call(mcp, 'semantic_query', { osql: osqlText });
  await mcp.close();
  t.same(at(content, 'rows'), (await ask('user:ann', osqlText)).rows, 'MCP tells what REST tells');
  const { json } = await ask(
    'user:ann',
    `select text from ${notes('windmill', 2, ", skip => 1, per => 'document'")}`,
    {
      explain: true,
    },
  );
  t.match(JSON.stringify(json), '"per":"document","skip":1');
});

t.test('diverse passages are chosen as RANK orders the best ones', async (t) => {
  for (const who of WHO) {
    const pool = await ask(
      who,
      `select score, cite, rank(text, lambda => 0.4) as r from ${notes('report on the windmill', 50)}`,
    );
    const ranked = [...pool.rows].sort((a, b) => Number(a['r']) - Number(b['r'])).map(passage);
    for (const [topK, skip] of [
      [3, 0],
      [4, 2],
    ] as const) {
      const from = notes('report on the windmill', topK, `, skip => ${skip}, diversity => 0.6`);
      const { rows, status, message } = await ask(who, `select score, cite from ${from}`);
      t.equal(status, 200, message);
      t.same(rows.map(passage), ranked.slice(skip, skip + topK), `${who} ${from}`);
    }
  }
  for (const more of [
    ', diversity => 1.1',
    ', diversity => -0.1',
    ", diversity => 'x'",
    ', diversity => 0.5, skip => 249',
  ])
    t.match(await ask('user:ann', `select text from ${notes('windmill', 3, more)}`), { code: 'E0511' }, more);
});

t.test('a semi-join holds before the best are taken, and tells nothing of hidden rows', async (t) => {
  const query = 'report';
  const inside = (where: string): string =>
    `article_id in (select id from osl.entities.article where ${where})`;
  for (const who of WHO) {
    for (const [where, matches] of [
      ['views >= 70', (id: number) => id >= 7],
      ["title = 'Article 3'", (id: number) => id === 3],
      ["region = 'us'", (id: number) => id % 2 === 0],
      ["title = 'Article 9'", () => false],
    ] as const) {
      const ids = who === 'user:eu' ? [1, 3, 5, 7, 9] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
      const listed = ids.filter(matches).join(', ');
      // Whoever sees these articles may name them: the same passages, scores and ranks.
      const same = await ask(
        who,
        `select text, score from ${notes(query, 2)} where article_id in (${listed || '0'})`,
      );
      const asked = await ask(who, `select text, score from ${notes(query, 2)} where ${inside(where)}`);
      t.equal(asked.status, 200, asked.message);
      t.same(told(asked), told(same), `${who}: ${where}`);
      t.notOk(asked.raw.includes('"notices"'), 'nothing came after');
    }
    const others = ids(
      await ask(who, `select article_id from ${notes(query, 50)} where not ${inside('views >= 70')}`),
    );
    t.ok(others.every((id) => id < 7));
  }
  const grouped = await ask(
    'user:ann',
    `select article_id from ${notes(query, 3)} where article_id in
     (select id from osl.entities.article group by id having sum(views) > 70)`,
  );
  t.match(grouped, { status: 200 }, grouped.message);
  t.equal(grouped.rows.length, 3, 'of articles 8 and 9 alone, of which 9 has no note');
  t.same([...new Set(ids(grouped))], [8]);
  const { json } = await ask('user:ann', `select text from ${notes(query, 2)} where ${inside('views > 1')}`, {
    explain: true,
  });
  t.match(JSON.stringify(json), '"semi_joins":1');
});

/** The articles of an answer. */
function ids({ rows }: Answer): readonly number[] {
  return rows.map((r) => Number(r['article_id']));
}

t.test('a filter that fails on a row fails nobody who may not see the passages', async (t) => {
  const failing = 'select id from osl.entities.article where 1 / (views - views) = 1';
  for (const [who, code] of [
    ['user:non', ''],
    ['user:ann', 'E0529'],
  ] as const) {
    const from = notes('report', 2);
    const answer = await ask(who, `select text from ${from} where article_id in (${failing})`);
    t.equal(answer.code === '' ? '' : 'E0529', code, `${who}: ${answer.message}`);
  }
  // No passage of this caller comes into question, hidden ones would: the query inside is not even begun.
  for (const not of ['', 'not ']) {
    const none = await ask(
      'user:eu',
      `select text from ${notes('report', 2)} where article_id = 2 and article_id ${not}in (${failing})`,
    );
    t.match(none, { status: 200, rows: [] }, none.message);
  }
});

t.test('what the order of the contract leaves for later is said, and how to ask instead', async (t) => {
  const joined = `select r.text from ${notes('report', 2)} r join osl.entities.article a on a.id = r.article_id
    where a.title = 'Article 9'`;
  const exists = `select r.text from ${notes('report', 2)} r
    where exists (select 1 from osl.entities.article a where a.id = r.article_id and a.views > 1)`;
  const table = `with a as (select id from osl.entities.article where views > 1)
    select r.text from ${notes('report', 2)} r where r.article_id in (select id from a)`;
  const client = await forms.wire('user:ann');
  for (const osql of [joined, exists, table]) {
    for (const more of [{}, { explain: true }]) {
      const { json } = await ask('user:ann', osql, more);
      const [notice, ...rest] = at(json, 'notices') as readonly string[]; // as the schema has it
      t.match(notice, 'WHERE r.article_id IN (SELECT …), with an independent subquery, filters before', osql);
      t.same(rest, []);
    }
    const { raw } = await client.simple(osql);
    t.match(raw.toString('utf8'), 'filters before');
  }
  for (const osql of [
    `select r.text from ${notes('report', 2)} r join osl.entities.article a on a.id = r.article_id`,
    `select r.text from ${notes('report', 2)} r where lang = 'de' and score > 0`,
  ])
    t.notOk((await ask('user:ann', osql)).raw.includes('"notices"'), osql);
});

t.test('metadata of type jsonb is as the table has it, with numbers of any size', async (t) => {
  const desk = await startForms({
    manifest: manifestText(
      'desk',
      { 'desk.notes': 'id int4, body text not null, doc jsonb' },
      `entities:
  note: { source: db.desk.notes, primary_key: [id], entity_key_columns: [id], columns: [id, doc] }
facets:
${facetText('notes', 'desk.notes', 'note', 'id')}
    metadata: [doc]
    versions: { raw: {} }
    retrieval: { max_top_k: 5 }
`,
    ),
    policy: policyText(
      'desk',
      { 'user:all': 'all' },
      `roles: { all: { grants: [{ on: note, columns: "*" }, { on: notes, columns: "*" }] } }
masks: {}
limits: { query: 1000, sample: 1000, schema: 1000, authoring: 1000, catalog: 1000 }
`,
    ),
    script: `create schema desk; create table desk.notes (id int4 primary key, body text not null, doc jsonb);
      insert into desk.notes values (1, 'a windmill', '{"a": 12345678901234567890, "b": 1.10, "c": 1e400}'), (2, 'windmills', null);`,
    schema: 'desk',
  });
  t.teardown(() => desk.close());
  const stored = await desk.ask('user:all', 'select id, doc::text as doc from note order by id');
  const found = await desk.ask(
    'user:all',
    `select id, doc::text as doc from ${notes('windmill')} order by id`,
  );
  t.equal(found.status, 200);
  t.same(found.rows, stored.rows);
});
