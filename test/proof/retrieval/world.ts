import { facetText, manifestText } from '../../support/model-text.js';
import type { Dice } from '../oracle/dice.js';

/** Notes about articles, found by words alone (`plain`) and by both legs (`notes`); `asked` keeps the vectors of queries. */
export const MANIFEST = manifestText(
  'press',
  {
    'press.article': 'id int4, region text not null, views int4 not null',
    'press.person': 'id int4, name text person',
    'press.note': 'id text, article_id int4 not null, lang text not null, body text not null',
    'press.asked': 'id text, article_id int4 not null, body text not null',
  },
  `entities:
  article: { source: db.press.article, primary_key: [id], columns: [id, region, views] }
  person: { source: db.press.person, primary_key: [id], columns: [id, name] }
facets:
${facetText('notes', 'press.note', 'article', 'article_id')}
    metadata: [lang]
    scalar_indexed: [article_id, lang]
    chunking: { max_chars: 100, overlap_chars: 0 }
    dictionary: tenant
    embedding: { model: toy }
    versions: { raw: {}, masked: { redact: [person], detectors: [email] } }
    retrieval: { max_top_k: 1000, hybrid: true }
${facetText('plain', 'press.note', 'article', 'article_id')}
    metadata: [lang]
    scalar_indexed: [article_id, lang]
    chunking: { max_chars: 100, overlap_chars: 0 }
    dictionary: tenant
    versions: { raw: {}, masked: { redact: [person], detectors: [email] } }
    retrieval: { max_top_k: 1000 }
${facetText('asked', 'press.asked', 'article', 'article_id')}
    versions: { raw: {} }
    retrieval: { max_top_k: 10 }
`,
);

/** Who asks, what is shown to them, and in which version. */
export interface Asker {
  readonly name: string;
  readonly version: 'raw' | 'masked';
  readonly articles: (article: Article) => boolean;
  readonly notes: (note: Note) => boolean;
  /** The same two as policy says them. */
  readonly rows: { readonly article: string; readonly notes: string };
}

const EVERY = (): boolean => true;

export const ASKERS: readonly Asker[] = [
  { name: 'ann', version: 'masked', articles: EVERY, notes: EVERY, rows: { article: '', notes: '' } },
  { name: 'ada', version: 'raw', articles: EVERY, notes: EVERY, rows: { article: '', notes: '' } },
  {
    name: 'eu',
    version: 'masked',
    articles: ({ region }) => region === 'eu',
    notes: EVERY,
    rows: { article: "region = 'eu'", notes: '' },
  },
  {
    name: 'de',
    version: 'masked',
    articles: EVERY,
    notes: ({ lang }) => lang === 'de',
    rows: { article: '', notes: "lang = 'de'" },
  },
  {
    name: 'few',
    version: 'raw',
    articles: ({ views }) => views > 30,
    notes: ({ lang }) => lang !== 'en',
    rows: { article: 'views > 30', notes: "lang <> 'en'" },
  },
];

export const POLICY = `
version: 1
tenant: press
subjects:
${ASKERS.map(({ name }) => `  user:${name}: { ceiling: [${name}] }`).join('\n')}
roles:
${ASKERS.map(roleOf).join('\n')}
masks: { person: redact }
limits: { query: 1000000, sample: 1000, schema: 1000, authoring: 1000, catalog: 1000 }
`;

function roleOf({ name, version, rows }: Asker): string {
  const of = (filter: string): string => (filter === '' ? '' : `, rows: "${filter}"`);
  const clear = version === 'raw' ? ', unmask: [person]' : '';
  const grants = [
    `{ on: article, columns: "*"${of(rows.article)} }`,
    ...['notes', 'plain'].map((facet) => `{ on: ${facet}, columns: "*"${clear}${of(rows.notes)} }`),
  ];
  return `  ${name}:\n    grants:\n${grants.map((g) => `      - ${g}`).join('\n')}`;
}

export interface Article {
  readonly id: number;
  readonly region: string;
  readonly views: number;
}

export interface Note {
  readonly id: string;
  readonly article: number;
  readonly lang: string;
  readonly body: string;
}

/** What a database holds. */
export interface World {
  readonly articles: readonly Article[];
  readonly notes: readonly Note[];
}

/** Words that no language inflects. The first are frequent, the last rare. */
const WORDS: readonly string[] = Array.from({ length: 48 }, (_, i) => {
  const row = Math.floor(i / 16);
  return `${'bdfghjklmnprtvwz'[i % 16]}${'aiou'[row]}${'kbgpx'[(3 * i + row) % 5]}`;
});

/** Words that are not looked for, whatever the text. */
export const STOP_WORDS = ['the', 'of', 'and', 'is'];

export const PEOPLE = ['Balthasar Quuxom', 'Odo Zingwok'];

/** A word, the sooner the more frequent. */
export function randomWord(dice: Dice): string {
  return WORDS[Math.floor((dice.upTo(999) / 1000) ** 2 * WORDS.length)] ?? '';
}

function randomBody(dice: Dice): string {
  const words = dice.times(3, 60, () => {
    if (dice.chance(0.04)) return dice.of(PEOPLE);
    if (dice.chance(0.02)) return 'odo@corp.example';
    return dice.chance(0.12) ? dice.of(STOP_WORDS) : randomWord(dice);
  });
  return words.join(' ');
}

/** Some notes say the same as others, some are about an article that is not there. */
export function randomWorld(dice: Dice): World {
  const articles = dice.times(9, 12, (i): Article => {
    return { id: i + 1, region: dice.of(['eu', 'us']), views: 10 * (1 + dice.upTo(8)) };
  });
  const bodies: string[] = [];
  const notes = dice.times(70, 110, (i): Note => {
    const body = bodies.length > 0 && dice.chance(0.1) ? dice.of(bodies) : randomBody(dice);
    bodies.push(body);
    return {
      id: `n${String(i).padStart(3, '0')}`,
      article: 1 + dice.upTo(articles.length),
      lang: dice.of(['de', 'de', 'en', 'fr']),
      body,
    };
  });
  return { articles, notes };
}

/** True if `asker` may see the passages of a note: the note, and the article that it is about. */
export function seesNote(asker: Asker, note: Note, { articles }: World): boolean {
  const article = articles.find(({ id }) => id === note.article);
  return article !== undefined && asker.articles(article) && asker.notes(note);
}

/**
 * A world that differs from `world` in what `asker` may not see alone: hidden notes are gone, say what is asked for, or
 * are more, and hidden articles have other figures or are gone.
 */
export function twinOf(world: World, asker: Asker, dice: Dice): World {
  const articles = world.articles.flatMap((article): readonly Article[] => {
    if (asker.articles(article)) return [article];
    const others = [10, 20, 30].map((views) => ({ ...article, views })).filter((a) => !asker.articles(a));
    return dice.chance(0.3) ? [] : [dice.of([article, ...others])];
  });
  const shown = world.notes.filter((note) => seesNote(asker, note, world));
  const hidden = world.notes.filter((note) => !shown.includes(note));
  const loud = (): string => dice.times(1, 12, () => `${randomWord(dice)} ${WORDS[0]}`).join(' ');
  const others = hidden.flatMap((note): readonly Note[] => {
    if (dice.chance(0.3)) return [];
    const more = dice.chance(0.4) ? [{ ...note, id: `x${note.id}`, body: loud() }] : [];
    return [dice.chance(0.6) ? { ...note, body: loud() } : note, ...more];
  });
  return { articles, notes: [...others, ...shown] };
}

/** The statements that have the tables hold `world` instead of what they hold. */
export function worldScript({ articles, notes }: World): string {
  const texts = notes.map((n) => `('${n.id}', ${n.article}, '${n.lang}', '${n.body}')`);
  return `
delete from press.note; delete from press.article;
insert into press.article values ${articles.map((a) => `(${a.id}, '${a.region}', ${a.views})`).join(', ')};
insert into press.note values ${texts.join(',\n')};
`;
}

export function tablesScript(queries: readonly string[]): string {
  return `
create schema press;
create table press.article (id int4 primary key, region text not null, views int4 not null);
create table press.person (id int4 primary key, name text);
create table press.note (id text primary key, article_id int4 not null, lang text not null, body text not null);
create table press.asked (id text primary key, article_id int4 not null, body text not null);
insert into press.person values ${PEOPLE.map((name, i) => `(${i}, '${name}')`).join(', ')};
insert into press.asked values ${queries.map((query, i) => `('q${i}', 1, '${query}')`).join(', ')};
`;
}
