import { type Asked, json, type ModelServer, modelServer } from '../../content/server.js';
import { facetText, manifestText, policyText } from '../../support/model-text.js';

/** Notes about articles in two regions, as vectors of a model. */
export function vectorsManifest(retrieval: string): string {
  return manifestText(
    'press',
    {
      'press.article': 'id int4, region text not null',
      'press.note': 'id text, article_id int4 not null, lang text not null, body text not null',
    },
    `entities:
  article:
    source: db.press.article
    primary_key: [id]
    columns: [id, region]
facets:
${facetText('notes', 'press.note', 'article', 'article_id')}
    metadata: [lang]
    scalar_indexed: [article_id, lang]
    embedding: { model: toy }
    versions: { raw: {} }
    retrieval: ${retrieval}
`,
  );
}

/** `user:ann` all · `user:eu` articles of the EU · `user:de` notes in German · `user:odd` seven notes */
export const VECTORS_POLICY = policyText(
  'press',
  {
    'user:ann': 'all',
    'user:eu': 'regional { attributes: { region: eu } }',
    'user:de': 'german',
    'user:odd': 'odd',
  },
  `roles:
  all: ${grants('', '')}
  regional: ${grants(`, rows: "region = attribute('region')"`, '')}
  german: ${grants('', `, rows: "lang = 'de'"`)}
  odd: ${grants('', `, rows: "lang = 'xx'"`)}
masks: {}
limits: { query: 1000000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

function grants(ofArticle: string, ofNotes: string): string {
  return `\n    grants:\n      - { on: article, columns: "*"${ofArticle} }\n      - { on: notes, columns: "*"${ofNotes} }`;
}

export interface Note {
  readonly id: string;
  readonly article: number;
  readonly lang: string;
  readonly body: string;
}

const WORDS = 300;

/** Numbers in [0, 1), the same for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const draw = random(7);

/** Notes of twelve words; odd articles lie in the EU, every third note is German, seven are in no language. */
export const NOTES: readonly Note[] = Array.from({ length: 2_200 }, (_, i) => ({
  id: `n${String(i).padStart(4, '0')}`,
  article: 1 + (i % 100),
  lang: i % 343 === 1 ? 'xx' : i % 3 === 0 ? 'de' : 'en',
  body: Array.from({ length: 12 }, () => `w${Math.floor(draw() * WORDS)}`).join(' '),
}));

export function insertNotes(notes: readonly Note[]): string {
  const rows = notes.map((n) => `('${n.id}', ${n.article}, '${n.lang}', '${n.body}')`);
  return `insert into press.note values ${rows.join(',\n')};`;
}

export function vectorsScript(notes: readonly Note[]): string {
  return `
create schema press;
create table press.article (id int4 primary key, region text not null);
create table press.note (id text primary key, article_id int4 not null, lang text not null, body text not null);
insert into press.article select n, case when n % 2 = 1 then 'eu' else 'us' end from generate_series(1, 100) as n;
${insertNotes(notes)}
`;
}

const DIMENSIONS = 64;

/** The sum of what its words stand for, each a direction of its own. */
export function toyVector(text: string): readonly number[] {
  const sum = new Array<number>(DIMENSIONS).fill(0);
  for (const word of text.split(' ')) {
    const next = random([...word].reduce((h, c) => Math.imul(h, 31) + c.charCodeAt(0), 7) >>> 0);
    next();
    for (let i = 0; i < DIMENSIONS; i++) sum[i] = (sum[i] ?? 0) + next() - 0.5;
  }
  return sum;
}

/** A real endpoint with a model that needs none. */
export async function toyEmbeddings(): Promise<ModelServer> {
  const server = await modelServer();
  server.answer = ({ body }: Asked, response) => {
    const input = body['input'] as readonly string[]; // the protocol's
    json(response, { data: input.map((text, index) => ({ index, embedding: toyVector(text) })) });
  };
  return server;
}

/** Options of a service over these notes, whose vectors the model at `url` makes. */
export function vectorsWorld(retrieval: string, notes: readonly Note[], url: string) {
  const content = { embeddings: { url, keyEnv: null }, chat: null };
  return {
    manifest: vectorsManifest(retrieval),
    policy: VECTORS_POLICY,
    script: vectorsScript(notes),
    schema: 'press',
    settings: { content },
  } as const;
}
