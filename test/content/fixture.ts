import { ready } from 'osl-compiler';
import { generatedSql, sql } from '../../src/base/sql.js';
import type { Embedder, IndexOptions, IndexSummary } from '../../src/content/index.js';
import { indexFacet, lexicalEmbedder } from '../../src/content/index.js';
import { type OpenedEngine, openEngine, type SystemEngine } from '../../src/engine/index.js';
import type { Facet, Manifest } from '../../src/model/manifest/index.js';
import { parseManifest } from '../../src/model/manifest/index.js';
import { emptyDatabaseOfItsOwn } from '../support/embedded-data.js';
import { facetText } from '../support/model-text.js';
import { startNativePostgres } from '../support/native-postgres.js';

await ready();

export const TEXT = `version: 1
connectors:
  db:
    kind: pglite
    tables:
      shop.person:
        columns:
          id: { type: text }
          name: { type: text, sensitivity: person }
          email: { type: text, pii: true }
          phones: { type: "text[]", pii: true }
          profile: { type: jsonb, pii: true }
          photo: { type: bytea, pii: true }
      shop.article:
        columns:
          id: { type: text }
          product: { type: int4 }
          author: { type: text, sensitivity: person }
          title: { type: text }
          words: { type: int4 }
          ordinal: { type: int4 }
          body: { type: text }
      shop.product:
        columns: { id: { type: int4 } }
entities:
  product: { source: db.shop.product, primary_key: [id], columns: [id] }
facets:
${facetText('article', 'shop.article', 'product', 'product')}
    metadata: [author, title, words, ordinal]
    scalar_indexed: [product, words]
    chunking: { max_chars: 200, overlap_chars: 40 }
    dictionary: tenant
    versions:
      raw: {}
      masked: { redact: [pii, person], detectors: [email, secret, phone] }
    retrieval: { max_top_k: 50 }
`;

export const manifest: Manifest = parseManifest(TEXT, 'shop.yaml');
export const facet: Facet = facetOf(manifest);

/** The same with an attribute of products that is taken from their articles. */
export const derivingManifest: Manifest = parseManifest(
  TEXT.replace(
    'columns: [id] }',
    'columns: [id], derived: { place: { facet: article, operator: CLASSIFY, labels: [windmill, harbour, ledger] } } }',
  ),
  'shop.yaml',
);

/** The same where two labelled values are said to be words. */
export const exceptingManifest: Manifest = parseManifest(
  TEXT.replace('    dictionary: tenant\n', '    dictionary: tenant\n    exceptions: [README, strasser]\n'),
  'shop.yaml',
);

export function facetOf({ facets }: Manifest): Facet {
  const found = facets.get('article');
  if (found === undefined) throw new Error('no facet article');
  return found;
}

/** The embedded engine, or with OSL_TEST_ENGINE=postgres a native one, which must have pgvector. */
export async function testEngine(): Promise<OpenedEngine> {
  if (process.env['OSL_TEST_ENGINE'] !== 'postgres')
    return openEngine({ kind: 'pglite', dataDir: await emptyDatabaseOfItsOwn() });
  const postgres = await startNativePostgres();
  if (postgres === null) throw new Error('OSL_TEST_ENGINE=postgres needs a native Postgres');
  const { readerUrl: url, url: systemUrl } = postgres;
  const engine = await openEngine({ kind: 'postgres', url, systemUrl, poolSize: 2 });
  const close = async (): Promise<void> => {
    await engine.close();
    await postgres.stop();
  };
  return { ...engine, close };
}

export interface Article {
  readonly id: string;
  readonly product: number | null;
  readonly author: string | null;
  readonly title: string;
  readonly words: number;
  readonly body: string;
}

export interface Person {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly phones?: readonly string[];
  readonly profile?: unknown;
}

export const PEOPLE: readonly Person[] = [
  { id: 'p1', name: 'Zoë Ångström', email: 'zoe@example.com', phones: ['555-0100-22'] },
  {
    id: 'p2',
    name: 'Straßer',
    email: 'hans.strasser@corp.example',
    profile: { nick: 'hansi-the-great', tags: ['x'] },
  },
  { id: 'p3', name: 'Li', email: null },
];

export const ARTICLES: readonly Article[] = [
  article(
    'a1',
    1,
    'Zoë Ångström',
    'On mills',
    `# Mills\n\n${prose('windmill', 12)}\n\nWritten by ZOE\u0308  ÅNGSTRÖM <zoe@example.com>.`,
  ),
  article(
    'a2',
    2,
    'STRASSER',
    'Notes by Straßer',
    `${prose('harbour', 8)} Ask STRASSER, or hansi-the-great. 😀😀 ${prose('crane', 8)}`,
  ),
  article(
    'a3',
    1,
    null,
    'Lists',
    `- one\n- two\n\n${prose('ledger', 3)} token: ghp_${'a1B2'.repeat(9)} and other@host.example.org`,
  ),
  article('Straßer/a4', 3, 'x', 'Empty', ''),
  article('Straßer/a5', null, 'x', 'Short', 'The windmill of Zoë Ångströmsson stands.'),
];

export function article(
  id: string,
  product: number | null,
  author: string | null,
  title: string,
  body: string,
): Article {
  return { id, product, author, title, words: body.length, body };
}

/** `count` sentences about `word`, all different. */
export function prose(word: string, count: number): string {
  return Array.from(
    { length: count },
    (_, i) => `The ${word} number ${i} turns slowly in the morning wind.`,
  ).join(' ');
}

export async function createShop(
  system: SystemEngine,
  people: readonly Person[] = PEOPLE,
  articles: readonly Article[] = ARTICLES,
): Promise<void> {
  await system.script(sql`
    drop schema if exists shop cascade; drop schema if exists osl_content cascade;
    create schema shop;
    create table shop.person (id text primary key, name text, email text, phones text[], profile jsonb, photo bytea);
    create table shop.product (id int4 primary key);
    create table shop.article (id text primary key, product int4, author text, title text, words int4, ordinal int4, body text);
  `);
  for (const p of people) {
    await system.query(sql`insert into shop.person values ($1, $2, $3, $4, $5::jsonb, null)`, [
      p.id,
      p.name,
      p.email,
      p.phones ?? null,
      p.profile === undefined ? null : JSON.stringify(p.profile),
    ]);
  }
  for (const a of articles) await putArticle(system, a);
}

export async function putArticle(system: SystemEngine, a: Article): Promise<void> {
  await system.query(
    sql`insert into shop.article values ($1, $2, $3, $4, $5, 7, $6)
     on conflict (id) do update set product = $2, author = $3, title = $4, words = $5, body = $6`,
    [a.id, a.product, a.author, a.title, a.words, a.body],
  );
}

export async function indexShop(
  system: SystemEngine,
  version: string,
  more: Partial<IndexOptions> = {},
  of: Manifest = manifest,
): Promise<IndexSummary> {
  const options = { embedder: lexicalEmbedder, versions: [version], batch: 2, ...more };
  const [summary] = await indexFacet(system, of, facetOf(of), options);
  if (summary === undefined) throw new Error('no summary');
  return summary;
}

/** Every row of a version's store, in the order of chunk ids. */
export function storeRows(system: SystemEngine, version: string): Promise<Record<string, unknown>[]> {
  return system.query(generatedSql(`select * from osl_content."article__${version}" order by chunk_id`));
}

/** Every row of what is derived from a version's passages. */
export function derivedRows(system: SystemEngine, version: string): Promise<Record<string, unknown>[]> {
  return system.query(
    generatedSql(`select * from osl_content."article__${version}__derived" order by chunk_id, attribute`),
  );
}

/** `base`, counting the texts it embeds, and calling `before` first. */
export function counting(base: Embedder, before: () => void = () => {}): Embedder & { texts: number } {
  const counted = {
    ...base,
    texts: 0,
    embed(texts: readonly string[], role: 'document' | 'query', signal?: AbortSignal) {
      before();
      counted.texts += texts.length;
      return base.embed(texts, role, signal);
    },
  };
  return counted;
}
