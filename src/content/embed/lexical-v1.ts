import { LEXICAL_MODEL } from '../../model/facets/embedding-models.js';
import { B, K1 } from '../lexical/bm25.js';
import { NGRAM_DIMENSIONS, ngramVector } from '../lexical/ngrams.js';
import { TERM_SPACE } from '../lexical/terms.js';
import type { Embedder } from './embedder.js';

/** Offline default without a model or a network. `embed` returns n-gram vectors; BM25 has separate columns. */
export const lexicalEmbedder: Embedder = Object.freeze({
  model: LEXICAL_MODEL,
  fingerprint: `${LEXICAL_MODEL};porter;bm25 ${K1} ${B};${TERM_SPACE};ngrams 3-5 ${NGRAM_DIMENSIONS};r3`,
  layout: Object.freeze({ kind: 'lexical', dimensions: NGRAM_DIMENSIONS, type: 'halfvec' } as const),
  embed: async (texts: readonly string[]) => texts.map(ngramVector),
  close: async () => {},
});
