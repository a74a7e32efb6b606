import { ANY_LANGUAGE, UNSPACED, type WordRules } from '../../../base/text/terms.js';
import type { UnspacedLanguage } from '../../../model/facets/retrieval-options.js';

interface UnspacedLexicon {
  readonly locale: string;
  readonly stopWords: () => Promise<{ readonly stopwords: readonly string[] }>;
  /** False for words that carry no meaning but are on no stop list. */
  readonly hasMeaning: (word: string) => boolean;
}

/** Particles, prepositions, pronouns and auxiliaries of Thai; the stop word package has no Thai list. */
const THAI_STOP_WORDS =
  'ที่ และ ของ ใน เป็น การ ความ ได้ ให้ มี ไม่ จะ ก็ ว่า กับ แต่ หรือ โดย จาก นี้ นั้น ซึ่ง ด้วย ถ้า เพราะ เพื่อ แล้ว อยู่ คือ ถึง ตาม ต่อ ' +
  'ไป มา ขึ้น ลง ออก เข้า ต้อง ควร อาจ เคย กำลัง ยัง เลย นะ ครับ ค่ะ คะ ฉัน ผม คุณ เขา เธอ เรา มัน พวก ทั้ง ทุก บาง แต่ละ อีก เอง กัน ๆ';

const SOURCES: Readonly<Record<UnspacedLanguage, UnspacedLexicon>> = {
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

/** Length of the pieces to segment, in UTF-16 code units: the segmenter's time grows quadratically. */
const PIECE = 500;

/** Splits runs of letters into words using ICU's dictionary, and removes stop words. Words are not stemmed. */
export async function unspacedWords(language: UnspacedLanguage): Promise<WordRules> {
  const { locale, hasMeaning, stopWords } = SOURCES[language];
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
 * Parts of a word that help to find its other forms: a Han stem before a Hiragana ending, and the letter pairs of a
 * long Han word, since dictionaries differ in what they consider one word.
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
