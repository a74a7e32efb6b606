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
import { FULL_SHARE, modelSlots, type Share } from '../share.js';
import { IndexTimes, type SystemReads } from '../system-reads.js';
import { createReranking } from './reranking.js';

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
const CHECK_VALID_MS = 5_000;

/** Maximum query length, in UTF-16 code units, for languages with slower tokenization. */
const MAX_LANGUAGE_QUERY_LENGTH = 4_000;

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
  const { share = FULL_SHARE } = settings;
  const decoderModel = settings.chat === null ? null : openDecoder(settings.chat, share, dataDir, log);
  decoderModel?.catch(() => undefined); // the error is reported to the query that needs the model
  if (settings.chat !== null) import('ajv').catch(() => undefined); // preloaded: it would delay the first EXTRACT
  const embedders = new Map<string, Promise<Embedder>>();
  // Query vectors, by embedder and text.
  const vectorCache = new LRUCache<string, string>({
    maxSize: QUERY_VECTOR_BYTES,
    sizeCalculation: (vector) => vector.length + 200,
  });
  // Keyed by facet object, so that stores are checked again under another manifest version.
  const checkedStores = new WeakMap<Facet, Map<string, CheckedStore>>();
  const times = new IndexTimes(reads);
  const embedderOf = (facet: Facet): Promise<Embedder> => {
    const key = embedderKey(facet);
    const embedder =
      embedders.get(key) ??
      openEmbedder(facet.embeddingModel, { endpoint: settings.embeddings }, facet.embedding);
    embedders.set(key, embedder);
    // If opening fails, the next query tries again.
    embedder.catch(() => embedders.delete(key));
    return embedder;
  };
  const facetNamed = (name: string): Facet => {
    const facet = indexedFacet(manifest(), name);
    if (facet === null) throw queryError('unknownFacet', { facet: name });
    return facet;
  };
  /** Checks, at most every few seconds, that a store may be read. */
  const readyStore = async (facet: Facet, version: string): Promise<ReadyStore> => {
    const { name } = facet;
    const stores = checkedStores.get(facet) ?? new Map<string, CheckedStore>();
    checkedStores.set(facet, stores);
    const cached = stores.get(version);
    if (cached !== undefined && performance.now() - cached.at < CHECK_VALID_MS) return cached.store;
    const state = await withQueryErrors(name, async () =>
      reads.readStore(facet, version, await embedderOf(facet)),
    ).catch((error: unknown) => {
      throw toStoreError(error, facet, manifest(), log);
    });
    if (state === null)
      throw queryError('contentUnavailable', { facet: name, reason: 'its connector is not open' });
    const { epoch, indexedAt, isCutAsDeclared } = state;
    if (!isCutAsDeclared && cached === undefined)
      log.warn('passages are served as they were cut before the manifest said otherwise: run `osl index`', {
        facet: name,
        version,
      });
    const isSame = cached !== undefined && isDeepStrictEqual(cached.state, state);
    const since = isSame ? cached.store.since : performance.now();
    const store = Object.freeze({ epoch, indexedAt, since });
    stores.set(version, { at: performance.now(), store, state: state });
    return store;
  };
  return Object.freeze({
    async ready(name: string, version: string) {
      const facet = facetNamed(name);
      try {
        return await readyStore(facet, version);
      } catch (error) {
        const current = facetNamed(name);
        // After a reload, the old store may have been replaced.
        if (current === facet) throw error;
        return readyStore(current, version);
      }
    },
    indexedAt: (names: readonly string[]) => times.of(manifest(), names),
    settledAt: async (name: string, tables: readonly TableName[]) =>
      reads.readSettled(facetNamed(name).connector, tables),
    lexicalQuery: async (name: string, text: string) => {
      const { language } = facetNamed(name);
      if (language !== null && text.length > MAX_LANGUAGE_QUERY_LENGTH)
        throw queryError('tooLarge', { what: 'the length of `query`', limit: MAX_LANGUAGE_QUERY_LENGTH });
      const words = cachedRules(await wordRules(language));
      const terms = await inTurns(termsInSteps(text, words));
      const { ids } = terms;
      const termIds = new Set(ids);
      let spellings: Promise<WrittenTerms> | null = null;
      return {
        terms: ids,
        spellings: () => {
          spellings ??= inTurns(writtenInSteps(text, words));
          return spellings;
        },
        occurrences: (passage: string) => occurrencesOf(passage, termIds, words),
        toSparseVector: (documents: number, frequencies: readonly number[]) => {
          const byTerm = new Map(ids.map((id, i) => [id, frequencies[i] ?? 0]));
          const statistics = { documents, documentFrequency: (id: number) => byTerm.get(id) ?? 0 };
          const weighted = lexicalQuery(terms, statistics);
          if (weighted === null) return null;
          const { vector, termIds: weightedTerms, rarities, maxScores } = weighted;
          return { vector, terms: weightedTerms, rarities, maxScores };
        },
      };
    },
    async embedQuery(name: string, text: string) {
      return withQueryErrors(name, async () => {
        const facet = facetNamed(name);
        const key = createHash('sha256')
          .update(`${embedderKey(facet)}\n${text}`)
          .digest('base64');
        const cached = vectorCache.get(key);
        if (cached !== undefined) return cached;
        const embedder = await embedderOf(facet);
        const [vector] = await embedder.embed([text], 'query');
        const vectorLiteral = vectorText(vector ?? new Float32Array());
        vectorCache.set(key, vectorLiteral);
        return vectorLiteral;
      });
    },
    ...createReranking(manifest, share, log, dataDir),
    hasDecoder: settings.chat !== null,
    check: async ({ use, values }: OperatorCall) => {
      try {
        const decoder = OPERATORS[use.operator].class === 'decoder' ? await decoderModel : null;
        if (decoder !== null) decoder.check(use.operator as DecoderName, argumentValues(values));
        else checkArguments(use.operator, argumentValues(values));
      } catch (error) {
        throw toQueryError(use.operator, error);
      }
    },
    run: (
      name: string,
      call: OperatorCall,
      query: string,
      passages: readonly StoredPassage[],
      caller: OperatorCaller,
    ) =>
      withQueryErrors(name, async () =>
        OPERATORS[call.use.operator].class === 'encoder'
          ? encoderColumn(
              call,
              query,
              storedVectors(passages),
              await embedderOf(facetNamed(name)),
              encoders,
              caller,
            )
          : decoderColumn(call, passages, await decoderModel, caller),
      ),
    runOverTexts: async (call: OperatorCall, texts: readonly (string | null)[], caller: OperatorCaller) => {
      const indices = texts.flatMap((text, i) => (text === null || text.trim() === '' ? [] : [i]));
      const read = { kind: 'texts', texts: indices.map((i) => texts[i] ?? '') } as const;
      const { values } = await encoderColumn(call, '', read, lexicalEmbedder, encoders, caller);
      const column: unknown[] = new Array(texts.length).fill(null);
      for (const [n, i] of indices.entries()) column[i] = toOriginalIndex(values[n], indices);
      return column;
    },
  });
}

/** Converts the index `value.of` among the non-empty texts to the index of the same text among all texts. */
function toOriginalIndex(value: unknown, indices: readonly number[]): unknown {
  if (typeof value !== 'object' || value === null || !('of' in value) || value.of === null)
    return value ?? null;
  return { ...value, of: indices[Number(value.of)] ?? null };
}

/** Converts a failure to read a store to the error for the caller. Logs the environment variable to check. */
function toStoreError(error: unknown, facet: Facet, { connectors }: Manifest, log: ServiceLog): unknown {
  const connector = connectors.get(facet.connector);
  if (connector === undefined) return error;
  const variable = systemUrlVariable(connector);
  const fields = { connector: connector.name, facet: facet.name, variable };
  if (error instanceof NoSystemCredentials) {
    log.error('a facet cannot be served: the variable with the system credentials is not set', fields);
    return queryError('storeClosed', { facet: facet.name, reason: 'has no credentials for its store' });
  }
  if (error instanceof UpstreamFailure) {
    const { message: cause, sqlstate } = error;
    log.error('a facet cannot be served: its store cannot be read', { ...fields, sqlstate, cause });
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
  const argumentsGiven = argumentValues(values);
  const checked = checkArguments(operator, argumentsGiven);
  const { texts, role } = encoderTexts(operator, checked, query);
  const { dimensions } = embedder.layout;
  const passages = read.kind === 'stored' ? read.passages.length : read.texts.length;
  const characters = read.kind === 'stored' ? 0 : read.texts.reduce((sum, text) => sum + text.length, 0);
  const size = { passages, texts: texts.length, dimensions, characters };
  if (workOf(operator, checked, size) > MOST_WORK) throw tooLarge(operator);
  const inThread = embedder === lexicalEmbedder || texts.length === 0;
  const embedded = inThread
    ? null
    : await unlessStopped(embedder.embed(texts, role, signal ?? undefined), signal);
  const job = { operator, values: argumentsGiven, query, read, embedded };
  const call = { caller: subject, deadlineMs: timeoutMs > 0 ? timeoutMs : DEFAULT_DEADLINE_MS, signal };
  const column = await unlessStopped(encoders.run(job, call), signal).catch((error: unknown) => {
    throw toEncoderError(operator, error, call.deadlineMs, signal);
  });
  return { values: column, errors: [] };
}

function tooLarge(operator: EncoderName): unknown {
  return queryError('tooLarge', {
    what: `the number of multiplications of ${operator} over so many texts`,
    limit: MOST_WORK,
  });
}

const DEFAULT_DEADLINE_MS = 60_000;

function toEncoderError(
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
      return tooLarge(operator);
    case 'failed':
      return new InternalError(error.message);
  }
}

interface DecoderModel {
  readonly check: typeof checkDecoder;
  readonly run: typeof runDecoder;
  readonly model: ChatModel;
}

async function openDecoder(
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
  const concurrency = modelSlots(endpoint.concurrency ?? DEFAULT_CHAT_CONCURRENCY, share);
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
  decoderModel: DecoderModel | null,
  { subject, until, timeoutMs, signal, onUsage }: OperatorCaller,
): Promise<OperatorResult> {
  if (decoderModel === null) throw queryError('noDecoder', { operator: use.operator });
  const operator = use.operator as DecoderName;
  const decoderPassages = passages.map(({ chunkId, text, start }) => ({ chunkId, text, start }));
  const caller = { subject, until: until - reservedMs(timeoutMs), signal, onUsage };
  const pendingResult = decoderModel.run(
    operator,
    decoderPassages,
    argumentValues(values),
    decoderModel.model,
    caller,
  );
  const { values: column, errors } = await pendingResult.catch((error: unknown) => {
    throw signal?.aborted === true ? stopError(signal) : error;
  });
  return {
    values: column,
    errors: errors.map((e) => ({ chunkId: e.chunkId, reason: `${e.operator}: ${e.message}` })),
  };
}

/** Part of a query's timeout, in ms, that is reserved for its statement. */
function reservedMs(timeoutMs: number): number {
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
    throw toQueryError(facet, error);
  }
}

function toQueryError(subject: string, error: unknown): unknown {
  if (error instanceof InvalidArgument)
    return queryError('typeMismatch', { detail: error.message, hint: null });
  if (error instanceof ContentError) {
    const entry = MODEL_FAULTS.has(error.code) ? 'modelUnavailable' : 'contentUnavailable';
    return queryError(entry, { facet: subject, reason: error.message });
  }
  return error;
}
