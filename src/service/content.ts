import { type DecoderName, type EncoderName, OPERATORS, queryError } from 'osl-compiler';
import type { ContentPlane, OperatorCall, OperatorResult, StoredPassage } from '../ask/data/content-plane.js';
import type { ServiceLog } from '../base/log.js';
import {
  type ChatEndpoint,
  ContentError,
  checkDecoder,
  DEFAULT_MIN_LENGTH,
  type Embedder,
  type EmbedderSettings,
  lexicalQuery,
  openEmbedder,
  openStore,
  runDecoder,
  runEncoder,
  termsOf,
  vectorText,
} from '../content/index.js';
import { type Engine, NoSystemCredentials, UpstreamFailure } from '../engine/index.js';
import { type ArgumentValues, checkArguments, InvalidArgument } from '../model/facets/arguments.js';
import { type Facet, type Manifest, systemUrlVariable } from '../model/manifest/index.js';

/** What content rests on: which model embeds, and which one answers. */
export interface ContentSettings {
  readonly embeddings: EmbedderSettings['endpoint'];
  /** Null: decoder operators are refused. */
  readonly chat: ChatEndpoint | null;
}

/** How long it is believed that a store is still the one that was checked. */
const TRUST_MS = 5_000;

/** The content plane over the stores beside each facet's source. */
export function contentPlane(
  manifest: () => Manifest,
  engines: ReadonlyMap<string, Engine>,
  settings: ContentSettings,
  log: ServiceLog,
): ContentPlane {
  const embedders = new Map<string, Promise<Embedder>>();
  // By the facet as one manifest declares it: under another declaration a store is checked anew.
  const checked = new WeakMap<Facet, Map<string, { readonly at: number; readonly epoch: string }>>();
  const embedderOf = (facet: Facet): Promise<Embedder> => {
    const known =
      embedders.get(facet.embeddingModel) ??
      openEmbedder(facet.embeddingModel, { endpoint: settings.embeddings });
    embedders.set(facet.embeddingModel, known);
    // A failed opening is tried again by the next question.
    known.catch(() => embedders.delete(facet.embeddingModel));
    return known;
  };
  const facetNamed = (name: string): Facet => {
    const facet = manifest().facets.get(name);
    if (facet === undefined) throw queryError('unknownFacet', { facet: name });
    return facet;
  };
  return Object.freeze({
    async ready(name: string, version: string) {
      const facet = facetNamed(name);
      const stores = checked.get(facet) ?? new Map();
      checked.set(facet, stores);
      const known = stores.get(version);
      if (known !== undefined && known.at > Date.now() - TRUST_MS) return known.epoch;
      const engine = engines.get(facet.connector);
      if (engine === undefined)
        throw queryError('contentUnavailable', { facet: name, reason: 'its connector is not open' });
      const { epoch } = await told(name, async () =>
        openStore(engine.system, facet, version, await embedderOf(facet), DEFAULT_MIN_LENGTH),
      ).catch((error: unknown) => {
        throw storeFault(error, facet, manifest(), log);
      });
      stores.set(version, { at: Date.now(), epoch });
      return epoch;
    },
    lexicalQuery: (text: string) => {
      const { ids } = termsOf(text);
      return {
        terms: ids,
        weighted: (documents: number, frequencies: readonly number[]) => {
          const byTerm = new Map(ids.map((id, i) => [id, frequencies[i] ?? 0]));
          const found = lexicalQuery(text, { documents, documentFrequency: (id) => byTerm.get(id) ?? 0 });
          return found === null ? null : { vector: found.vector, terms: found.termIds };
        },
      };
    },
    async embedQuery(name: string, text: string) {
      return told(name, async () => {
        const embedder = await embedderOf(facetNamed(name));
        const [vector] = await embedder.embed([text], 'query');
        return vectorText(vector ?? new Float32Array());
      });
    },
    hasDecoder: settings.chat !== null,
    check: ({ use, values }: OperatorCall) => {
      try {
        if (OPERATORS[use.operator].class === 'decoder')
          checkDecoder(use.operator as DecoderName, argumentValues(values)); // its class says so
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
      signal: AbortSignal | null,
    ) =>
      told(name, async () =>
        runOperator(call, query, passages, await embedderOf(facetNamed(name)), settings.chat, signal),
      ),
  });
}

/** Why a store cannot be looked at, in the caller's words; the operator's log has the variable that is to be mended. */
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

async function runOperator(
  { use, values }: OperatorCall,
  query: string,
  passages: readonly StoredPassage[],
  embedder: Embedder,
  chat: ChatEndpoint | null,
  signal: AbortSignal | null,
): Promise<OperatorResult> {
  const given = argumentValues(values);
  const stop = signal === null ? {} : { signal };
  if (OPERATORS[use.operator].class === 'encoder') {
    const seen = passages.map(({ chunkId, text, vector }) => ({
      chunkId,
      text,
      vector: vector ?? new Float32Array(),
    }));
    return {
      values: await runEncoder(use.operator as EncoderName, seen, given, { embedder, query, ...stop }),
      errors: [],
    }; // its class says so
  }
  if (chat === null) throw queryError('noDecoder', { operator: use.operator });
  const seen = passages.map(({ chunkId, text, start }) => ({ chunkId, text, start }));
  const column = await runDecoder(use.operator as DecoderName, seen, given, chat, signal ?? undefined); // its class says so
  return {
    values: column.values,
    errors: column.errors.map((e) => ({ chunkId: e.chunkId, reason: `${e.operator}: ${e.message}` })),
  };
}

/** `run`, with what is wrong with content said as the catalogue does. */
async function told<T>(facet: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw asQueryError(facet, error);
  }
}

function asQueryError(about: string, error: unknown): unknown {
  if (error instanceof InvalidArgument)
    return queryError('typeMismatch', { detail: error.message, hint: null });
  if (error instanceof ContentError)
    return queryError('contentUnavailable', { facet: about, reason: error.message });
  return error;
}
