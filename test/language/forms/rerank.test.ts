import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { type Asked, json, modelServer } from '../../content/server.js';
import { WireClient } from '../../support/frontends.js';
import { policyText } from '../../support/model-text.js';
import { cancelRequest } from '../../wire/support/bytes.js';
import { ARTICLES_MANIFEST, articleScript, decodingPolicy, PEOPLE } from './articles.js';
import { type Answer, at, startForms } from './fixture.js';
import { NOTES, toyEmbeddings, vectorsWorld } from './vectors.js';

t.setTimeout(180_000);

const PROTOCOLS = ['cohere', 'jina', 'voyage', 'tei'] as const;
type Protocol = (typeof PROTOCOLS)[number];

const POLICY = decodingPolicy(
  '  user:raw: { ceiling: [raw_decoding] }\n  user:metered: { ceiling: [metered] }\n  user:unreported: { ceiling: [metered] }\n',
  `  raw_decoding:
    grants:
      - { on: article, columns: "*" }
      - { on: notes, columns: "*", unmask: [pii, person], decode: true }
  metered:
    grants:
      - { on: article, columns: "*" }
      - { on: notes, columns: "*", decode: true }
    limits: [{ per: day, each: subject, tokens: 60 }]
`,
);

const VECTORS_DECODING = policyText(
  'press',
  {
    'user:ann': 'all',
  },
  `roles:
  all:
    grants:
      - { on: article, columns: "*" }
      - { on: notes, columns: "*", decode: true }
masks: {}
limits: { query: 1000000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

const server = await modelServer();
const origin = new URL(server.url).origin;
const URLS: Readonly<Record<Protocol, string>> = {
  cohere: `${origin}/v2`,
  jina: `${origin}/v1`,
  voyage: `${origin}/v1/`,
  tei: origin,
};
for (const protocol of PROTOCOLS) process.env[`OSL_TEST_RERANK_${protocol}`] = URLS[protocol];
process.env['OSL_TEST_RERANK_cohere_KEY'] = 'a-key';

function declared(protocol: Protocol, more = 'cache_mib: 0'): string {
  return `{ protocol: ${protocol}, url_env: OSL_TEST_RERANK_${protocol}, model: m-1, ${more} }`;
}

const RERANKERS = `rerankers:
${PROTOCOLS.map((p) => `  ${p}: ${declared(p)}`).join('\n')}
  small: ${declared('cohere', 'candidates: 5, cache_mib: 0')}
  three: ${declared('tei', 'concurrency: 3, cache_mib: 0')}
  kept: ${declared('cohere', 'candidates: 12')}
  counted: ${declared('cohere', 'candidates: 8, passages_per_day: 4, cache_mib: 0')}
  hasty: ${declared('cohere', 'timeout_ms: 50, cache_mib: 0')}
  patient: ${declared('cohere', 'timeout_ms: 60000, cache_mib: 0')}
  away: { protocol: cohere, url_env: OSL_TEST_RERANK_NOWHERE, model: m-1 }
  other: ${declared('cohere')}
facets:`;
const NAMED = 'rerankers: [cohere, jina, voyage, tei, small, three, kept, counted, hasty, patient, away]';

/** Of a question. */
const TIMEOUT_MS = 10_000;
const MANIFEST = ARTICLES_MANIFEST.replace('facets:', RERANKERS).replace(
  'max_top_k: 50 }',
  `max_top_k: 50, ${NAMED} }`,
);
const forms = await startForms({
  manifest: MANIFEST,
  policy: POLICY,
  script: articleScript(),
  schema: 'press',
  settings: { caps: { ...settingsFrom({}, '/').caps, timeoutMs: TIMEOUT_MS } },
});
t.teardown(async () => {
  await forms.close();
  await server.close();
});
const { ask } = forms;

function notes(more: string, select = 'text, score, cite', topK = 10): string {
  return `select ${select} from RETRIEVE(facet => 'notes', query => 'report on the windmill', top_k => ${topK}${more})`;
}

/** Score of a text from the reranker of these tests: four digits that nobody could guess of it. */
function worth(text: string): number {
  return (createHash('sha256').update(text).digest().readUInt16BE(0) % 10_000) / 10_000;
}

/** The texts of a request, whatever it speaks. */
function textsOf({ body }: Asked): readonly string[] {
  return (body['documents'] ?? body['texts']) as readonly string[]; // as the protocols have it
}

/** An answer as each server gives it, best first. */
function scored(asked: Asked, response: ServerResponse, score = worth): void {
  const texts = textsOf(asked);
  const best = texts
    .map((text, index) => ({ index, score: score(text) }))
    .sort((a, b) => b.score - a.score || b.index - a.index);
  const named = best.map(({ index, score: relevance_score }) => ({ index, relevance_score }));
  if ('texts' in asked.body) json(response, best);
  else if ('top_k' in asked.body)
    json(response, { object: 'list', data: named, model: 'm-1', usage: { total_tokens: 26 } });
  else if ('return_documents' in asked.body)
    json(response, {
      model: 'm-1',
      usage: { total_tokens: 26, prompt_tokens: 26 },
      results: named.map((r) => ({ ...r, document: { text: texts[r.index] } })),
    });
  else
    json(response, {
      id: '07734bd2-2473-4f07-94e1-0d9f0e6843cf',
      results: named,
      meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
    });
}

const textsIn = ({ rows }: Answer): readonly string[] => rows.map((r) => String(r['text']));
const scoresIn = ({ rows }: Answer): readonly number[] => rows.map((r) => Number(r['score']));

/** So many candidates, in the order that the reranker gives them; ties as the search has them. */
async function expected(who: string, candidates: number, more = ''): Promise<readonly string[]> {
  const found = textsIn(await ask(who, notes(more, 'text', candidates)));
  return [...found].sort((a, b) => worth(b) - worth(a));
}

t.beforeEach(() => {
  server.asked.length = 0;
  server.answer = (asked, r) => scored(asked, r);
});

t.test('each shape is spoken as its server wants it, over REST and the wire', async (t) => {
  const found = textsIn(await ask('user:dec', notes('', 'text', 50)));
  t.ok(found.length > 32, 'more than one request of the one that takes 32');
  const query = 'report on the windmill';
  const n = found.length;
  const sent: Readonly<Record<Protocol, readonly (readonly [string, object])[]>> = {
    cohere: [['/v2/rerank', { model: 'm-1', query, documents: found, top_n: n }]],
    jina: [['/v1/rerank', { model: 'm-1', query, documents: found, top_n: n, return_documents: false }]],
    voyage: [
      [
        '/v1/rerank',
        { model: 'm-1', query, documents: found, top_k: n, return_documents: false, truncation: true },
      ],
    ],
    tei: [found.slice(0, 32), found.slice(32)].map((texts) => [
      '/rerank',
      { query, texts, raw_scores: false, return_text: false, truncate: true },
    ]),
  };
  const best = (await expected('user:dec', 50)).slice(0, 10);
  for (const protocol of PROTOCOLS) {
    server.asked.length = 0;
    const answer = await ask('user:dec', notes(`, rerank => '${protocol}'`));
    t.same([answer.status, textsIn(answer)], [200, best], protocol);
    t.same(scoresIn(answer), best.map(worth));
    t.same(
      server.asked.map(({ path, body }) => [path, body]),
      sent[protocol],
      protocol,
    );
    const key = protocol === 'cohere' ? 'Bearer a-key' : undefined;
    t.ok(server.asked.every(({ headers }) => headers.authorization === key));
    const client = await forms.wire('user:dec');
    const { outcome } = await client.simple(notes(`, rerank => '${protocol}'`, 'text, score'));
    t.same(
      outcome.kind === 'rows' && outcome.rows,
      best.map((text) => [text, String(worth(text))]),
    );
  }
  t.same(textsIn(await ask('user:dec', notes(', rerank => true'))), best, 'true: the first of the facet');
  server.asked.length = 0;
  t.same(textsIn(await ask('user:dec', notes(', rerank => false'))), found.slice(0, 10));
  t.equal(server.asked.length, 0);
});

t.test('a reranker sees the passages that the caller sees, and no others', async (t) => {
  for (const who of ['user:dec', 'user:ger']) {
    server.asked.length = 0;
    const answer = await ask(who, notes(', rerank => true', 'text, lang', 50));
    t.equal(answer.status, 200, who);
    t.same([...textsIn(answer)].sort(), server.asked.flatMap(textsOf).sort());
    if (who === 'user:ger') t.ok(answer.rows.every((r) => r['lang'] === 'de'));
    for (const { name, email } of PEOPLE) {
      t.notOk(JSON.stringify(server.asked).includes(name));
      t.notOk(JSON.stringify(server.asked).includes(email));
    }
  }
  server.asked.length = 0;
  await ask('user:raw', notes(', rerank => true', 'text', 50));
  t.ok(
    PEOPLE.some(({ name }) => JSON.stringify(server.asked).includes(name)),
    'who may see them unmasked has them sent so',
  );
  server.asked.length = 0;
  t.same((await ask('user:non', notes(', rerank => true'))).rows, [], 'no grant: nothing to send');
  t.equal(server.asked.length, 0);
});

t.test('without permission it is refused before anything is read or sent', async (t) => {
  for (const who of ['user:ann', 'user:some']) {
    forms.fronts.takeStatements();
    const answer = await ask(who, notes(', rerank => true'));
    t.same([answer.status, answer.code], [403, 'E2101'], who);
    t.match(answer.message, /`notes` be sent to a reranker/);
    t.same(forms.fronts.takeStatements(), []);
    t.match(await forms.test.records(answer.requestId), [
      { kind: 'decision', decision: 'deny', code: 'E2101' },
    ]);
    t.equal(
      (await ask(who, notes(', rerank => true'), { explain: true })).code,
      'E2101',
      'explain says it too',
    );
    const { outcome } = await (await forms.wire(who)).simple(notes(', rerank => true'));
    t.match(outcome, { kind: 'refused', sqlstate: '42501' });
  }
  t.equal(server.asked.length, 0);
});

t.test('the decision is on disk before anything is sent, and the outcome says what was', async (t) => {
  const seen: unknown[] = [];
  server.answer = async (asked, r) => {
    seen.push((await forms.test.records()).at(-1));
    scored(asked, r);
  };
  const { requestId } = await ask('user:dec', notes(", rerank => 'voyage'", 'text', 3));
  t.match(seen, [
    { kind: 'decision', request_id: requestId, decision: 'allow', objects: ['osl.facets.notes'] },
  ]);
  const [, outcome] = await forms.test.records(requestId);
  const passages = textsIn(await ask('user:dec', notes('', 'text', 50))).length;
  t.match(outcome, { kind: 'outcome', rows: 3 });
  t.same(JSON.parse(outcome?.detail ?? ''), { reranked: { passages, known: 0, requests: 1, tokens: 26 } });
});

t.test('tokens count against a limit, also where the server reports none', async (t) => {
  server.answer = scored;
  const statuses = async (who: string, reranker: string): Promise<readonly number[]> => {
    const all: number[] = [];
    for (let n = 0; n < 4; n++)
      all.push((await ask(who, notes(`, rerank => '${reranker}'`, 'text', 3))).status);
    return all;
  };
  t.same(await statuses('user:metered', 'voyage'), [200, 200, 200, 429], '26 tokens each');
  t.match(await ask('user:metered', notes('')), {
    code: 'E4290',
    message:
      'a limit of the policy is used up: roles.metered.limits[0]: 60 model tokens per day of user:metered',
  });
  t.same(await statuses('user:unreported', 'cohere'), [200, 429, 429, 429], 'estimated from what was sent');
});

t.test('pages, floors, documents and filters hold over the order of the reranker', async (t) => {
  const all = await expected('user:dec', 50);
  const page = async (more: string, topK: number, where = ''): Promise<Answer> => {
    const answer = await ask(
      'user:dec',
      `${notes(`, rerank => true${more}`, 'text, score, cite', topK)}${where}`,
    );
    t.equal(answer.status, 200, answer.message);
    return answer;
  };
  const pages = [await page('', 7), await page(', skip => 7', 7), await page(', skip => 14', 7)];
  t.same(pages.flatMap(textsIn), all.slice(0, 21));
  const floor = worth(all[4] ?? '');
  t.same(
    textsIn(await page(`, min_score => ${floor}`, 20)),
    all.slice(0, 5),
    'the floor is one of its scores',
  );
  t.same(textsIn(await page(`, min_score => ${floor}, skip => 3`, 20)), all.slice(3, 5));
  t.same((await page(', min_score => 1.5', 20)).rows, []);
  const documents = await page(", per => 'document'", 12);
  t.same(textsIn(documents), (await expected('user:dec', 50, ", per => 'document'")).slice(0, 12));
  t.equal(new Set(documents.rows.map((r) => at(r, 'cite', 'doc_id'))).size, 12);
  server.asked.length = 0;
  const german = await page('', 10, " where lang = 'de'");
  t.same(textsIn(german), textsIn(await ask('user:ger', notes(', rerank => true'))), 'a filter holds before');
  const operators = await ask('user:dec', notes(', rerank => true', 'text, similarity(text) as s', 4));
  t.same(textsIn(operators), all.slice(0, 4));
  t.ok(operators.rows.every((r) => typeof r['s'] === 'number'));
  const five = await expected('user:dec', 5);
  t.same(textsIn(await ask('user:dec', notes(", rerank => 'small'", 'text', 5))), five, 'its own candidates');
  const two = `select a.text from ${notes(', rerank => true', 'text', 3).slice(17)} a
    union all select text from ${notes('', 'text', 2).slice(17)} b`;
  t.equal((await ask('user:dec', two)).rows.length, 5);
});

t.test('what the search said of a passage stands in its score_parts', async (t) => {
  const found = await ask('user:dec', notes(', explain_score => true', 'text, score_parts', 50));
  const searched = new Map(
    found.rows.map((r, i) => [r['text'], { rank: i + 1, ...Object(r['score_parts']) }]),
  );
  const answer = await ask(
    'user:dec',
    notes(', rerank => true, explain_score => true', 'text, score_parts', 5),
  );
  t.equal(answer.rows.length, 5);
  for (const { text, score_parts } of answer.rows)
    t.same(score_parts, {
      mode: 'reranked',
      score: worth(String(text)),
      reranker: 'cohere',
      search: searched.get(text),
    });
  const { rows } = await ask('user:dec', notes(', rerank => true', 'score', 5));
  t.same(
    rows,
    answer.rows.map(({ text }) => ({ score: worth(String(text)) })),
    'without `text`, too',
  );
});

t.test('ties stay in the order of the search', async (t) => {
  const found = textsIn(await ask('user:dec', notes('', 'text', 50)));
  server.answer = (asked, r) => scored(asked, r, (text) => (text === found[3] ? 2 : -1e-9));
  const answer = await ask('user:dec', notes(', rerank => true', 'text, score', 6));
  t.same(
    textsIn(answer),
    [3, 0, 1, 2, 4, 5].map((i) => found[i]),
  );
});

t.test('what is hidden changes nothing of what is sent, and nothing of the order', async (t) => {
  const seen = async (): Promise<unknown> => {
    server.asked.length = 0;
    const answer = await ask('user:ger', notes(', rerank => true', 'text, score', 20));
    return [server.asked.map(({ body }) => body), answer.rows];
  };
  const before = await seen();
  const { system } = forms.test.engine;
  await system.query(sql`update press.note set body = body || ' windmill windmill' where lang <> 'de'`);
  await forms.reindex();
  t.same(await seen(), before);
});

t.test('what is wrong is said', async (t) => {
  const refused: readonly (readonly [string, RegExp, number?])[] = [
    [", rerank => 'coher'", /facet `notes` has no reranker `coher`/],
    [", rerank => 'other'", /facet `notes` has no reranker `other`/],
    [", rerank => ''", /no reranker/],
    [', rerank => 1', /`rerank` is true, or the name of a reranker/],
    [', rerank => null', /`rerank` is true, or the name of a reranker/],
    [', rerank => true, diversity => 0.5', /`rerank` and `diversity`/],
    [", rerank => 'small'", /together 5 at most/, 6],
    [", rerank => 'small', skip => 1", /together 5 at most/, 5],
  ];
  for (const [more, message, topK = 3] of refused)
    t.match(await ask('user:dec', notes(more, 'text', topK)), { status: 400, code: 'E0511', message }, more);
  const memos = "select text from RETRIEVE(facet => 'memos', query => 'x', top_k => 1, rerank => true)";
  t.match(await ask('user:ann', memos), { status: 400, code: 'E0511', message: /`memos` has no reranker/ });
  const parameter = await ask('user:dec', notes(', rerank => $1'), { parameters: ['small'] });
  t.match(parameter, { status: 400, code: 'E0511' });
  const { json: explained } = await ask('user:dec', notes(", rerank => 'small'", 'text', 2), {
    explain: true,
  });
  t.match(JSON.stringify(explained), '"rerank":{"reranker":"small","candidates":5}');
  t.equal(server.asked.length, 0);
});

t.test('an answer that is none refuses the question, and the server is not quoted', async (t) => {
  const list = (asked: Asked) => textsOf(asked).map((_, index) => ({ index, relevance_score: 0.5 }));
  const broken: readonly (readonly [string, (asked: Asked, r: ServerResponse) => void, RegExp])[] = [
    ['not JSON', (_, r) => void r.writeHead(200).end('{"results": ['), /not JSON/],
    [
      'NaN',
      (_, r) => void r.writeHead(200).end('{"results": [{"index": 0, "relevance_score": NaN}]}'),
      /not JSON/,
    ],
    ['another shape', (_, r) => json(r, { data: 'secret detail' }), /no list of scores/],
    ['too few', (a, r) => json(r, { results: list(a).slice(1) }), /scores for/],
    [
      'too many',
      (a, r) => json(r, { results: [...list(a), { index: 0, relevance_score: 1 }] }),
      /scores for/,
    ],
    [
      'one twice',
      (a, r) => json(r, { results: list(a).map((one) => ({ ...one, index: Math.max(1, one.index) })) }),
      /number the passages/,
    ],
    [
      'none of them',
      (a, r) => json(r, { results: list(a).map((o) => ({ ...o, index: o.index + 1 })) }),
      /number the/,
    ],
    [
      'a score in words',
      (a, r) => json(r, { results: list(a).map((o) => ({ ...o, relevance_score: '1' })) }),
      /not a number/,
    ],
    ['no score', (a, r) => json(r, { results: list(a).map(({ index }) => ({ index })) }), /not a number/],
    [
      'endless',
      (a, r) =>
        void r
          .writeHead(200)
          .end(
            JSON.stringify({ results: list(a) }).replace('"relevance_score":0.5', '"relevance_score":1e999'),
          ),
      /not a number/,
    ],
    ['a failing server', (_, r) => json(r, { error: 'secret detail' }, 500), /answered 500/],
    ['a refusal', (_, r) => json(r, { message: 'secret detail' }, 401), /answered 401/],
    [
      'another place',
      (_, r) => void r.writeHead(302, { location: `${origin}/v2/rerank` }).end(),
      /cannot be reached/,
    ],
  ];
  for (const [name, answer, reason] of broken) {
    server.answer = answer;
    const refused = await ask('user:dec', notes(', rerank => true'));
    t.match(refused, { status: 503, code: 'E0522', message: reason }, name);
    t.match(refused.message, /^the reranker `cohere` is unavailable/);
    t.notOk(refused.raw.includes('secret detail'));
  }
  server.answer = () => undefined;
  const silent = await ask('user:dec', notes(", rerank => 'hasty'"));
  t.match(silent, { status: 503, code: 'E0522', message: /did not answer in time/ });
  const { outcome } = await (await forms.wire('user:dec')).simple(notes(", rerank => 'away'"));
  t.match(outcome, { kind: 'refused', sqlstate: '55000', message: /OSL_TEST_RERANK_NOWHERE is not set/ });
});

t.test('one request of several that fails refuses the question', async (t) => {
  server.answer = (asked, r) => (textsOf(asked).length < 32 ? json(r, {}, 400) : scored(asked, r));
  t.match(await ask('user:dec', notes(", rerank => 'tei'")), { status: 503, code: 'E0522', message: /400/ });
});

t.test('a server that asks for patience is asked again', async (t) => {
  server.answer = (asked, r) =>
    server.asked.length < 3 ? void r.writeHead(429, { 'retry-after': '0' }).end() : scored(asked, r);
  t.equal((await ask('user:dec', notes(', rerank => true'))).status, 200);
  t.equal(server.asked.length, 3);
});

t.test(
  'statement_timeout, a cancel and the time of the question end it as they end any statement',
  async (t) => {
    server.answer = () => undefined;
    const token = await forms.test.token('user:dec');
    const { client, messages } = await WireClient.attempt(forms.fronts.pgPort, 'user:dec', token);
    t.teardown(() => client.end());
    const key = messages.find((m) => m.type === 'K')?.body ?? Buffer.alloc(8);
    const question = notes(", rerank => 'patient'", 'text');
    await client.simple("set statement_timeout = '150ms'");
    const late = await client.simple(question);
    t.match(late.outcome, { kind: 'refused', sqlstate: '57014', message: /statement timeout/ });
    await client.simple('set statement_timeout = 0');
    server.asked.length = 0;
    const asked = client.simple(question);
    while (server.asked.length === 0) await setTimeout(5);
    const stop = await WireClient.open(forms.fronts.pgPort);
    stop.send(cancelRequest(key.readUInt32BE(0), key.subarray(4)));
    t.match((await asked).outcome, { kind: 'refused', sqlstate: '57014', message: /cancelled/ });
    const cancelled = (await forms.test.records()).filter((r) => r.kind === 'outcome').at(-1);
    t.match(cancelled, { outcome: 'cancelled', code: 'E0516' });
    t.equal(JSON.parse(cancelled?.detail ?? '{}').reranked.requests, 1, 'what was sent is on record');
    t.match(await ask('user:dec', question), { status: 504, code: 'E0517' });
  },
);

t.test('scores are remembered by all that they rest on', async (t) => {
  const ranked = (who: string, more = '') => ask(who, notes(`, rerank => 'kept'${more}`, 'text, score', 4));
  const first = await ranked('user:dec');
  t.same((await ranked('user:dec')).rows, first.rows);
  t.equal((await ranked('user:dec', ', skip => 4')).status, 200);
  t.equal(server.asked.length, 1, 'another page of the same passages is known');
  const { requestId } = await ranked('agent:dec');
  t.equal(server.asked.length, 1, 'to others too who see the same passages');
  const [, outcome] = await forms.test.records(requestId);
  t.same(JSON.parse(outcome?.detail ?? ''), { reranked: { passages: 0, known: 12, requests: 0, tokens: 0 } });
  // Passages that stand beside others may be worth something else.
  server.answer = (asked, r) => scored(asked, r, (text) => worth(`${text} beside ${textsOf(asked).join()}`));
  const german = await ranked('user:ger');
  t.equal(server.asked.length, 2);
  t.same(
    scoresIn(german),
    textsIn(german).map((text) => worth(`${text} beside ${server.asked.slice(1).flatMap(textsOf).join()}`)),
  );
});

t.test('a subject may send so many passages a day: a question is sent whole or not at all', async (t) => {
  const counted = (who: string, where = '') =>
    ask(who, `${notes(", rerank => 'counted'", 'text', 3)}${where}`);
  const refused = await counted('user:dec');
  t.match(refused, { status: 429, code: 'E4290', message: /`counted` is used up/ });
  t.match(refused.raw.toString('utf8'), /retry-after\s\d+/);
  t.equal(server.asked.length, 0);
  const { outcome } = await (await forms.wire('user:dec')).simple(notes(", rerank => 'counted'", 'text', 3));
  t.match(outcome, { kind: 'refused', sqlstate: '53400' });
  const few = await counted('user:dec', " where article_id = 1 and lang = 'de'");
  t.equal(few.status, 200, 'what was not sent is not counted');
  t.ok(server.asked.flatMap(textsOf).length > 0);
});

t.test('a worker has its share of the requests at a time', async (t) => {
  const second = await startForms({
    manifest: MANIFEST,
    policy: POLICY,
    script: articleScript(),
    schema: 'press',
    settings: { content: { ...settingsFrom({}, '/').content, share: { number: 2, count: 2 } } },
  });
  t.teardown(() => second.close());
  let [underWay, most] = [0, 0];
  server.answer = async (asked, r) => {
    underWay++;
    most = Math.max(most, underWay);
    await setTimeout(200); // long enough for another, if it came
    underWay--;
    scored(asked, r);
  };
  t.equal((await second.ask('user:dec', notes(", rerank => 'three'"))).status, 200);
  t.same([server.asked.length, most], [2, 1], 'of three places it has one');
});

t.test('two legs are fused first, and what comes of them is reranked', async (t) => {
  const embeddings = await toyEmbeddings();
  t.teardown(() => embeddings.close());
  const retrieval = '{ max_top_k: 100, hybrid: true, rerankers: [cohere] }';
  const world = vectorsWorld(retrieval, NOTES.slice(0, 160), embeddings.url);
  const rerankers = `rerankers: { cohere: ${declared('cohere', 'candidates: 30')} }\nfacets:`;
  const hybrid = await startForms({
    ...world,
    manifest: world.manifest.replace('facets:', rerankers),
    policy: VECTORS_DECODING,
  });
  t.teardown(() => hybrid.close());
  const query = NOTES[10]?.body ?? '';
  const of = async (more: string, topK: number) => {
    const osql = `select text, score from RETRIEVE(facet => 'notes', query => '${query}', top_k => ${topK}${more})`;
    const answer = await hybrid.ask('user:ann', osql);
    t.equal(answer.status, 200, answer.message);
    return textsIn(answer);
  };
  for (const more of [
    '',
    ", mode => 'lexical'",
    ", mode => 'dense'",
    ", fuse => 'score'",
    ", per => 'document'",
  ]) {
    const best = [...(await of(more, 30))].sort((a, b) => worth(b) - worth(a));
    t.same(await of(`${more}, rerank => true`, 10), best.slice(0, 10), more);
    t.same(await of(`${more}, rerank => true, skip => 10`, 10), best.slice(10, 20), more);
  }
});
