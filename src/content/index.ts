/** The content plane without its governance: indexing, embedding, redaction, BM25 and the operators. */
export { type Chunking, chunkSpans, type Span } from './chunk.js';
export { CONTENT_ERRORS, ContentError, type ContentErrorName } from './content-error.js';
export { DailyBudget } from './decode/budget.js';
export { type ChatBounds, type ChatEndpoint, ChatModel } from './decode/chat-model.js';
export { DECODER_FAULTS, type DecoderFault } from './decode/failure.js';
export type { DecoderPassage, ExtractedField } from './decode/operators.js';
export {
  checkDecoder,
  type DecodedColumn,
  type DecoderCaller,
  type RowError,
  runDecoder,
} from './decode/run.js';
export type { DenseLayout, Embedder, LexicalLayout, TextRole, VectorLayout } from './embed/embedder.js';
export { lexicalEmbedder } from './embed/lexical-v1.js';
export { type EmbedderSettings, openEmbedder } from './embed/open.js';
export { type EmbeddingEndpoint, openEmbeddingEndpoint } from './embed/openai.js';
export { openTransformers, type TransformersModel } from './embed/transformers.js';
export type { Endpoint } from './http.js';
export { type IndexStanding, indexStanding, type RowsBehind } from './indexer/behind.js';
export { chunkId } from './indexer/chunks.js';
export { type IndexOptions, type IndexSummary, indexFacet } from './indexer/index-facet.js';
export type { IndexProgress, OnIndexProgress } from './indexer/progress.js';
export {
  inverseFrequency,
  type LexicalQuery,
  lexicalQuery,
  type PermittedStatistics,
} from './lexical/bm25.js';

export { TERM_SPACE, type Terms, termsOf } from './lexical/terms.js';
export { countCodePoints, sliceCodePoints } from './offsets.js';
export type { Duplicate } from './operators/dedup.js';
export { type EncoderCall, EncoderEnded, EncoderThread } from './operators/encoder-thread.js';
export { compareIds, cosine, type Passage } from './operators/passage.js';
export { type EncoderContext, runEncoder } from './operators/run.js';
export { encoderTexts } from './operators/texts.js';
export { MOST_WORK, workOf } from './operators/work.js';
export { DETECTOR_NAMES, type DetectorName } from './redact/detectors/detectors.js';
export { MASK } from './redact/matcher.js';
export { type ProbableWord, probableWords } from './redact/probable-words.js';
export { openRedactors } from './redact/redactors.js';
export {
  DEFAULT_MIN_LENGTH,
  dropStore,
  openStore,
  prepareContent,
  type StoreState,
  storeState,
} from './store/control.js';
export { type StoreColumn, storeColumns, VECTOR_SCHEMA } from './store/ddl.js';
export { settledAt, type TableName } from './store/settled.js';
export { parseVector, vectorText } from './store/vector-text.js';
