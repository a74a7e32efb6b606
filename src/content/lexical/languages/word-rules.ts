import { ANY_LANGUAGE, type WordRules } from '../../../base/text/terms.js';
import { isUnspaced, type Language } from '../../../model/facets/languages.js';

/** Grows whenever a word becomes other terms: with these rules, and with the packages of stemmers and stop words. */
const READING = 1;

const opened = new Map<Language, Promise<WordRules>>();

/** Word rules of a facet, for passages and queries alike. A language's data is loaded when it is named. */
export async function wordRules(language: Language | null): Promise<WordRules> {
  if (language === null) return ANY_LANGUAGE;
  const rules = opened.get(language) ?? openRules(language);
  opened.set(language, rules);
  return rules;
}

async function openRules(language: Language): Promise<WordRules> {
  if (isUnspaced(language)) {
    const { unspacedWords } = await import('./unspaced.js');
    return unspacedWords(language);
  }
  const { stemmedWords } = await import('./stemmed.js');
  return stemmedWords(language);
}

/** The same rules, which work out each word once: for one question over many passages. */
export function remembering(rules: WordRules): WordRules {
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

/** Settings of a store's terms; undefined without a language. */
export function readingOf(language: Language | null): readonly [Language, number] | undefined {
  return language === null ? undefined : [language, READING];
}

/** Dictionary that split the words of a store, if one did: another may split some of them otherwise. */
export function dictionaryOf(language: Language | null): string | undefined {
  if (language === null || !isUnspaced(language)) return undefined;
  return process.versions.icu?.split('.')[0];
}
