import { type Forms, startForms } from '../../language/forms/fixture.js';
import { toyEmbeddings } from '../../language/forms/vectors.js';
import { facetText, manifestText, policyText } from '../../support/model-text.js';

/** Notes about articles, of which both legs of a facet are searched: small enough to work answers out by hand. */
const MANIFEST = manifestText(
  'press',
  {
    'press.article': 'id int4, region text not null, views int4 not null',
    'press.note': 'id text, article_id int4 not null, lang text not null, body text not null',
  },
  `entities:
  article: { source: db.press.article, primary_key: [id], columns: [id, region, views] }
facets:
${facetText('notes', 'press.note', 'article', 'article_id')}
    metadata: [lang]
    scalar_indexed: [article_id, lang]
    chunking: { max_chars: 100, overlap_chars: 0 }
    embedding: { model: toy }
    versions: { raw: {} }
    retrieval: { max_top_k: 50, hybrid: true }
`,
);

/** `user:all` everything · `user:eu` articles of the EU · `user:de` notes in German */
const POLICY = policyText(
  'press',
  {
    'user:all': 'all',
    'user:eu': 'regional',
    'user:de': 'german',
  },
  `roles:
  all: { grants: [{ on: article, columns: "*" }, { on: notes, columns: "*" }] }
  regional: { grants: [{ on: article, columns: "*", rows: "region = 'eu'" }, { on: notes, columns: "*" }] }
  german: { grants: [{ on: article, columns: "*" }, { on: notes, columns: "*", rows: "lang = 'de'" }] }
masks: {}
limits: { query: 100000, sample: 1000, schema: 1000, authoring: 1000, catalog: 1000 }
`,
);

const LONG =
  'canal lock canal gate canal water canal barge canal bridge canal tow canal path canal boat canal';

const SCRIPT = `
create schema press;
create table press.article (id int4 primary key, region text not null, views int4 not null);
create table press.note (id text primary key, article_id int4 not null, lang text not null, body text not null);
insert into press.article values (1, 'eu', 10), (2, 'us', 20), (3, 'eu', 30);
insert into press.note values
  ('n1', 1, 'de', 'canal mill'),
  ('n2', 1, 'en', 'canal canal mill harbour'),
  ('n3', 2, 'de', 'canal canal canal'),
  ('n4', 2, 'en', 'mill mill mill canal'),
  ('n5', 3, 'de', 'harbour'),
  ('n6', 3, 'en', '${LONG}. ${LONG} mill.');
`;

/** A service that counts for every question anew, so that no case hangs on those before it. */
export async function openRetrieved(): Promise<Forms> {
  const model = await toyEmbeddings();
  const content = { embeddings: { url: model.url, keyEnv: null }, chat: null };
  const options = {
    manifest: MANIFEST,
    policy: POLICY,
    script: SCRIPT,
    schema: 'press',
    settings: { content },
  };
  const forms = await startForms(options, (service) => ({
    ...service,
    permitted: { areMany: async () => false },
    words: { count: (...args) => service.words.count(...args), confirm: () => true },
  }));
  return {
    ...forms,
    async close() {
      await forms.close();
      await model.close();
    },
  };
}
