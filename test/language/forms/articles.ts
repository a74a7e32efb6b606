import { facetText, grantsText, manifestText, policyText } from '../../support/model-text.js';

/** Articles in two regions with notes about them, and accounts whose keys only some callers may read. */
export const ARTICLES_MANIFEST = manifestText(
  'press',
  {
    'press.article': 'id int4, title text not null, region text not null, views int4 not null',
    'press.person': 'id text, name text person, email text pii',
    'press.note': `id text, article_id int4 not null, lang text not null, words int4, rating float8, tags text[],
    source text, author text person, score text, body text not null`,
    'press.account': 'code text secret, title text',
    'press.memo': 'id text, account text, body text',
  },
  `entities:
  article:
    source: db.press.article
    primary_key: [id]
    columns: [id, title, region, views]
    legs: [notes]
  person:
    source: db.press.person
    primary_key: [id]
    columns: [id, name, email]
  account:
    source: db.press.account
    primary_key: [code]
    columns: [code, title]
facets:
${facetText('notes', 'press.note', 'article', 'article_id')}
    metadata: [lang, words, rating, tags, source, author, score]
    scalar_indexed: [article_id, lang]
    chunking: { max_chars: 300, overlap_chars: 0 }
    dictionary: tenant
    versions:
      raw: {}
      masked: { redact: [pii, person], detectors: [email, secret] }
    retrieval: { max_top_k: 50 }
${facetText('memos', 'press.memo', 'account', 'account')}
    scalar_indexed: [account]
    versions:
      raw: {}
    retrieval: { max_top_k: 10 }
`,
);

/**
 * `user:ann` masked · `user:ada` raw · `user:eu` articles of the EU only · `user:de` notes in German only ·
 * `user:non` no grant on notes · `user:odd` an unmask set that no version fits exactly · `user:acc` account keys in the clear
 * · `user:both` masked and raw · `user:mix` masked, and raw in German only
 */
export const ARTICLES_POLICY = policyText(
  'press',
  {
    'user:ann': 'masked',
    'user:ada': 'raw',
    'user:eu': 'regional { attributes: { region: eu } }',
    'user:de': 'german',
    'user:non': 'none',
    'user:odd': 'odd',
    'user:both': 'masked, raw',
    'user:mix': 'masked, german_raw',
    'user:acc': 'keys',
  },
  `roles:
  masked:
    grants:
${grantsText(['article', 'person', 'notes', 'account', 'memos'])}
  raw:
    grants:
      - { on: article, columns: "*" }
      - { on: notes, columns: "*", unmask: [pii, person] }
  regional:
    grants:
      - { on: article, columns: "*", rows: "region = attribute('region')" }
      - { on: notes, columns: "*" }
  german:
    grants:
      - { on: article, columns: "*" }
      - { on: notes, columns: "*", rows: "lang = 'de'" }
  german_raw:
    grants:
      - { on: notes, columns: "*", unmask: [pii, person], rows: "lang = 'de'" }
  none:
    grants:
      - { on: article, columns: "*" }
  odd:
    grants:
      - { on: article, columns: "*" }
      - { on: notes, columns: "*", unmask: [pii] }
  keys:
    grants:
      - { on: account, columns: "*", unmask: [secret] }
      - { on: memos, columns: "*", unmask: [secret] }
masks:
  pii: redact
  person: redact
  secret: redact
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

/**
 * The policy in which passages of `notes` may leave by the roles `decoding` (all) and `german_decoding` (those in German);
 * `subjects` and `roles` are more of both.
 */
export function decodingPolicy(subjects: string, roles = ''): string {
  return ARTICLES_POLICY.replace(
    'roles:\n',
    `  user:dec: { ceiling: [decoding] }
  user:some: { ceiling: [masked, german_decoding] }
  user:ger: { ceiling: [german_decoding] }
  agent:dec: { ceiling: [masked, decoding] }
${subjects}roles:
  decoding:
    grants:
      - { on: article, columns: "*" }
      - { on: notes, columns: "*", decode: true }
  german_decoding:
    grants:
      - { on: article, columns: "*" }
      - { on: notes, columns: "*", rows: "lang = 'de'", decode: true }
${roles}`,
  );
}

export interface Note {
  readonly id: string;
  readonly article: number;
  readonly lang: string;
  readonly body: string;
}

export const PEOPLE = [
  { name: 'Zoë Ångström', email: 'zoe@press.example' },
  { name: 'Balthasar Quux', email: 'b.quux@corp.example' },
] as const;

const SUBJECTS = ['windmill', 'harbour', 'ledger', 'telescope', 'orchard', 'lantern'] as const;

/** Notes 1 … 24: odd articles lie in the EU; every third note is German. */
export const NOTES: readonly Note[] = Array.from({ length: 24 }, (_, i) => {
  const n = i + 1;
  const subject = SUBJECTS[i % SUBJECTS.length] ?? '';
  const person = PEOPLE[i % 2] ?? PEOPLE[0];
  return {
    id: `n${String(n).padStart(2, '0')}`,
    article: 1 + (i % 8),
    lang: n % 3 === 0 ? 'de' : 'en',
    body:
      `😀 Report ${n} on the ${subject}${` ${subject}`.repeat(n % 4)}.\n\n` +
      `Written by ${person.name} (${person.email}), token ghp_${'aB3d'.repeat(9)}. ` +
      `The report says that the ${subject} turned slowly for ${n} days. `.repeat(1 + (n % 5)),
  };
});

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;

/** The statement that makes these notes. */
export function noteScript(notes: readonly Note[]): string {
  const rows = notes.map(
    (n, i) =>
      `(${text(n.id)}, ${n.article}, ${text(n.lang)}, ${i}, ${i === 0 ? "'Infinity'" : `${i}.5`}, ` +
      `ARRAY['a b', NULL, 'c"d'], 'desk ${i}', ${text(PEOPLE[i % 2]?.name ?? '')}, ${text(n.body)})`,
  );
  return `INSERT INTO press.note VALUES ${rows.join(',\n')};`;
}

export function articleScript(notes: readonly Note[] = NOTES): string {
  return `
CREATE SCHEMA press;
CREATE TABLE press.article (id int4 PRIMARY KEY, title text NOT NULL, region text NOT NULL, views int4 NOT NULL);
CREATE TABLE press.person (id text PRIMARY KEY, name text, email text);
CREATE TABLE press.note (id text PRIMARY KEY, article_id int4 NOT NULL, lang text NOT NULL, words int4, rating float8,
  tags text[], source text, author text, body text NOT NULL, score text DEFAULT 'high');
CREATE TABLE press.account (code text PRIMARY KEY, title text);
CREATE TABLE press.memo (id text PRIMARY KEY, account text, body text);
INSERT INTO press.article SELECT n, 'Article ' || n, CASE WHEN n % 2 = 1 THEN 'eu' ELSE 'us' END, n * 10
  FROM generate_series(1, 9) AS n;
INSERT INTO press.person VALUES ${PEOPLE.map((p, i) => `('p${i}', ${text(p.name)}, ${text(p.email)})`).join(', ')};
${noteScript(notes)}
INSERT INTO press.account VALUES ('acc-1', 'First'), ('acc-2', 'Second');
INSERT INTO press.memo VALUES ('m1', 'acc-1', 'A memo on the budget.'), ('m2', 'acc-2', 'A memo on the roof.');
`;
}

/** Options of a service over these articles. */
export function articlesWorld(notes: readonly Note[] = NOTES) {
  const script = articleScript(notes);
  return { manifest: ARTICLES_MANIFEST, policy: ARTICLES_POLICY, script, schema: 'press' } as const;
}
