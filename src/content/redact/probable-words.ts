import type { SystemQueries } from '../../engine/index.js';
import type { Facet } from '../../model/manifest/index.js';
import { documentPages, type SourceRow } from '../indexer/source.js';
import { foldText } from './fold.js';
import type { ValueMatcher } from './matcher.js';
import type { Redactors } from './redactors.js';

/** A declared value that occurs in so many documents that it is probably an ordinary word. */
export interface ProbableWord {
  /** The value's spelling in the first document with it. For the operator only, because redaction hides the value. */
  readonly value: string;
  readonly label: string;
  readonly documents: number;
  readonly of: number;
}

/** Number of documents that are examined: the first ones by id. */
const LOOKED_AT = 500;
const PAGE = 50;
const FEWEST_DOCUMENTS = 10;
/** Minimum share of the documents that must contain a value for it to count as a probable word. */
const WORD_SHARE = 0.2;
const MOST_WORDS = 20;

/** Counts how many of the first documents contain each declared value. */
export class ProbableWords {
  readonly #found = new Map<string, { value: string; label: string; documents: number }>();
  #of = 0;

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

  words(): readonly ProbableWord[] {
    const of = this.#of;
    return [...this.#found.values()]
      .filter(({ documents }) => documents >= FEWEST_DOCUMENTS && documents >= of * WORD_SHARE)
      .sort((a, b) => b.documents - a.documents || (a.value < b.value ? -1 : 1))
      .slice(0, MOST_WORDS)
      .map((word) => ({ ...word, of }));
  }
}

/** Declared values that are probably ordinary words, most frequent first. Reads the source. */
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

/** Distinct declared values in a document, by folded text. */
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
