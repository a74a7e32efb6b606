import { ANY_LANGUAGE, type WordRules } from '../../../base/text/terms.js';
import { isUnspaced, type Language } from '../../../model/facets/retrieval-options.js';

/**
 * Incremented whenever words map to different terms, because these rules or the stemmer or stop word packages changed.
 */
const READING = 1;

const opened = new Map<Language, Promise<WordRules>>();

/** Word rules of a facet, for passages and queries. A language's data is loaded on first use. */
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

/** The same rules with a cache, for a query that reads many passages. */
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

/** The language and rule version that a store's terms depend on; undefined if the facet has no language. */
export function readingOf(language: Language | null): readonly [Language, number] | undefined {
  return language === null ? undefined : [language, READING];
}

/**
 * Version of the dictionary that splits words; undefined if none is used. A different version may split words
 * differently.
 */
export function dictionaryOf(language: Language | null): string | undefined {
  if (language === null || !isUnspaced(language)) return undefined;
  return process.versions.icu?.split('.')[0];
}
