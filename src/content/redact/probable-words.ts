import type { SystemQueries } from '../../engine/index.js';
import type { Facet } from '../../model/manifest/index.js';
import { documentPages, type SourceRow } from '../indexer/source.js';
import { foldText } from './fold.js';
import type { ValueMatcher } from './matcher.js';
import type { Redactors } from './redactors.js';

/** A declared value that stands in so many documents that it is a word rather than somebody's. */
export interface ProbableWord {
  /** As it stands in the first document that has it. For the operator alone: it is what redaction hides. */
  readonly value: string;
  /** Its sensitivity label. */
  readonly label: string;
  readonly documents: number;
  /** Documents that were looked at. */
  readonly of: number;
}

/** Documents that are looked at: the first by id. */
const LOOKED_AT = 500;
const PAGE = 50;
/** Of fewer documents nothing is concluded. */
const FEWEST_DOCUMENTS = 10;
/** Fraction of the documents that contain a word. */
const WORD_SHARE = 0.2;
const MOST_WORDS = 20;

/** Declared values of the first documents that it is shown, and in how many of these each stands. */
export class ProbableWords {
  readonly #found = new Map<string, { value: string; label: string; documents: number }>();
  #of = 0;

  /** True if no more documents are looked at. */
  get full(): boolean {
    return this.#of >= LOOKED_AT;
  }

  add(document: SourceRow, matcher: ValueMatcher): void {
    if (this.full) return;
    this.#of += 1;
    for (const [folded, { value, label }] of valuesIn(document, matcher)) {
      const known = this.#found.get(folded) ?? { value, label, documents: 0 };
      known.documents += 1;
      this.#found.set(folded, known);
    }
  }

  /** Those that probably are words, the most frequent first. */
  words(): readonly ProbableWord[] {
    const of = this.#of;
    return [...this.#found.values()]
      .filter(({ documents }) => documents >= FEWEST_DOCUMENTS && documents >= of * WORD_SHARE)
      .sort((a, b) => b.documents - a.documents || (a.value < b.value ? -1 : 1))
      .slice(0, MOST_WORDS)
      .map((word) => ({ ...word, of }));
  }
}

/** Declared values that probably are words, the most frequent first. Reads the source as it is. */
export async function probableWords(
  system: SystemQueries,
  facet: Facet,
  redactors: Redactors,
): Promise<readonly ProbableWord[]> {
  const counts = new ProbableWords();
  for await (const page of documentPages(system, facet, PAGE)) {
    const rules = await redactors.forKeys(page.map((d) => d.key));
    for (const document of page) counts.add(document, rules(document.key).matcher);
    if (counts.full) break;
  }
  return counts.words();
}

/** The different declared values of a document, by their folded text. */
function valuesIn(
  { id, text, metadata }: SourceRow,
  matcher: ValueMatcher,
): ReadonlyMap<string, { readonly value: string; readonly label: string }> {
  const values = new Map<string, { readonly value: string; readonly label: string }>();
  for (const field of [id, text, ...metadata]) {
    if (field === null) continue;
    for (const { start, end, label } of matcher.find(field)) {
      const value = field.slice(start, end);
      const folded = foldText(value);
      if (!values.has(folded)) values.set(folded, { value, label });
    }
  }
  return values;
}
