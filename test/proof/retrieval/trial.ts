import { generatedSql, sql } from '../../../src/base/sql.js';
import { at, type Forms, startForms } from '../../language/forms/fixture.js';
import { toyEmbeddings, toyVector } from '../../language/forms/vectors.js';
import { type Dice, diceFrom } from '../oracle/dice.js';
import { averageLength, bruteForce, Doubt, type Passage, type Scored, wordsOf } from './brute-force.js';
import { isWordless, type Question, randomQueries, type Search, written } from './questions.js';
import { partsFault } from './score-parts.js';
import {
  type Asker,
  MANIFEST,
  PEOPLE,
  POLICY,
  randomWorld,
  seesNote,
  tablesScript,
  type World,
  worldScript,
} from './world.js';

/** What a caller can learn of an answer. */
export interface Told {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly notices: readonly string[];
}

/** A service whose tables hold one world after the other, asked as its users ask it. */
export interface Trial {
  readonly queries: readonly string[];
  hold(world: World): Promise<void>;
  ask(question: Question): Promise<Told>;
  /** What is wrong with an answer; null where nothing is. */
  wrong(question: Question, told: Told): string | null;
  close(): Promise<void>;
}

/** The stores of a version that brute force takes its passages from: as texts, which other tests judge. */
type Stores = ReadonlyMap<string, readonly Passage[]>;

interface State {
  readonly world: World;
  readonly stores: Stores;
  /** What was worked out of the searches of one asker. */
  readonly known: WeakMap<Search, readonly Scored[]>;
}

const VERSIONS = ['raw', 'masked'] as const;
/** So many permitted passages are compared one by one, and more by signs first. */
const EXACT_UP_TO = 60;

/** @param seed of its queries, and of what its stores are built of first */
export async function openTrial(seed: number): Promise<Trial> {
  const dice = diceFrom(seed);
  const queries = randomQueries(dice);
  const model = await toyEmbeddings();
  const forms = await startForms({
    manifest: MANIFEST,
    policy: POLICY,
    script: tablesScript(queries) + worldScript(randomWorld(dice)),
    schema: 'press',
    settings: {
      content: { embeddings: { url: model.url, keyEnv: null }, chat: null },
      exactUpTo: EXACT_UP_TO,
    },
  });
  if (forms.test.service.model().snapshot === null) throw new Error(JSON.stringify(forms.test.lines));
  // A store's length of a passage is measured when it is first built, once and for all.
  const averages = new Map<string, number>();
  for (const version of VERSIONS) {
    const texts = await rowsOf(forms, 'notes', version);
    averages.set(version, averageLength(texts.map(({ text }) => wordsOf(String(text)).length)));
  }
  const grams = new Map(
    (await rowsOf(forms, 'asked', 'raw')).map((row) => [String(row['text']), numbersIn(row['dense'])]),
  );
  let state: State = { world: { articles: [], notes: [] }, stores: new Map(), known: new WeakMap() };
  return {
    queries,
    async hold(world) {
      await forms.test.engine.system.script(generatedSql(worldScript(world)));
      await forms.reindex();
      const stores = await Promise.all(
        VERSIONS.map(async (v) => [v, await passagesOf(forms, v, world)] as const),
      );
      state = { world, stores: new Map(stores), known: new WeakMap() };
    },
    async ask({ asker, ...question }) {
      const { osql, parameters } = written({ asker, ...question });
      const more = parameters.length === 0 ? {} : { parameters };
      const { status, code, message, rows, json } = await forms.ask(`user:${asker.name}`, osql, more);
      const notices = at(json, 'notices');
      return { status, code, message, rows, notices: Array.isArray(notices) ? notices.map(String) : [] };
    },
    wrong(question, told) {
      const { asker } = question;
      const passages = permitted(asker, state.world, state.stores.get(asker.version) ?? []);
      const best = (search: Search): readonly Scored[] => {
        const known = state.known.get(search);
        if (known !== undefined) return known;
        const { condition } = question;
        const found =
          condition.when === 'before'
            ? passages.filter((p) => condition.holds({ passage: p, score: 0 }))
            : passages;
        const { query: text, facet, wanted } = search;
        const query = { text, grams: grams.get(text) ?? [], meaning: toyVector(text) };
        const lane = facet === 'notes' ? 'hybrid' : 'lexical';
        const all = bruteForce(found, query, wanted, lane, averages.get(asker.version) ?? 0);
        const left = condition.when === 'after' ? all.filter(condition.holds) : all;
        state.known.set(search, left);
        return left;
      };
      return faultIn(question, told, best);
    },
    async close() {
      await forms.close();
      await model.close();
    },
  };
}

function faultIn(question: Question, told: Told, best: (search: Search) => readonly Scored[]): string | null {
  const { search, other, shape, condition, wrong } = question;
  const searches = shape === 'one' ? [search] : [search, other];
  if (wrong !== '' || searches.some(isWordless))
    return told.status === 400 && told.code === 'E0511'
      ? null
      : `E0511 was expected, not ${JSON.stringify(told)}`;
  if (told.status !== 200) return `${told.status} ${told.code} ${told.message}`;
  const isTold = shape === 'keys' || (shape === 'one' && condition.isTold);
  if (told.notices.length > 0 !== isTold) return `notices: ${JSON.stringify(told.notices)}`;
  const fault = told.rows.map(partsFault).find((found) => found !== null);
  if (fault !== undefined) return fault;
  const first = best(search);
  switch (shape) {
    case 'one':
      return difference(told.rows, first);
    case 'both': {
      const placed = (place: number) => sorted(told.rows.filter((row) => row['place'] === place));
      return (
        difference(placed(1), byChunk(first)) ??
        difference(placed(2), byChunk(best(other))) ??
        (told.rows.length === placed(1).length + placed(2).length ? null : 'rows of neither')
      );
    }
    case 'keys': {
      const keys = new Set(best(other).map(({ passage }) => passage.article));
      return difference(
        told.rows,
        first.filter(({ passage }) => keys.has(passage.article)),
      );
    }
    case 'joined': {
      const others = best(other);
      const pairs = first.flatMap(({ passage: a }) =>
        others
          .filter(({ passage: b }) => a.article === b.article)
          .map(({ passage: b }) => `${a.chunk} ${b.chunk}`),
      );
      const said = told.rows.map((row) => `${row['chunk']} ${row['other']}`);
      return [...said].sort().join() === [...pairs].sort().join()
        ? null
        : `pairs ${said.length}, not ${pairs.length}`;
    }
    default: {
      const unknown: never = shape;
      throw new Error(`unexpected shape ${String(unknown)}`);
    }
  }
}

function byChunk(found: readonly Scored[]): readonly Scored[] {
  return [...found].sort((a, b) => (a.passage.chunk < b.passage.chunk ? -1 : 1));
}

function sorted(rows: Told['rows']): Told['rows'] {
  return [...rows].sort((a, b) => (String(a['chunk']) < String(b['chunk']) ? -1 : 1));
}

/** Scores are sums of floats of 32 bits. */
const NEAR = 2e-5;

function difference(rows: Told['rows'], expected: readonly Scored[]): string | null {
  const line = (chunk: unknown, score: unknown): string => `${chunk} ${Number(score).toFixed(6)}`;
  const isSame =
    rows.length === expected.length &&
    expected.every(({ passage, score }, i) => {
      const row = rows[i] ?? {};
      return (
        row['chunk'] === passage.chunk &&
        Math.abs(Number(row['score']) - score) < NEAR &&
        row['text'] === passage.text &&
        Number(row['article_id']) === passage.article &&
        row['lang'] === passage.lang
      );
    });
  if (isSame) return null;
  const said = rows.map((row) => line(row['chunk'], row['score']));
  const wanted = expected.map(({ passage, score }) => line(passage.chunk, score));
  const place = wanted.findIndex((one, i) => one !== said[i]);
  const from = Math.max(0, place - 1);
  return `${said.length} rows, not ${wanted.length}; from ${from}: ${said.slice(from, from + 4).join(', ')}, not ${wanted.slice(from, from + 4).join(', ')}`;
}

/** What `asker` may see, by the rows of the tables. */
function permitted(asker: Asker, world: World, passages: readonly Passage[]): readonly Passage[] {
  const shown = new Set(world.notes.filter((note) => seesNote(asker, note, world)).map(({ id }) => id));
  return passages.filter(({ document }) => shown.has(document));
}

async function rowsOf(forms: Forms, facet: string, version: string): Promise<Told['rows']> {
  const { system } = forms.test.engine;
  const [store] = await system.query(
    sql`select table_name from osl_content.facet where facet = $1 and version = $2`,
    [facet, version],
  );
  const vectors = facet === 'notes' ? '' : ', dense::text as dense';
  return system.query(
    generatedSql(
      `select chunk_id, doc_id, text${vectors} from osl_content."${String(store?.['table_name'])}"`,
    ),
  );
}

function numbersIn(vector: unknown): readonly number[] {
  return String(vector).slice(1, -1).split(',').map(Number);
}

async function passagesOf(forms: Forms, version: string, { notes }: World): Promise<readonly Passage[]> {
  const legs = new Map(
    (await rowsOf(forms, 'notes.lexical', version)).map((row) => [row['chunk_id'], numbersIn(row['dense'])]),
  );
  const byId = new Map(notes.map((note) => [note.id, note]));
  return (await rowsOf(forms, 'notes', version)).map((row): Passage => {
    const note = byId.get(String(row['doc_id']));
    const [chunk, text] = [String(row['chunk_id']), String(row['text'])];
    if (note === undefined) throw new Error(`${chunk} is of no note`);
    const isServed =
      version === 'raw' ? note.body.includes(text) : PEOPLE.every((name) => !text.includes(name));
    if (!isServed) throw new Error(`${chunk} should not say ${text}`);
    return {
      chunk,
      text,
      document: note.id,
      article: note.article,
      lang: note.lang,
      grams: legs.get(chunk) ?? [],
      meaning: toyVector(text),
    };
  });
}

/** True if the right answer is known here. */
export function judged(trial: Trial, question: Question, told: Told): string | null | 'doubt' {
  try {
    return trial.wrong(question, told);
  } catch (error) {
    if (error instanceof Doubt) return 'doubt';
    throw error;
  }
}

/** What a question is called where it fails. */
export function asAsked(question: Question): string {
  const { osql, parameters } = written(question);
  return `${question.asker.name}: ${osql} ${JSON.stringify(parameters)}`;
}

export function diceOf(seed: number, world: number): Dice {
  return diceFrom(seed * 1_000 + world);
}
