import { ANY_LANGUAGE, UNSPACED, type WordRules, withoutAccents } from '../../../base/text/terms.js';
import {
  isUnspaced,
  type Language,
  type StemmedLanguage,
  type UnspacedLanguage,
} from '../../../model/facets/retrieval-options.js';

/**
 * Incremented whenever words map to different terms, because these rules or the stemmer or stop word packages changed.
 */
const READING = 1;

const opened = new Map<Language, Promise<WordRules>>();

/** Returns the rules that turn passages and queries into terms. A language's data is loaded on first use. */
export async function wordRules(language: Language | null): Promise<WordRules> {
  if (language === null) return ANY_LANGUAGE;
  const rules =
    opened.get(language) ?? (isUnspaced(language) ? unspacedWords(language) : stemmedWords(language));
  opened.set(language, rules);
  return rules;
}

/** Adds a cache to `rules`, for a query that reads many passages. */
export function cachedRules(rules: WordRules): WordRules {
  if (rules === ANY_LANGUAGE) return rules;
  const known = new Map<string, readonly string[]>();
  return {
    cut: rules.cut,
    termsOf(lower) {
      const terms = known.get(lower) ?? rules.termsOf(lower);
      known.set(lower, terms);
      return terms;
    },
  };
}

/** Returns the language and rule version that determine a store's terms; undefined if the facet has no language. */
export function readingOf(language: Language | null): readonly [Language, number] | undefined {
  return language === null ? undefined : [language, READING];
}

/**
 * Returns the version of the ICU dictionary that splits text without spaces into words; undefined for other languages.
 * A different version may split words differently.
 */
export function dictionaryOf(language: Language | null): string | undefined {
  if (language === null || !isUnspaced(language)) return undefined;
  return process.versions.icu?.split('.')[0];
}

interface StemmerModule {
  readonly stemmer: (word: string) => string;
}

interface StopWordsModule {
  readonly stopwords: readonly string[];
}

/** Snowball stemmer and stop words of a language, each in a module that is loaded on demand. */
interface StemmedLexicon {
  /**
   * Words with a letter of this script belong to the language; other words are treated as if no language were
   * declared.
   */
  readonly script: RegExp;
  readonly stemmer: () => Promise<StemmerModule>;
  readonly stopWords: () => Promise<StopWordsModule>;
  readonly normalized?: (lower: string) => string;
}

const LATIN = /\p{Script=Latin}/u;
const DEVANAGARI = /\p{Script=Devanagari}/u;

function latin(stemmer: StemmedLexicon['stemmer'], stopWords: StemmedLexicon['stopWords']): StemmedLexicon {
  return { script: LATIN, stemmer, stopWords };
}

const STEMMED_LEXICONS: Readonly<Record<StemmedLanguage, StemmedLexicon>> = {
  arabic: {
    script: /\p{Script=Arabic}/u,
    stemmer: () => import('@orama/stemmers/arabic'),
    stopWords: () => import('@orama/stopwords/arabic'),
    normalized: withoutMarks,
  },
  armenian: {
    script: /\p{Script=Armenian}/u,
    stemmer: () => import('@orama/stemmers/armenian'),
    stopWords: () => import('@orama/stopwords/armenian'),
  },
  danish: latin(
    () => import('@orama/stemmers/danish'),
    () => import('@orama/stopwords/danish'),
  ),
  dutch: latin(
    () => import('@orama/stemmers/dutch'),
    () => import('@orama/stopwords/dutch'),
  ),
  english: latin(
    () => import('@orama/stemmers/english'),
    () => import('@orama/stopwords/english'),
  ),
  finnish: latin(
    () => import('@orama/stemmers/finnish'),
    () => import('@orama/stopwords/finnish'),
  ),
  french: latin(
    () => import('@orama/stemmers/french'),
    () => import('@orama/stopwords/french'),
  ),
  german: latin(
    () => import('@orama/stemmers/german'),
    () => import('@orama/stopwords/german'),
  ),
  greek: {
    script: /\p{Script=Greek}/u,
    stemmer: () => import('@orama/stemmers/greek'),
    stopWords: () => import('@orama/stopwords/greek'),
    normalized: (lower) => withoutMarks(lower).replaceAll('ς', 'σ'),
  },
  hindi: {
    script: DEVANAGARI,
    stemmer: () => import('@orama/stemmers/indian'),
    stopWords: () => import('@orama/stopwords/indian'),
  },
  hungarian: latin(
    () => import('@orama/stemmers/hungarian'),
    () => import('@orama/stopwords/hungarian'),
  ),
  indonesian: latin(
    () => import('@orama/stemmers/indonesian'),
    () => import('@orama/stopwords/indonesian'),
  ),
  irish: latin(
    () => import('@orama/stemmers/irish'),
    () => import('@orama/stopwords/irish'),
  ),
  italian: latin(
    () => import('@orama/stemmers/italian'),
    () => import('@orama/stopwords/italian'),
  ),
  nepali: {
    script: DEVANAGARI,
    stemmer: () => import('@orama/stemmers/nepali'),
    stopWords: () => import('@orama/stopwords/nepali'),
  },
  norwegian: latin(
    () => import('@orama/stemmers/norwegian'),
    () => import('@orama/stopwords/norwegian'),
  ),
  portuguese: latin(
    () => import('@orama/stemmers/portuguese'),
    () => import('@orama/stopwords/portuguese'),
  ),
  romanian: {
    script: LATIN,
    stemmer: () => import('@orama/stemmers/romanian'),
    stopWords: () => import('@orama/stopwords/romanian'),
    // The stemmer expects these letters with a cedilla, as they were encoded before Unicode added them with a comma.
    normalized: (lower) => lower.replaceAll('ș', 'ş').replaceAll('ț', 'ţ'),
  },
  russian: {
    script: /\p{Script=Cyrillic}/u,
    stemmer: () => import('@orama/stemmers/russian'),
    stopWords: () => import('@orama/stopwords/russian'),
    normalized: (lower) => lower.replaceAll('ё', 'е'),
  },
  spanish: latin(
    () => import('@orama/stemmers/spanish'),
    () => import('@orama/stopwords/spanish'),
  ),
  swedish: latin(
    () => import('@orama/stemmers/swedish'),
    () => import('@orama/stopwords/swedish'),
  ),
  tamil: {
    script: /\p{Script=Tamil}/u,
    stemmer: () => import('@orama/stemmers/tamil'),
    stopWords: () => import('@orama/stopwords/tamil'),
  },
  turkish: latin(
    () => import('@orama/stemmers/turkish'),
    () => import('@orama/stopwords/turkish'),
  ),
};

/** Maximum length of a stemmed word in UTF-16 code units. Real words are shorter; this bounds the stemmer's work. */
const LONGEST_STEMMED = 64;

/**
 * Returns rules that remove stop words and stem all other words. A word with accents is also stemmed without them:
 * stemmers recognize endings by their accents, but people often omit them when typing.
 */
async function stemmedWords(language: StemmedLanguage): Promise<WordRules> {
  const { script, normalized = same, ...source } = STEMMED_LEXICONS[language];
  const [{ stemmer }, { stopwords }] = await Promise.all([source.stemmer(), source.stopWords()]);
  const listed = stopwords.map((word) => normalized(word.normalize('NFKC').toLowerCase()));
  const stops = new Set([...listed, ...listed.map(withoutAccents)]);
  const stemOf = (word: string): string =>
    word.length > LONGEST_STEMMED ? withoutAccents(word) : withoutAccents(stemmer(word));
  return Object.freeze({
    termsOf(lower: string) {
      if (!script.test(lower)) return ANY_LANGUAGE.termsOf(lower);
      const word = normalized(lower);
      if (stops.has(word)) return [];
      const [accented, plain] = [stemOf(word), withoutAccents(word)];
      const bare = plain === word ? accented : stemOf(plain);
      return bare === accented ? [accented] : [accented, bare];
    },
    cut: null,
  });
}

function same(word: string): string {
  return word;
}

/** Removes vowel points and accents, for scripts in which they do not form different letters. */
function withoutMarks(lower: string): string {
  return lower
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .normalize('NFC');
}

interface UnspacedLexicon {
  readonly locale: string;
  readonly stopWords: () => Promise<{ readonly stopwords: readonly string[] }>;
  /** False for words that carry no meaning although no stop list contains them. */
  readonly hasMeaning: (word: string) => boolean;
}

/** Particles, prepositions, pronouns and auxiliaries of Thai; the stop word package has no Thai list. */
const THAI_STOP_WORDS =
  'ที่ และ ของ ใน เป็น การ ความ ได้ ให้ มี ไม่ จะ ก็ ว่า กับ แต่ หรือ โดย จาก นี้ นั้น ซึ่ง ด้วย ถ้า เพราะ เพื่อ แล้ว อยู่ คือ ถึง ตาม ต่อ ' +
  'ไป มา ขึ้น ลง ออก เข้า ต้อง ควร อาจ เคย กำลัง ยัง เลย นะ ครับ ค่ะ คะ ฉัน ผม คุณ เขา เธอ เรา มัน พวก ทั้ง ทุก บาง แต่ละ อีก เอง กัน ๆ';

const UNSPACED_LEXICONS: Readonly<Record<UnspacedLanguage, UnspacedLexicon>> = {
  chinese: {
    locale: 'zh',
    stopWords: () => import('@orama/stopwords/mandarin'),
    hasMeaning: () => true,
  },
  japanese: {
    locale: 'ja',
    stopWords: () => import('@orama/stopwords/japanese'),
    // A single Hiragana letter is a particle or a verb ending.
    hasMeaning: (word) => !/^\p{Script=Hiragana}$/u.test(word),
  },
  thai: {
    locale: 'th',
    stopWords: async () => ({ stopwords: THAI_STOP_WORDS.split(' ') }),
    hasMeaning: () => true,
  },
};

/** Maximum length of a piece to segment, in UTF-16 code units: the segmenter takes time quadratic in the length. */
const PIECE = 500;

/** Returns rules that split runs of letters with ICU's dictionary and remove stop words. Words are not stemmed. */
async function unspacedWords(language: UnspacedLanguage): Promise<WordRules> {
  const { locale, hasMeaning, stopWords } = UNSPACED_LEXICONS[language];
  const { stopwords } = await stopWords();
  const stops = new Set(stopwords.map((word) => word.normalize('NFKC').toLowerCase()));
  const segmenter = new Intl.Segmenter(locale, { granularity: 'word' });
  return Object.freeze({
    termsOf(lower: string) {
      if (stops.has(lower) || !hasMeaning(lower)) return [];
      return UNSPACED.test(lower) ? [lower, ...partsOf(lower)] : ANY_LANGUAGE.termsOf(lower);
    },
    *cut(run: string) {
      for (let at = 0, to = 0; at < run.length; at = to) {
        to = endOfPiece(run, at);
        for (const { segment, index } of segmenter.segment(run.slice(at, to)))
          yield { segment, index: at + index };
      }
    },
  });
}

/**
 * Returns parts of a word that help to find its other forms: a Han stem before a Hiragana ending, and the letter pairs
 * of a long Han word, since dictionaries differ in where they split such words.
 */
function partsOf(word: string): readonly string[] {
  const stem = /^(\p{Script=Han}+)\p{Script=Hiragana}+$/u.exec(word)?.[1];
  if (stem !== undefined) return [stem];
  if (!/^\p{Script=Han}{3,}$/u.test(word)) return [];
  const letters = [...word];
  return letters.slice(1).map((letter, i) => `${letters[i]}${letter}`);
}

/** End of the piece that starts at `at`; never splits a surrogate pair. */
function endOfPiece(run: string, at: number): number {
  const to = Math.min(run.length, at + PIECE);
  return to < run.length && /[\ud800-\udbff]/.test(run.charAt(to - 1)) ? to - 1 : to;
}
