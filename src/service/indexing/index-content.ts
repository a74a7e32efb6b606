import { setTimeout } from 'node:timers/promises';
import type { ServiceLog } from '../../base/log.js';
import { StartProblem } from '../../base/start-problem.js';
import { messageOf } from '../../base/thrown.js';
import {
  type IndexProgress,
  type IndexStatus,
  type IndexSummary,
  indexFacet,
  indexStatus,
  type OnIndexProgress,
  openEmbedder,
  type ProbableWord,
} from '../../content/index.js';
import {
  listenOn,
  NoSystemCredentials,
  type NotificationSubscription,
  type OpenedEngine,
  type SystemEngine,
} from '../../engine/index.js';
import { STORE_SCHEMA } from '../../model/facets/store-names.js';
import {
  type Connector,
  type Facet,
  indexedFacets,
  type Manifest,
  systemUrlVariable,
} from '../../model/manifest/index.js';
import { connectorUrl, withoutPassword } from '../connector-url.js';
import type { ContentSettings } from './content.js';

/** Options for an indexing run. */
interface IndexRunOptions {
  readonly signal?: AbortSignal;
  /** See `IndexOptions.readAt`; defaults to the start of the run. */
  readonly readAt?: Date | null;
}

/**
 * Incrementally indexes all versions of the named facets, or of all facets.
 *
 * @throws StartProblem for an unknown facet; ContentError, UpstreamFailure
 */
export async function indexContent(
  manifest: Manifest,
  engines: ReadonlyMap<string, OpenedEngine>,
  settings: ContentSettings,
  names: readonly string[],
  onProgress: OnIndexProgress,
  { signal, readAt = new Date() }: IndexRunOptions = {},
): Promise<readonly IndexSummary[]> {
  const summaries: IndexSummary[] = [];
  for (const facet of facetsNamed(manifest, names)) {
    const system = systemOf(engines, facet);
    const embedder = await openEmbedder(
      facet.embeddingModel,
      { endpoint: settings.embeddings },
      facet.embedding,
    );
    try {
      summaries.push(
        ...(await indexFacet(
          system,
          manifest,
          facet,
          { embedder, readAt, ...(signal && { signal }) },
          onProgress,
        )),
      );
      await system.grantRead(STORE_SCHEMA);
    } catch (error) {
      throw toIndexError(error, manifest, facet);
    } finally {
      await embedder.close();
    }
  }
  return summaries;
}

/**
 * Returns the index status of all versions of the named facets, or of all facets.
 *
 * @throws StartProblem for an unknown facet; the errors of `indexStatus`
 */
export async function contentStatus(
  manifest: Manifest,
  engines: ReadonlyMap<string, OpenedEngine>,
  names: readonly string[],
): Promise<readonly IndexStatus[]> {
  const statuses: IndexStatus[] = [];
  for (const facet of facetsNamed(manifest, names)) {
    const system = systemOf(engines, facet);
    for (const version of facet.versions.values()) {
      const status = indexStatus(system, manifest, facet, version);
      statuses.push(
        await status.catch((error: unknown) => {
          throw toIndexError(error, manifest, facet);
        }),
      );
    }
  }
  return statuses;
}

/** Returns the named facets, or all if `names` is empty, and the lexical legs of hybrid ones. @throws StartProblem */
function facetsNamed(manifest: Manifest, names: readonly string[]): readonly Facet[] {
  const unknown = names.find((n) => !manifest.facets.has(n));
  if (unknown !== undefined) {
    throw new StartProblem(
      `there is no facet \`${unknown}\`; the manifest declares ${[...manifest.facets.keys()].join(', ') || 'none'}`,
    );
  }
  return indexedFacets(manifest).filter((f) => names.length === 0 || names.includes(f.legOf ?? f.name));
}

/** @throws StartProblem */
function systemOf(engines: ReadonlyMap<string, OpenedEngine>, { connector }: Facet): SystemEngine {
  const engine = engines.get(connector);
  if (engine === undefined) throw new StartProblem(`connector \`${connector}\` is not open`);
  return engine.system;
}

function toIndexError(error: unknown, { connectors }: Manifest, { connector }: Facet): unknown {
  return error instanceof NoSystemCredentials ? missingCredentials(connectors.get(connector)) : error;
}

function missingCredentials(connector: Connector | undefined): Error {
  if (connector === undefined) return new NoSystemCredentials();
  return new StartProblem(
    `connector \`${connector.name}\` has no system credentials: set ${systemUrlVariable(connector)} to the URL of a role ` +
      `that owns the schema ${STORE_SCHEMA} and may read the facets' tables (docs/operations.md has its SQL)`,
  );
}

/** Formats the rate and the remaining time for a progress line. */
export function paceText({ documentsPerSecond, secondsLeft }: IndexProgress): string {
  const leftText = secondsLeft === null ? '' : `, ${Math.ceil(secondsLeft)} s left`;
  return ` (${Math.round(documentsPerSecond)}/s${leftText})`;
}

/** Channel for text changes: `notify osl_index, 'readme'`, or without payload for all facets. */
const INDEX_CHANNEL = 'osl_index';

/** Returns the system URLs of the `postgres` connectors that have one. */
export async function notificationUrls({ connectors }: Manifest): Promise<readonly string[]> {
  const native = [...connectors.values()].filter(({ kind }) => kind === 'postgres');
  const urls = await Promise.all(
    native.map((connector) => connectorUrl(process.env, systemUrlVariable(connector))),
  );
  return urls.filter((url) => url !== null);
}

/** Notifications of changed texts in several databases. The next `listen` reopens a lost connection. */
export class IndexSignals {
  readonly #urls: readonly string[];
  readonly #log: ServiceLog;
  readonly #subscriptions = new Map<string, NotificationSubscription>();
  readonly #notified = new Set<string>();
  #wake: () => void = () => undefined;

  constructor(urls: readonly string[], log: ServiceLog) {
    this.#urls = urls;
    this.#log = log;
  }

  async listen(): Promise<void> {
    for (const url of this.#urls) {
      if (this.#subscriptions.has(url)) continue;
      await this.#connect(url).catch((error: unknown) =>
        this.#log.warn('changes are not heard of: texts are read at the next interval', {
          database: withoutPassword(url),
          cause: messageOf(error),
        }),
      );
    }
  }

  /** Returns the facets notified since the last call; waits up to `ms` for the first one. `''` means all facets. */
  async next(ms: number, signal: AbortSignal): Promise<readonly string[]> {
    if (this.#notified.size === 0 && !signal.aborted) {
      const sleepAbort = new AbortController();
      const wake = (): void => sleepAbort.abort();
      this.#wake = wake;
      signal.addEventListener('abort', wake);
      await setTimeout(ms, undefined, { signal: sleepAbort.signal }).catch(() => undefined); // woken early
      signal.removeEventListener('abort', wake);
    }
    const notified = [...this.#notified];
    this.#notified.clear();
    return notified;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#subscriptions.values()].map((subscription) => subscription.close()));
  }

  async #connect(url: string): Promise<void> {
    const onNotification = (name: string): void => {
      this.#notified.add(name);
      this.#wake();
    };
    this.#subscriptions.set(
      url,
      await listenOn(url, INDEX_CHANNEL, onNotification, () => void this.#subscriptions.delete(url)),
    );
  }
}

/** Formats a warning about a redacted value that is probably an ordinary word. */
export function wordText(facet: string, { value, label, documents, of: total }: ProbableWord): string {
  const share = Math.round((100 * documents) / total);
  return (
    `\`${value}\` (${label}) stands in ${share} % of ${total} documents and is replaced there: ` +
    `probably a word; if so, \`exceptions: [${JSON.stringify(value)}]\` of facet \`${facet}\` leaves it`
  );
}
