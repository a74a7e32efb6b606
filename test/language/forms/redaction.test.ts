import t from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { ngramVector } from '../../../src/content/embed/lexical-v1.js';
import { termsOf } from '../../../src/content/index.js';
import { lexicalWeights } from '../../../src/content/lexical/bm25.js';
import { parseVector } from '../../content/reference.js';
import { fc, SEED } from '../../support/fast-check.js';
import { ARTICLES_MANIFEST, ARTICLES_POLICY, articleScript } from './articles.js';
import { startForms } from './fixture.js';

/** Worlds of people and notes that are tried; the nightly run tries more. */
const RUNS = Number(process.env['OSL_REDACTION_RUNS'] ?? 12);

t.setTimeout(180_000 + RUNS * 5_000);
t.comment(`${RUNS} worlds, seed ${SEED}`);

const MANIFEST = ARTICLES_MANIFEST.replace(
  '    legs: [notes]\n',
  '    legs: [notes]\n    derived: { kind: { facet: notes, operator: CLASSIFY, labels: [mill, harbour] } }\n',
);
const forms = await startForms({
  manifest: MANIFEST,
  policy: ARTICLES_POLICY,
  script: articleScript([]).replace(/INSERT INTO press\.note VALUES\s*;/, ''),
  schema: 'press',
});
t.teardown(() => forms.close());
const { system } = forms.test.engine;

// ---- what people are called, and how a text may write it

const SCRIPTS = ['abcdefgo', 'éüßñçøå', 'αβγσς', 'жшюя', '张伟李娜', '0123456789'];
const syllables = fc.oneof(
  ...SCRIPTS.slice(0, 4).map((letters) =>
    fc.string({ unit: fc.constantFrom(...letters), minLength: 3, maxLength: 7 }),
  ),
);
const han = fc.string({ unit: fc.constantFrom(...'张伟李娜'), minLength: 2, maxLength: 3 });
const name = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.array(syllables, { minLength: 1, maxLength: 3 }).map((words) => words.join(' ')),
  },
  { weight: 1, arbitrary: han },
  { weight: 1, arbitrary: fc.tuple(syllables, syllables).map(([a, b]) => `${a}-${b}`) },
  { weight: 1, arbitrary: fc.tuple(syllables, syllables).map(([a, b]) => `${b}, ${a}`) },
);
const address = fc
  .tuple(
    fc.string({ unit: fc.constantFrom(...'abcxyz'), minLength: 3, maxLength: 6 }),
    fc.constantFrom('corp', 'x.example'),
  )
  .map(([local, host]) => `${local}@${host}`);
const people = fc.array(fc.record({ name, email: address }), { minLength: 1, maxLength: 5 });

/** Ways to write a value that are the same to its reader. */
const DISGUISES: readonly ((value: string) => string)[] = [
  (v) => v,
  (v) => v.toUpperCase(),
  (v) => v.normalize('NFD'),
  (v) => v.replaceAll(' ', '\n  '),
  (v) => v.replaceAll(' ', '\u00a0'),
  (v) => `${v.slice(0, 1)}\u00ad${v.slice(1)}`,
  (v) => [...v].join('\u200b'),
  (v) => v.replace(/[a-z]/g, (c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0)), // full width
];
const AROUND = ['', ' ', '.', '(', '_', '“', '😀', '\n\n', '/', 'https://x/?q=', '*'] as const;

type Piece = {
  readonly person: number;
  readonly field: 'name' | 'email';
  readonly disguise: number;
  readonly before: string;
  readonly after: string;
};
const piece = fc.record<Piece>({
  person: fc.nat(4),
  field: fc.constantFrom('name', 'email'),
  disguise: fc.nat(DISGUISES.length - 1),
  before: fc.constantFrom(...AROUND),
  after: fc.constantFrom(...AROUND),
});
const words = fc.array(fc.constantFrom('the', 'report', 'mill', 'harbour', 'turned', 'slowly', 'x'), {
  maxLength: 40,
});
const document = fc.array(fc.tuple(words, piece), { minLength: 1, maxLength: 8 });
const world = fc.record({ people, documents: fc.array(document, { minLength: 1, maxLength: 4 }) });

interface Person {
  readonly name: string;
  readonly email: string;
}

function written(parts: readonly (readonly [readonly string[], Piece])[], all: readonly Person[]): string {
  return parts
    .map(([filler, p]) => {
      const value = all[p.person % all.length]?.[p.field] ?? '';
      return `${filler.join(' ')} ${p.before}${DISGUISES[p.disguise]?.(value)}${p.after}`;
    })
    .join(' ');
}

// ---- whether a value stands in a text, told by other means than the indexer's

const LETTER = '(?!\\p{Script=Han})[\\p{L}\\p{N}\\p{M}]';

function plain(text: string): string {
  const visible = text.replace(/\p{Default_Ignorable_Code_Point}/gu, '').normalize('NFKC');
  return visible
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .normalize('NFKC')
    .replace(/\s+/gu, ' ');
}

function holds(text: string, value: string): boolean {
  const escaped = plain(value)
    .trim()
    .replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  return new RegExp(`(?<!${LETTER})${escaped}(?!${LETTER})`, 'u').test(plain(text));
}

/** Every text in a JSON value, names of members included. */
function texts(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(texts);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => [key, ...texts(member)]);
}

// ---- the world in the database, and all that is made of it

async function put(all: readonly Person[], bodies: readonly string[]): Promise<void> {
  await system.script(sql`delete from press.note; delete from press.person`);
  for (const [i, p] of all.entries())
    await system.query(sql`insert into press.person values ($1, $2, $3)`, [`p${i}`, p.name, p.email]);
  for (const [i, body] of bodies.entries()) {
    const person = all[i % all.length];
    // A value in the id, in free metadata, in a list, and in the field that is declared.
    await system.query(
      sql`insert into press.note (id, article_id, lang, words, tags, source, author, body, score)
       values ($1, $2, $3, 1, $4, $5, $6, $7, $8)`,
      [
        i === 0 ? `note by ${person?.email}` : `n${i}`,
        1 + i,
        i % 2 === 0 ? 'en' : (person?.name ?? ''),
        ['a', person?.name ?? ''],
        `desk of ${person?.name}`,
        person?.name ?? '',
        body,
        person?.email ?? '',
      ],
    );
  }
  await forms.reindex();
}

/** Every text in the tables of one version, and of what is known of them. */
async function stored(version: string): Promise<readonly string[]> {
  const tables = await system.query(
    sql`select table_name as t from information_schema.tables where table_schema = 'osl_content'`,
  );
  const found: string[] = [];
  for (const { t: table } of tables) {
    const control = table === 'facet' || table === 'document';
    if (!control && !String(table).startsWith(`notes__${version}`)) continue;
    const where = control ? `where x.version = '${version}' and x.facet = 'notes'` : '';
    const rows = await system.query(
      generatedSql(`select to_jsonb(x)::text as row from osl_content."${table}" x ${where}`),
    );
    for (const { row } of rows) found.push(...texts(JSON.parse(String(row))));
  }
  return found;
}

const QUESTIONS = [
  `select text, score, cite, article_id, lang, tags, source, author, redacted_fields from
     RETRIEVE(facet => 'notes', query => 'the report turned slowly mill harbour x', top_k => 50)`,
  `select dedup(text), classify(text, ARRAY['mill', 'x']) from
     RETRIEVE(facet => 'notes', query => 'the report turned slowly mill harbour x', top_k => 50)`,
  'select id, kind, evidence from osl.entities.article where id in (1, 2, 3, 4)',
];

async function served(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const question of QUESTIONS) found.push(...texts((await forms.ask('user:ann', question)).json));
  const authorization = `Bearer ${await forms.test.token('user:ann')}`;
  const sample = await fetch(`http://127.0.0.1:${forms.fronts.httpPort}/osl/sample`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization },
    body: JSON.stringify({ kind: 'facet', name: 'notes', limit: 100 }),
  });
  found.push(...texts(await sample.json()));
  const client = await forms.wire('user:ann');
  for (const question of QUESTIONS) {
    const { outcome } = await client.simple(question);
    if (outcome.kind === 'rows') found.push(...texts(outcome.rows), ...jsonIn(outcome.rows));
  }
  client.end();
  return found;
}

/** Texts inside of jsonb cells, whose escapes would hide them. */
function jsonIn(rows: readonly (readonly (string | null)[])[]): readonly string[] {
  const cells = rows.flat().filter((c) => c?.startsWith('{"') === true || c?.startsWith('[{') === true);
  return cells.flatMap((c) => texts(JSON.parse(c ?? 'null')));
}

t.test('the oracle finds a value however it is written, and none that is not there', async (t) => {
  for (const [i, disguise] of DISGUISES.entries())
    for (const value of ['Zoë Straße', 'abc@x.example', 'αβσ'])
      t.ok(holds(`by (${disguise(value)}).`, value), `${i} ${value}`);
  t.notOk(holds('Annabel', 'Anna'));
  t.notOk(holds('[redacted] Zoë', 'Zoë Straße'));
});

t.test('no declared value is stored, embedded or served in the masked version', async (t) => {
  let clear = 0;
  const property = fc.asyncProperty(world, async ({ people: all, documents }) => {
    const bodies = documents.map((d) => written(d, all));
    await put(all, bodies);
    const values = all.flatMap((p) => [p.name, p.email]);
    const everything = [...(await stored('masked')), ...(await served())];
    const leak = values.find((v) => everything.some((text) => holds(text, v)));
    if (leak !== undefined) {
      const where = everything.find((text) => holds(text, leak));
      throw new Error(`${JSON.stringify(leak)} stands in ${JSON.stringify(where?.slice(0, 300))}`);
    }
    const raw = await stored('raw');
    clear += values.filter((v) => raw.some((text) => holds(text, v))).length;
    await vectorsAreOfTheText();
  });
  await fc.assert(property, { numRuns: RUNS, seed: SEED });
  t.ok(clear > RUNS, `the raw version holds ${clear} of them`);
});

/** Words, weights and vectors are what the stored text gives, so that they cannot hold what it does not. */
async function vectorsAreOfTheText(): Promise<void> {
  const rows = await system.query(
    sql`select text, terms::text as terms, lex::text as lex, dense::text as dense from osl_content.notes__masked`,
  );
  const [facet] = await system.query(
    sql`select average_length from osl_content.facet where facet = 'notes' and version = 'masked'`,
  );
  const average = Number(facet?.['average_length']);
  for (const row of rows) {
    const text = String(row['text']);
    const terms = termsOf(text);
    const same =
      row['terms'] === `{${terms.ids.join(',')}}` &&
      row['lex'] === lexicalWeights(terms, average) &&
      String(parseVector(String(row['dense']))) === String(ngramVector(text));
    if (!same) throw new Error('a vector is not that of its text');
  }
}
