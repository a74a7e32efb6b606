/** Indexing, embedding, redaction, BM25 and operators. Nothing here depends on policies. */
export { chunkSpans, countCodePoints } from './chunk.js';
export { ContentError } from './content-error.js';
export { DailyBudget } from './decode/budget.js';
export { type ChatBounds, type ChatEndpoint, ChatModel } from './decode/chat.js';

export type { DecoderPassage } from './decode/operators.js';
export {
  checkDecoder,
  type DecodedColumn,
  type DecoderCaller,
  runDecoder,
} from './decode/run.js';
export type { Embedder } from './embed/embedder.js';
export { lexicalEmbedder } from './embed/lexical-v1.js';
export { openEmbedder } from './embed/open.js';
export { openEmbeddingEndpoint } from './embed/openai.js';
export { openTransformers } from './embed/transformers.js';
export {
  type IndexOptions,
  type IndexProgress,
  type IndexSummary,
  indexFacet,
  type OnIndexProgress,
} from './indexer/index-facet.js';
export { type IndexStatus, indexStatus } from './indexer/index-status.js';
export { inverseFrequency, lexicalQuery, TERM_SPACE, type TermCounts, termsOf } from './lexical/bm25.js';

export { runEncoder } from './operators/run.js';
export type { Duplicate } from './operators/similarity.js';
export { compareIds, type OperatorPassage } from './operators/vectors.js';

export { DETECTOR_NAMES } from './redact/detectors/detectors.js';

export { type ProbableWord, probableWords } from './redact/probable-words.js';
export { openRedactors } from './redact/redactors.js';
export {
  DEFAULT_MIN_LENGTH,
  dropStore,
  openStore,
  prepareContent,
  stableSnapshot,
  storeState,
  vectorText,
} from './store/control.js';
export { storeColumns } from './store/ddl.js';
