/** The parts of `src/content` that a server loads: no indexing, redaction or models. */
export { ContentError, type ContentErrorName } from './content-error.js';
export type { ChatEndpoint } from './decode/chat.js';
export type { Embedder } from './embed/embedder.js';
export { lexicalEmbedder } from './embed/lexical-v1.js';
export { type EmbedderSettings, openEmbedder } from './embed/open.js';
export { serverNamed } from './http.js';
export {
  lexicalQuery,
  occurrencesOf,
  termsInSteps,
  type WrittenTerms,
  writtenInSteps,
} from './lexical/bm25.js';
export { cachedRules, wordRules } from './lexical/languages/word-rules.js';
export { EncoderEnded, type EncoderJob, EncoderThread } from './operators/encoder-thread.js';
export { encoderTexts, MOST_WORK, workOf } from './operators/run.js';
export {
  DEFAULT_MIN_LENGTH,
  indexedTimes,
  openStore,
  type ServedStore,
  stableSnapshot,
  type TableName,
  vectorText,
} from './store/control.js';
