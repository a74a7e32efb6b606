import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import { type DecoderName, type EncoderName, InternalError, OPERATORS, queryError } from 'osl-compiler';
import type {
  ContentPlane,
  OperatorCall,
  OperatorCaller,
  OperatorResult,
  ReadyStore,
  StoredPassage,
} from '../../ask/data/content-plane.js';
import { unlessStopped } from '../../ask/data/question.js';
import { inTurns } from '../../base/in-turns.js';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';
import type { ChatModel } from '../../content/decode/chat.js';
import type { checkDecoder, runDecoder } from '../../content/decode/run.js';
import {
  type ChatEndpoint,
  ContentError,
  type ContentErrorName,
  cachedRules,
  type Embedder,
  type EmbedderSettings,
  EncoderEnded,
  type EncoderJob,
  EncoderThread,
  encoderTexts,
  lexicalEmbedder,
  lexicalQuery,
  MOST_WORK,
  occurrencesOf,
  openEmbedder,
  type ServedStore,
  type TableName,
  termsInSteps,
  vectorText,
  type WrittenTerms,
  wordRules,
  workOf,
  writtenInSteps,
} from '../../content/serving.js';
import { NoSystemCredentials, stopError, UpstreamFailure } from '../../engine/index.js';
import { type ArgumentValues, checkArguments, InvalidArgument } from '../../model/facets/arguments.js';
import { type Facet, indexedFacet, type Manifest, systemUrlVariable } from '../../model/manifest/index.js';
import { placesOf, type Share, WHOLE } from '../share.js';
import { IndexTimes, type SystemReads } from '../system-reads.js';
import { reranking } from './reranking.js';

/** Models and limits that the content plane uses. */
export interface ContentSettings {
  readonly embeddings: EmbedderSettings['endpoint'];
  /** Chat model for decoder operators; null means that these operators are refused. */
  readonly chat: ChatSettings | null;
  /** This process's share of concurrent model requests; default: all of them. */
  readonly share?: Share;
}

export interface ChatSettings extends ChatEndpoint {
  /** Size of the cache of answers in bytes; 0 disables it. Default 16 MiB. */
  readonly cacheBytes?: number;
  /** Number of passages that a subject may send per day, over all processes; null: unlimited. */
  readonly perDay?: number | null;
}

const DEFAULT_CHAT_CACHE_BYTES = 16_777_216;
const DEFAULT_CHAT_CONCURRENCY = 4;

/** Time in ms for which a successful check of a store is reused. */
const TRUST_MS = 5_000;

/** Maximum query length, in UTF-16 code units, for languages with slower tokenization. */
const LONGEST_OF_A_LANGUAGE = 4_000;

const QUERY_VECTOR_BYTES = 16_777_216;

interface CheckedStore {
  /** Time of the check, on the clock of `performance.now()`, which is never set back. */
  readonly at: number;
  readonly store: ReadyStore;
  readonly state: ServedStore;
}

/** Facets with the same model settings share an embedder. */
function embedderKey({ embeddingModel, embedding }: Facet): string {
  return JSON.stringify([embeddingModel, embedding]);
}

/** Returns the content plane, which searches the facets' stores in their databases and runs text operators. */
export function contentPlane(
  manifest: () => Manifest,
  reads: SystemReads,
  settings: ContentSettings,
  log: ServiceLog,
  dataDir: string,
): ContentPlane {
  const encoders = new EncoderThread();
  const { share = WHOLE } = settings;
  const decoding = settings.chat === null ? null : decodingBy(settings.chat, share, dataDir, log);
  decoding?.catch(() => undefined); // the error is reported to the query that needs the model
  if (settings.chat !== null) import('ajv').catch(() => undefined); // preloaded: it would delay the first EXTRACT
  const embedders = new Map<string, Promise<Embedder>>();
  // Query vectors, by embedder and text.
  const queries = new LRUCache<string, string>({
    maxSize: QUERY_VECTOR_BYTES,
    sizeCalculation: (vector) => vector.length + 200,
  });
  // Keyed by facet object, so that stores are checked again under another manifest version.
  const checked = new WeakMap<Facet, Map<string, CheckedStore>>();
  const times = new IndexTimes(reads);
  const embedderOf = (facet: Facet): Promise<Embedder> => {
    const key = embedderKey(facet);
    const known =
      embedders.get(key) ??
      openEmbedder(facet.embeddingModel, { endpoint: settings.embeddings }, facet.embedding);
    embedders.set(key, known);
    // If opening fails, the next query tries again.
    known.catch(() => embedders.delete(key));
    return known;
  };
  const facetNamed = (name: string): Facet => {
    const facet = indexedFacet(manifest(), name);
    if (facet === null) throw queryError('unknownFacet', { facet: name });
    return facet;
  };
  /** Checks, at most every few seconds, that a store may be read. */
  const readyStore = async (facet: Facet, version: string): Promise<ReadyStore> => {
    const { name } = facet;
    const stores = checked.get(facet) ?? new Map<string, CheckedStore>();
    checked.set(facet, stores);
    const known = stores.get(version);
    if (known !== undefined && performance.now() - known.at < TRUST_MS) return known.store;
    const found = await withQueryErrors(name, async () =>
      reads.readStore(facet, version, await embedderOf(facet)),
    ).catch((error: unknown) => {
      throw storeFault(error, facet, manifest(), log);
    });
    if (found === null)
      throw queryError('contentUnavailable', { facet: name, reason: 'its connector is not open' });
    const { epoch, indexedAt, isCutAsDeclared } = found;
    if (!isCutAsDeclared && known === undefined)
      log.warn('passages are served as they were cut before the manifest said otherwise: run `osl index`', {
        facet: name,
        version,
      });
    const isSame = known !== undefined && isDeepStrictEqual(known.state, found);
    const since = isSame ? known.store.since : performance.now();
    const store = Object.freeze({ epoch, indexedAt, since });
    stores.set(version, { at: performance.now(), store, state: found });
    return store;
  };
  return Object.freeze({
    async ready(name: string, version: string) {
      const facet = facetNamed(name);
      try {
        return await readyStore(facet, version);
      } catch (error) {
        const now = facetNamed(name);
        // After a reload, the old store may have been replaced.
        if (now === facet) throw error;
        return readyStore(now, version);
      }
    },
    indexedAt: (names: readonly string[]) => times.of(manifest(), names),
    settledAt: async (name: string, tables: readonly TableName[]) =>
      reads.readSettled(facetNamed(name).connector, tables),
    lexicalQuery: async (name: string, text: string) => {
      const { language } = facetNamed(name);
      if (language !== null && text.length > LONGEST_OF_A_LANGUAGE)
        throw queryError('tooLarge', { what: 'the length of `query`', limit: LONGEST_OF_A_LANGUAGE });
      const words = cachedRules(await wordRules(language));
      const terms = await inTurns(termsInSteps(text, words));
      const { ids } = terms;
      const wanted = new Set(ids);
      let spellings: Promise<WrittenTerms> | null = null;
      return {
        terms: ids,
        spellings: () => {
          spellings ??= inTurns(writtenInSteps(text, words));
          return spellings;
        },
        occurrences: (passage: string) => occurrencesOf(passage, wanted, words),
        toSparseVector: (documents: number, frequencies: readonly number[]) => {
          const byTerm = new Map(ids.map((id, i) => [id, frequencies[i] ?? 0]));
          const statistics = { documents, documentFrequency: (id: number) => byTerm.get(id) ?? 0 };
          const found = lexicalQuery(terms, statistics);
          if (found === null) return null;
          const { vector, termIds, rarities, maxScores } = found;
          return { vector, terms: termIds, rarities, maxScores };
        },
      };
    },
    async embedQuery(name: string, text: string) {
      return withQueryErrors(name, async () => {
        const facet = facetNamed(name);
        const key = createHash('sha256')
          .update(`${embedderKey(facet)}\n${text}`)
          .digest('base64');
        const known = queries.get(key);
        if (known !== undefined) return known;
        const embedder = await embedderOf(facet);
        const [vector] = await embedder.embed([text], 'query');
        const made = vectorText(vector ?? new Float32Array());
        queries.set(key, made);
        return made;
      });
    },
    ...reranking(manifest, share, log, dataDir),
    hasDecoder: settings.chat !== null,
    check: async ({ use, values }: OperatorCall) => {
      try {
        const decoder = OPERATORS[use.operator].class === 'decoder' ? await decoding : null;
        if (decoder !== null) decoder.check(use.operator as DecoderName, argumentValues(values));
        else checkArguments(use.operator, argumentValues(values));
      } catch (error) {
        throw asQueryError(use.operator, error);
      }
    },
    run: (
      name: string,
      call: OperatorCall,
      query: string,
      passages: readonly StoredPassage[],
      by: OperatorCaller,
    ) =>
      withQueryErrors(name, async () =>
        OPERATORS[call.use.operator].class === 'encoder'
          ? encoderColumn(
              call,
              query,
              storedVectors(passages),
              await embedderOf(facetNamed(name)),
              encoders,
              by,
            )
          : decoderColumn(call, passages, await decoding, by),
      ),
    runOverTexts: async (call: OperatorCall, texts: readonly (string | null)[], by: OperatorCaller) => {
      const places = texts.flatMap((text, i) => (text === null || text.trim() === '' ? [] : [i]));
      const read = { kind: 'texts', texts: places.map((i) => texts[i] ?? '') } as const;
      const { values } = await encoderColumn(call, '', read, lexicalEmbedder, encoders, by);
      const column: unknown[] = new Array(texts.length).fill(null);
      for (const [n, i] of places.entries()) column[i] = placed(values[n], places);
      return column;
    },
  });
}

/** Converts the index `value.of` among the non-empty texts to the index of the same text among all texts. */
function placed(value: unknown, places: readonly number[]): unknown {
  if (typeof value !== 'object' || value === null || !('of' in value) || value.of === null)
    return value ?? null;
  return { ...value, of: places[Number(value.of)] ?? null };
}

/** Converts a failure to read a store to the error for the caller. Logs the environment variable to check. */
function storeFault(error: unknown, facet: Facet, { connectors }: Manifest, log: ServiceLog): unknown {
  const connector = connectors.get(facet.connector);
  if (connector === undefined) return error;
  const variable = systemUrlVariable(connector);
  const about = { connector: connector.name, facet: facet.name, variable };
  if (error instanceof NoSystemCredentials) {
    log.error('a facet cannot be served: the variable with the system credentials is not set', about);
    return queryError('storeClosed', { facet: facet.name, reason: 'has no credentials for its store' });
  }
  if (error instanceof UpstreamFailure) {
    const { message: cause, sqlstate } = error;
    log.error('a facet cannot be served: its store cannot be read', { ...about, sqlstate, cause });
    return queryError('storeClosed', { facet: facet.name, reason: 'may not read its store' });
  }
  return error;
}

function argumentValues(values: ReadonlyMap<string, unknown>): ArgumentValues {
  return Object.fromEntries([...values].filter(([, value]) => value !== null));
}

function storedVectors(passages: readonly StoredPassage[]): EncoderJob['read'] {
  return {
    kind: 'stored',
    passages: passages.map(({ chunkId, vector }) => ({ chunkId, vector: vector ?? '{}' })),
  };
}

async function encoderColumn(
  { use, values }: OperatorCall,
  query: string,
  read: EncoderJob['read'],
  embedder: Embedder,
  encoders: EncoderThread,
  { subject, timeoutMs, signal }: OperatorCaller,
): Promise<OperatorResult> {
  const operator = use.operator as EncoderName;
  const given = argumentValues(values);
  const checked = checkArguments(operator, given);
  const { texts, role } = encoderTexts(operator, checked, query);
  const { dimensions } = embedder.layout;
  const passages = read.kind === 'stored' ? read.passages.length : read.texts.length;
  const characters = read.kind === 'stored' ? 0 : read.texts.reduce((sum, text) => sum + text.length, 0);
  const size = { passages, texts: texts.length, dimensions, characters };
  if (workOf(operator, checked, size) > MOST_WORK) throw tooMuch(operator);
  const inThread = embedder === lexicalEmbedder || texts.length === 0;
  const embedded = inThread
    ? null
    : await unlessStopped(embedder.embed(texts, role, signal ?? undefined), signal);
  const job = { operator, values: given, query, read, embedded };
  const call = { caller: subject, deadlineMs: timeoutMs > 0 ? timeoutMs : LONGEST_MS, signal };
  const column = await unlessStopped(encoders.run(job, call), signal).catch((error: unknown) => {
    throw encoderFault(operator, error, call.deadlineMs, signal);
  });
  return { values: column, errors: [] };
}

function tooMuch(operator: EncoderName): unknown {
  return queryError('tooLarge', { what: `${operator} of so many texts and labels`, limit: MOST_WORK });
}

const LONGEST_MS = 60_000;

function encoderFault(
  operator: EncoderName,
  error: unknown,
  deadlineMs: number,
  signal: AbortSignal | null,
): unknown {
  if (!(error instanceof EncoderEnded)) return error;
  switch (error.why) {
    case 'late':
      return queryError('timedOut', { seconds: deadlineMs / 1_000 });
    case 'stopped':
      return signal === null ? error : stopError(signal);
    case 'full':
      return queryError('rateLimited', { retryAfterSeconds: 1 });
    case 'memory':
      return tooMuch(operator);
    case 'failed':
      return new InternalError(error.message);
  }
}

interface DecoderModel {
  readonly check: typeof checkDecoder;
  readonly run: typeof runDecoder;
  readonly model: ChatModel;
}

async function decodingBy(
  settings: ChatSettings,
  share: Share,
  dataDir: string,
  log: ServiceLog,
): Promise<DecoderModel> {
  // Loaded only if a model is configured.
  const [{ DailyBudget }, { ChatModel }, { checkDecoder, runDecoder }] = await Promise.all([
    import('../../content/decode/budget.js'),
    import('../../content/decode/chat.js'),
    import('../../content/decode/run.js'),
  ]);
  const { cacheBytes = DEFAULT_CHAT_CACHE_BYTES, perDay = null, ...endpoint } = settings;
  const concurrency = placesOf(endpoint.concurrency ?? DEFAULT_CHAT_CONCURRENCY, share);
  const onFault = (cause: unknown): void =>
    log.error('passages cannot be counted, so none is sent to the model', { cause: messageOf(cause) });
  const budget = perDay === null ? null : new DailyBudget(join(dataDir, 'decoding'), perDay, onFault);
  return {
    check: checkDecoder,
    run: runDecoder,
    model: new ChatModel({ ...endpoint, concurrency }, { cacheBytes, budget }),
  };
}

async function decoderColumn(
  { use, values }: OperatorCall,
  passages: readonly StoredPassage[],
  decoding: DecoderModel | null,
  { subject, until, timeoutMs, signal, onUsage }: OperatorCaller,
): Promise<OperatorResult> {
  if (decoding === null) throw queryError('noDecoder', { operator: use.operator });
  const operator = use.operator as DecoderName;
  const seen = passages.map(({ chunkId, text, start }) => ({ chunkId, text, start }));
  const by = { subject, until: until - reserveOf(timeoutMs), signal, onUsage };
  const running = decoding.run(operator, seen, argumentValues(values), decoding.model, by);
  const { values: column, errors } = await running.catch((error: unknown) => {
    throw signal?.aborted === true ? stopError(signal) : error;
  });
  return {
    values: column,
    errors: errors.map((e) => ({ chunkId: e.chunkId, reason: `${e.operator}: ${e.message}` })),
  };
}

/** Part of a query's timeout, in ms, that is reserved for its statement. */
function reserveOf(timeoutMs: number): number {
  return Math.min(5_000, timeoutMs / 5);
}

/** Errors caused by the model rather than the index. */
const MODEL_FAULTS: ReadonlySet<ContentErrorName> = new Set([
  'endpoint',
  'malformedAnswer',
  'notInstalled',
  'unknownModel',
]);

/** Maps content errors of `run` to QueryErrors. */
async function withQueryErrors<T>(facet: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw asQueryError(facet, error);
  }
}

function asQueryError(about: string, error: unknown): unknown {
  if (error instanceof InvalidArgument)
    return queryError('typeMismatch', { detail: error.message, hint: null });
  if (error instanceof ContentError) {
    const entry = MODEL_FAULTS.has(error.code) ? 'modelUnavailable' : 'contentUnavailable';
    return queryError(entry, { facet: about, reason: error.message });
  }
  return error;
}
