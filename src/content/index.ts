/** The content plane without its governance: indexing, embedding, redaction, BM25 and the operators. */
export { type Chunking, chunkSpans, type Span } from './chunk.js';
export { CONTENT_ERRORS, ContentError, type ContentErrorName } from './content-error.js';
export { type ChatEndpoint, DECODER_FAULTS, type DecoderFault } from './decode/chat.js';
export type { DecoderPassage, ExtractedField } from './decode/operators.js';
export { checkDecoder, type DecodedColumn, type RowError, runDecoder } from './decode/run.js';
export type { DenseLayout, Embedder, LexicalLayout, TextRole, VectorLayout } from './embed/embedder.js';
export { LEXICAL_MODEL, lexicalEmbedder } from './embed/lexical-v1.js';
export { type EmbedderSettings, openEmbedder } from './embed/open.js';
export { type EmbeddingEndpoint, openEmbeddingEndpoint } from './embed/openai.js';
export { openTransformers, type TransformersModel } from './embed/transformers.js';
export type { Endpoint } from './http.js';
export { chunkId } from './indexer/chunks.js';
export { type IndexOptions, type IndexSummary, indexFacet } from './indexer/index-facet.js';
export type { IndexProgress, OnIndexProgress } from './indexer/progress.js';
export {
  averageLength,
  inverseFrequency,
  type LexicalQuery,
  lexicalQuery,
  type PermittedStatistics,
} from './lexical/bm25.js';

export { TERM_SPACE, type Terms, termsOf } from './lexical/terms.js';
export { countCodePoints, sliceCodePoints } from './offsets.js';
export type { Duplicate } from './operators/dedup.js';
export { compareIds, cosine, type Passage } from './operators/passage.js';
export { type EncoderContext, runEncoder } from './operators/run.js';
export { DETECTOR_NAMES, type DetectorName } from './redact/detectors.js';
export { DEFAULT_MIN_LENGTH } from './redact/dictionary.js';
export { MASK } from './redact/matcher.js';
export { dropStore, openStore, prepareContent, type StoreState, storeState } from './store/control.js';
export { type StoreColumn, storeColumns, VECTOR_SCHEMA } from './store/ddl.js';
export { parseVector, vectorText } from './store/vector-text.js';
