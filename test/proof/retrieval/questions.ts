import type { Dice } from '../oracle/dice.js';
import { type Passage, type Scored, type Wanted, wordsOf } from './brute-force.js';
import { ASKED } from './score-parts.js';
import { type Article, type Asker, PEOPLE, randomWord, STOP_WORDS, type World } from './world.js';

/** What stands beside RETRIEVE: a condition on what comes, and whether it holds before the best are taken. */
interface Condition {
  readonly join: string;
  readonly where: string;
  readonly when: 'before' | 'after';
  /** True if the answer says that other rows filter after. */
  readonly isTold: boolean;
  readonly holds: (one: Scored) => boolean;
}

/** One RETRIEVE. */
export interface Search {
  readonly facet: 'notes' | 'plain';
  readonly query: string;
  readonly wanted: Wanted;
  /** Arguments that change neither which passages come nor their scores, as they are written. */
  readonly beside: readonly string[];
}

export interface Question {
  readonly asker: Asker;
  readonly shape: 'one' | 'both' | 'keys' | 'joined';
  readonly search: Search;
  /** The second RETRIEVE; of `one` nobody reads it. */
  readonly other: Search;
  readonly condition: Condition;
  /** An argument that is refused, and written behind the others; empty where there is none. */
  readonly wrong: string;
  /** True if arguments that may be parameters are. */
  readonly isBound: boolean;
  /** Names a column, so that no plan of another question serves this one; none where it is 0. */
  readonly mark: number;
}

/** Every option that changes neither which passages come nor their scores: one line each, as it may be written. */
const BESIDE: readonly (readonly string[])[] = [];

/** What no RETRIEVE of `notes` takes. */
const WRONG = [
  'skip => -1',
  'skip => 1001',
  "min_score => 'NaN'",
  'diversity => 1.5',
  'diversity => 0.5, skip => 250',
  "per => 'entity'",
  "mode => 'both'",
  "fuse => 'product'",
  'weights => array[1]',
  'weights => array[0, 0]',
  'weights => array[-1, 2]',
  "mode => 'dense', fuse => 'rank'",
  "mode => 'lexical', weights => array[1, 2]",
];

/** Queries of a few words: of the texts, of stop words, of names, and of nothing that is there. */
export function randomQueries(dice: Dice): readonly string[] {
  const one = (): string =>
    dice
      .times(1, 6, () => {
        if (dice.chance(0.1)) return dice.of(PEOPLE);
        if (dice.chance(0.1)) return dice.of([...STOP_WORDS, 'zzyzzak']);
        return randomWord(dice);
      })
      .join(' ');
  return ['the of', 'zzyzzak', ...dice.times(22, 22, one)];
}

export function randomQuestion(world: World, queries: readonly string[], dice: Dice, asker: Asker): Question {
  const search = randomSearch(queries, dice);
  const isOne = dice.chance(0.85);
  return {
    asker,
    search,
    other: randomSearch(queries, dice),
    shape: isOne ? 'one' : dice.of(['both', 'keys', 'joined'] as const),
    condition: isOne ? randomCondition(world, asker, dice) : NO_CONDITION,
    wrong: isOne && search.facet === 'notes' && dice.chance(0.04) ? dice.of(WRONG) : '',
    isBound: dice.chance(0.3),
    mark: 0,
  };
}

function randomSearch(queries: readonly string[], dice: Dice): Search {
  const facet = dice.of(['notes', 'notes', 'plain'] as const);
  const query = dice.of(queries);
  const mode = dice.chance(0.5) ? dice.of(facet === 'notes' ? MODES : (['lexical'] as const)) : null;
  const isFused = facet === 'notes' && (mode === null || mode === 'hybrid');
  const fuse = isFused && dice.chance(0.5) ? dice.of(['rank', 'score'] as const) : null;
  const diversity = dice.chance(0.15) ? dice.of([0.2, 0.5, 0.8]) : null;
  const wanted: Wanted = {
    mode,
    fuse,
    topK: dice.of(diversity === null ? [1, 2, 3, 5, 8, 20, 60, 300] : [1, 3, 5, 9]),
    skip: dice.chance(0.4) ? dice.of([0, 1, 2, 5, 30]) : null,
    per: dice.chance(0.4) ? dice.of(['passage', 'document', 'document'] as const) : null,
    diversity,
    weights: isFused && dice.chance(0.4) ? [dice.of([0, 0.3, 1]), dice.of([0.5, 1, 2])] : null,
    minScore: dice.chance(0.3) ? floorFor(isFused ? (fuse ?? 'rank') : 'own', dice) : null,
  };
  // What may be asked of each passage always is: its columns are judged with each answer.
  const beside = [...ASKED.keys(), ...dice.some(BESIDE, 0.3).map((ways) => dice.of(ways))];
  return { facet, query, wanted, beside };
}

const MODES = ['hybrid', 'lexical', 'dense'] as const;

/** Floors that some passages reach and others do not; of ranks, one that is the score of a passage. */
function floorFor(scale: 'rank' | 'score' | 'own', dice: Dice): number {
  switch (scale) {
    case 'rank':
      return Number((1 / (61 + dice.upTo(12)) + dice.of([0, 1 / (61 + dice.upTo(12))])).toFixed(6));
    case 'score':
      return dice.of([0.31, 0.77, 1.13]);
    case 'own':
      return dice.of([-0.213, 0.117, 0.341, 0.773, 1.531, 2.917]);
    default: {
      const unknown: never = scale;
      throw new Error(`unexpected scale ${String(unknown)}`);
    }
  }
}

const NO_CONDITION: Condition = {
  join: '',
  where: '',
  when: 'before',
  isTold: false,
  holds: () => true,
};

const ENTITY = 'osl.entities.article';

/** On the passage itself, or on the article that it is about, among those that the asker may see. */
function randomCondition({ articles }: World, asker: Asker, dice: Dice): Condition {
  const views = 10 * dice.upTo(7);
  const ids = dice.some(
    articles.map(({ id }) => id),
    0.4,
  );
  const isAmong = (
    test: (article: Article) => boolean,
    { passage }: { readonly passage: Passage },
  ): boolean => articles.some((a) => a.id === passage.article && asker.articles(a) && test(a));
  const isRead = (one: Scored): boolean => isAmong((a) => a.views > views, one);
  // Nobody's figure whom the asker sees: dividing by what is left of it fails on hidden articles alone.
  const nobodys = [10, 20, 30, 40, 50, 60].find((n) =>
    articles.every((a) => a.views !== n || !asker.articles(a)),
  );
  const language = dice.of(['de', 'en', 'fr']);
  const word = randomWord(dice);
  const keys = `select id from ${ENTITY} where views > ${views}`;
  const of = (where: string, holds: Condition['holds'], more: Partial<Condition> = {}): Condition => {
    return { ...NO_CONDITION, where, holds, ...more };
  };
  const after = { when: 'after', isTold: true } as const;
  return dice.of([
    NO_CONDITION,
    NO_CONDITION,
    of(`r.lang = '${language}'`, ({ passage }) => passage.lang === language),
    of(`r.article_id in (${[0, ...ids].join(', ')})`, ({ passage }) => ids.includes(passage.article)),
    of(`r.article_id in (${keys})`, isRead),
    of(`r.article_id not in (${keys})`, (one) => !isRead(one)),
    of(`r.article_id in (select id from ${ENTITY} where 1 / (views - ${nobodys ?? 15}) < 2)`, (one) =>
      isAmong(() => true, one),
    ),
    of(`r.text like '%${word}%'`, ({ passage }) => passage.text.includes(word), { when: 'after' }),
    of(`exists (select 1 from ${ENTITY} a where a.id = r.article_id and a.views > ${views})`, isRead, after),
    of(`a.views > ${views}`, isRead, { ...after, join: ` join ${ENTITY} a on a.id = r.article_id` }),
  ]);
}

/** True if the lexical lane has no word to look for, and says so. */
export function isWordless({ facet, query, wanted }: Search): boolean {
  return (facet === 'plain' || wanted.mode === 'lexical') && wordsOf(query).length === 0;
}

/** The text of a question, and the values of its `$1 …`. */
export function written(question: Question): {
  readonly osql: string;
  readonly parameters: readonly string[];
} {
  const { search, other, shape, condition, wrong, mark } = question;
  const parameters: string[] = [];
  const bound = (value: string, literal: string): string =>
    question.isBound ? `$${parameters.push(value)}` : literal;
  const retrieve = (of: Search, last = ''): string =>
    `RETRIEVE(${[...argumentsOf(of, bound), ...(last === '' ? [] : [last])].join(', ')})`;
  // What is refused stands alone, so that nothing stands there twice.
  const bare: Wanted = { ...NOTHING, topK: search.wanted.topK > 250 ? 3 : search.wanted.topK };
  const first = retrieve(wrong === '' ? search : { ...search, wanted: bare }, wrong);
  const where = condition.where === '' ? '' : ` where ${condition.where}`;
  const names = search.beside.flatMap((argument) => ASKED.get(argument) ?? []);
  // Of two RETRIEVEs side by side each has columns that it was asked for, and their rows are of one width.
  const asked = shape === 'both' ? '' : names.map((name) => `, r.${name}`).join('');
  const one = `select r.cite ->> 'chunk_id' as chunk, r.score, r.text, r.article_id, r.lang${asked}${mark === 0 ? '' : `, 1 as m${mark}`}`;
  switch (shape) {
    case 'one':
      return { osql: `${one} from ${first} r${condition.join}${where}`, parameters };
    case 'both':
      return {
        osql: `${one}, 1 as place from ${first} r union all ${one}, 2 from ${retrieve(other)} r`,
        parameters,
      };
    case 'keys':
      return {
        osql: `${one} from ${first} r where r.article_id in (select article_id from ${retrieve(other)} s)`,
        parameters,
      };
    case 'joined':
      return {
        osql: `${one}, s.cite ->> 'chunk_id' as other from ${first} r join ${retrieve(other)} s on r.article_id = s.article_id`,
        parameters,
      };
    default: {
      const unknown: never = shape;
      throw new Error(`unexpected shape ${String(unknown)}`);
    }
  }
}

const NOTHING: Wanted = {
  topK: 1,
  skip: null,
  minScore: null,
  per: null,
  diversity: null,
  mode: null,
  fuse: null,
  weights: null,
};

/** @param bound what stands for a value that may be a parameter, of its text and its literal */
function argumentsOf(
  { facet, query, wanted, beside }: Search,
  bound: (value: string, literal: string) => string,
): readonly string[] {
  const { topK, skip, minScore, per, diversity, mode, fuse, weights } = wanted;
  const number = (value: number | null): string | null =>
    value === null ? null : bound(String(value), String(value));
  const word = (value: string | null): string | null => (value === null ? null : `'${value}'`);
  const values: readonly (readonly [string, string | null])[] = [
    ['facet', `'${facet}'`],
    ['query', bound(query, `'${query}'`)],
    ['top_k', number(topK)],
    ['skip', number(skip)],
    ['min_score', number(minScore)],
    ['per', word(per)],
    ['diversity', number(diversity)],
    ['mode', word(mode)],
    ['fuse', word(fuse)],
    ['weights', weights === null ? null : bound(`{${weights.join(',')}}`, `array[${weights.join(', ')}]`)],
  ];
  return [...values.flatMap(([name, value]) => (value === null ? [] : [`${name} => ${value}`])), ...beside];
}
