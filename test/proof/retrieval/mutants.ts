/** One fault of retrieval: in files as tsc built them, one text stands for another while it is on. */
export interface Mutant {
  readonly fault: string;
  readonly edits: readonly Edit[];
}

interface Edit {
  /** Below `dist/src/ask/data/runtime`, or with `@` below `compiler/dist`. */
  readonly file: string;
  /** An expression, arguments with commas between, or statements, and what is there while the fault is on. */
  readonly from: string;
  readonly to: string;
}

const edit = (file: string, from: string, to: string): Edit => ({ file, from, to });
const mutant = (fault: string, ...edits: readonly Edit[]): Mutant => ({ fault, edits });

const STORE = '@govern/store';
const LEXICAL = "view.request.facet.lane === 'lexical'";
const FILTER = 'rowFilter(view.allowed, view.slots)';
const VISIBLE = '[visible, ...where]';
export const MUTANTS: readonly Mutant[] = [
  mutant(
    'the lexical leg forgets the row filter',
    edit(`${STORE}/scan`, FILTER, `(${LEXICAL} ? null : ${FILTER})`),
  ),
  mutant(
    'the dense leg forgets the row filter',
    edit(`${STORE}/scan`, FILTER, `(${LEXICAL} ? ${FILTER} : null)`),
  ),
  mutant(
    'the lexical leg forgets whose entity is hidden',
    edit(`${STORE}/scan`, VISIBLE, `(${LEXICAL} ? where : ${VISIBLE})`),
  ),
  mutant(
    'the dense leg forgets whose entity is hidden',
    edit(`${STORE}/scan`, VISIBLE, `(${LEXICAL} ? ${VISIBLE} : where)`),
  ),
  mutant(
    'the best are taken before a filter holds',
    edit(
      '@bind/runtime/store-filters',
      'draft.filters.push(conjunct);\n        return false;',
      'return true;',
    ),
  ),
  mutant(
    'the best are taken before IN (SELECT …) holds',
    edit('@govern/runtime', 'relation.keyFilters\n', '[]\n'),
  ),
  mutant(
    'nobody is told that rows filter after',
    edit('@bind/runtime/store-filters', 'readsOtherItems(conjunct, draft.source)', 'false'),
  ),
  mutant(
    'words are weighed by what was counted of all passages',
    edit(`${STORE}/counts`, 'scan.filter === null', 'true'),
    edit(`${STORE}/counts`, 'filtersOf(accessTo(entity, access).grants) === null', 'true'),
    edit(`${STORE}/counts`, 'indexed(view, version, zero, 1)', 'seen(7)'),
  ),
  mutant(
    'words counted for one caller are those of another',
    edit('permitted-counts', 'keyOf(counts.whole, NO_WORDS, input)', '0'),
  ),
  mutant(
    'a page of words begins one further down',
    edit('leg-search', 'String(this.#page.skip)', 'String(this.#page.skip + 1)'),
  ),
  mutant('a page of meaning begins one further down', edit('leg-search', 'String(skip)', 'String(skip + 1)')),
  mutant(
    'a fused page begins one further down',
    edit('search', 'pageOf(ranked, page)', 'pageOf(ranked, { ...page, skip: page.skip + 1 })'),
  ),
  mutant(
    'a diverse page begins at the first',
    edit('search', 'pageOf(diversified, page)', 'diversified.slice(0, page.topK)'),
  ),
  mutant('the weights are swapped', edit('search', 'return [a, b];', 'return [b, a];')),
  mutant('ranks begin at 0', edit('search', 'RANK_CONSTANT + i + 1', 'RANK_CONSTANT + i')),
  mutant(
    'the last of a leg counts as its best',
    edit('search', '(score - last) / (best - last)', 'score / best'),
  ),
  mutant(
    'legs are as long as the page',
    edit('search', 'Math.max(MIN_DEPTH, 2 * (page.skip + page.topK))', 'page.skip + page.topK'),
  ),
  mutant(
    'a fused document shows the passage of the leg that counts less',
    edit('search', 'b.share - a.share', 'a.share - b.share'),
  ),
  mutant(
    'fused passages are keyed by themselves',
    edit('search', 'page.ofDocuments ? p.docId : p.chunkId', 'p.chunkId'),
  ),
  mutant('equal scores go by the other end', edit('search', 'byChunkId(a, b)', 'byChunkId(b, a)')),
  mutant('what one leg alone has does not come', edit('search', '!byId.has(p.chunkId)', 'false')),
  mutant('a query without words fails in both legs', edit('search', 'words.terms.length > 0', 'true')),
  mutant('each passage of a document counts', edit(`${STORE}/passages`, "page?.per === 'document'", 'false')),
  mutant(
    'a document counts with its worst passage',
    edit(`${STORE}/passages`, '[document, ...order.map(within)]', '[document]'),
  ),
  mutant(
    'the floor is for what is not shown',
    edit('passage', 'shownScore(p.score) >= minScore', 'p.score >= minScore'),
  ),
  mutant(
    'the floor is for what is above it',
    edit('passage', 'shownScore(p.score) >= minScore', 'shownScore(p.score) > minScore'),
  ),
  mutant(
    'the floor is forgotten where legs are fused',
    edit(
      'search',
      'aboveMinScore(fuseLegs(legResults, legs, keyOf), page)',
      'fuseLegs(legResults, legs, keyOf)',
    ),
  ),
  mutant(
    'the floor is forgotten in one leg',
    edit(
      'retrieve',
      'aboveMinScore(await searchStore(store, query, searchPage, input), searchPage)',
      'await searchStore(store, query, searchPage, input)',
    ),
  ),
  mutant(
    'the diverse are chosen from the page alone',
    edit('search', 'Math.max(POOL.min, POOL.perPassage * count)', 'count'),
  ),
  mutant('diversity is likeness', edit('search', '1 - page.diversity', 'page.diversity')),
  mutant('passages without a word of the query are found', edit('leg-search', 'score > 0', 'true')),
];
