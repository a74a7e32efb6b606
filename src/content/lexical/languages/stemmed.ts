import { ANY_LANGUAGE, type WordRules, withoutAccents } from '../../../base/text/terms.js';
import type { StemmedLanguage } from '../../../model/facets/retrieval-options.js';

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

const SOURCES: Readonly<Record<StemmedLanguage, StemmedLexicon>> = {
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
    // The stemmer expects these letters with a cedilla, as they were written before Unicode had them with a comma.
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
 * Removes stop words and stems all others. A word with accents is also stemmed without them: stemmers recognize
 * endings by their accents, but people often omit them when typing.
 */
export async function stemmedWords(language: StemmedLanguage): Promise<WordRules> {
  const { script, normalized = same, ...source } = SOURCES[language];
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
