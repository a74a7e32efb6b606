import { setTimeout } from 'node:timers/promises';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';
import { listenOn, type NotificationSubscription } from '../../engine/index.js';
import { type Manifest, systemUrlVariable } from '../../model/manifest/index.js';
import { withoutPassword } from '../connect-fault.js';
import { connectorUrl } from '../connector-url.js';

/** Channel for text changes: `notify osl_index, 'readme'`, or without payload for all facets. */
const INDEX_CHANNEL = 'osl_index';

/** URLs of native databases with system credentials. */
export async function signallingUrls({ connectors }: Manifest): Promise<readonly string[]> {
  const native = [...connectors.values()].filter(({ kind }) => kind === 'postgres');
  const urls = await Promise.all(native.map((one) => connectorUrl(process.env, systemUrlVariable(one))));
  return urls.filter((url) => url !== null);
}

/** Notifications of several databases. A lost connection is reopened by the next `listen`. */
export class IndexSignals {
  readonly #urls: readonly string[];
  readonly #log: ServiceLog;
  readonly #open = new Map<string, NotificationSubscription>();
  readonly #heard = new Set<string>();
  #wake: () => void = () => undefined;

  constructor(urls: readonly string[], log: ServiceLog) {
    this.#urls = urls;
    this.#log = log;
  }

  async listen(): Promise<void> {
    for (const url of this.#urls) {
      if (this.#open.has(url)) continue;
      await this.#connect(url).catch((error: unknown) =>
        this.#log.warn('changes are not heard of: texts are read at the next interval', {
          database: withoutPassword(url),
          cause: messageOf(error),
        }),
      );
    }
  }

  /** Facets notified since the last call, waiting at most `ms`; `''` means all. */
  async next(ms: number, signal: AbortSignal): Promise<readonly string[]> {
    if (this.#heard.size === 0 && !signal.aborted) {
      const due = new AbortController();
      const end = (): void => due.abort();
      this.#wake = end;
      signal.addEventListener('abort', end);
      await setTimeout(ms, undefined, { signal: due.signal }).catch(() => undefined); // woken early
      signal.removeEventListener('abort', end);
    }
    const heard = [...this.#heard];
    this.#heard.clear();
    return heard;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((listening) => listening.close()));
  }

  async #connect(url: string): Promise<void> {
    const heard = (name: string): void => {
      this.#heard.add(name);
      this.#wake();
    };
    this.#open.set(url, await listenOn(url, INDEX_CHANNEL, heard, () => void this.#open.delete(url)));
  }
}
