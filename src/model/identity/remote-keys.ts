import { queryError } from 'osl-compiler';
import {
  type KeySource,
  keysFor,
  type PublicAlgorithm,
  readKeySet,
  type TokenAlgorithm,
  type VerificationKey,
} from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';

/** Times that govern the fetching of keys, in ms. */
export interface KeyTimes {
  /** Interval between fetches. */
  readonly refreshMs: number;
  /** Minimum time between two attempts, even for an unknown key id or after an issuer failed to answer. */
  readonly coolDownMs: number;
  /** Time for which the last keys stay valid while the issuer does not answer. */
  readonly staleMs: number;
}

interface RemoteKeysOptions extends KeyTimes {
  /** Issuer whose discovery document names the key set. */
  readonly issuer: string;
  /** URL of the key set; null if the discovery document states it. */
  readonly url: URL | null;
  readonly algorithms: readonly PublicAlgorithm[];
  readonly fetch: FetchDocument;
  readonly log: ServiceLog;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
  /** Called when the keys have changed: tokens verified with the old keys must be verified again. */
  readonly onChange: () => void;
}

interface CachedKeys {
  readonly keys: readonly VerificationKey[];
  readonly at: number;
}

/**
 * Keys of an issuer that publishes them. They are fetched at `begin` or when first needed, then periodically, and for
 * an unknown key id, so that a rotation is noticed with the first token that uses it. Attempts are separated by at
 * least a cool-down. While the issuer does not answer, the previous keys stay valid for `staleMs`.
 */
export class RemoteKeys implements KeySource {
  readonly #options: RemoteKeysOptions;
  #known: CachedKeys | null = null;
  #tried: number | null = null;
  #failing = false;
  #running: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
  }

  /** @throws QueryError E5033 if no keys can be fetched */
  async candidates(algorithm: TokenAlgorithm, kid: string | null): Promise<readonly VerificationKey[]> {
    if (algorithm === 'HS256' || !this.#options.algorithms.includes(algorithm)) return [];
    if (this.#current() === null) await this.#refresh();
    const known = this.#current();
    if (known === null) throw queryError('issuerUnavailable', { retryAfterSeconds: this.#wait() });
    const found = keysFor(known.keys, algorithm, kid);
    if (found.length > 0 || kid === null) return found;
    await this.#refresh();
    return keysFor(this.#current()?.keys ?? [], algorithm, kid);
  }

  begin(): void {
    void this.#refresh();
  }

  /** True once keys have been loaded. */
  get reached(): boolean {
    return this.#known !== null;
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #current(): CachedKeys | null {
    const known = this.#known;
    return known !== null && this.#options.now() - known.at <= this.#options.staleMs ? known : null;
  }

  #wait(): number {
    const since = this.#options.now() - (this.#tried ?? 0);
    return Math.max(1, Math.ceil((this.#options.coolDownMs - since) / 1_000));
  }

  /** Fetches the key set unless a cool-down is in progress; concurrent callers share one request. */
  #refresh(): Promise<void> {
    if (this.#running !== null) return this.#running;
    const { now, coolDownMs } = this.#options;
    if (this.#closed || (this.#tried !== null && now() - this.#tried < coolDownMs)) return Promise.resolve();
    this.#tried = now();
    this.#running = this.#read().finally(() => {
      this.#running = null;
      this.#schedule();
    });
    return this.#running;
  }

  async #read(): Promise<void> {
    const { issuer, url, fetch, log, now, onChange } = this.#options;
    try {
      const keys = await fetchKeySet(issuer, url, fetch);
      const changed = this.#known !== null && !isSame(this.#known.keys, keys);
      this.#known = Object.freeze({ keys, at: now() });
      if (this.#failing) log.warn('the keys of an issuer can be had again', { issuer });
      this.#failing = false;
      if (changed) onChange();
    } catch (error) {
      const kept = this.#current() !== null;
      if (!this.#failing)
        log.error('the keys of an issuer cannot be fetched', { issuer, cause: messageOf(error), kept });
      this.#failing = true;
    }
  }

  #schedule(): void {
    if (this.#closed) return;
    const { coolDownMs, refreshMs } = this.#options;
    // Scheduled slightly late, so that the cool-down is certainly over.
    const pause = Math.max(coolDownMs, this.#failing ? coolDownMs : refreshMs) + 1;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#refresh(), pause).unref();
  }
}

/** Fetches the current signing keys of an issuer. Rejects if the key set cannot be read or has none. */
export async function fetchKeySet(
  issuer: string,
  url: URL | null,
  fetch: FetchDocument,
): Promise<readonly VerificationKey[]> {
  const keys = readKeySet(await fetch(url ?? keySetUrl(await fetch(discoveryUrl(issuer)), issuer)));
  if (keys === null || keys.length === 0) throw new Error('its key set holds no key that signs');
  return keys;
}

function isSame(a: readonly VerificationKey[], b: readonly VerificationKey[]): boolean {
  return (
    a.length === b.length && a.every((key, i) => key.kid === b[i]?.kid && b[i]?.key.equals(key.key) === true)
  );
}

/** Returns the URL of the discovery document. Source: OpenID Connect Discovery 1.0, section 4. */
function discoveryUrl(issuer: string): URL {
  return new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
}

function keySetUrl(text: string, issuer: string): URL {
  const document: unknown = JSON.parse(text);
  const said = (name: string): unknown =>
    typeof document === 'object' && document !== null ? Reflect.get(document, name) : undefined;
  if (said('issuer') !== issuer) throw new Error('its discovery document names another issuer');
  const url = said('jwks_uri');
  if (typeof url !== 'string' || !URL.canParse(url) || !isFetchable(new URL(url)))
    throw new Error('its discovery document names no key set that may be fetched');
  return new URL(url);
}

/** Reads one of an issuer's documents: its key set or its metadata. Rejects on failure. */
export type FetchDocument = (url: URL) => Promise<string>;

const FETCH_MS = 5_000;
/** Maximum size of a document, in bytes. */
const MAX_DOCUMENT = 262_144;

/** Reads a document over HTTPS, or over HTTP from this machine. Does not follow redirects; limits: 5 s, 256 KiB. */
export async function fetchDocument(url: URL): Promise<string> {
  if (!isFetchable(url)) throw new Error('it is neither https nor on this machine');
  const headers = { accept: 'application/json, application/jwk-set+json' };
  const signal = AbortSignal.timeout(FETCH_MS);
  try {
    const response = await fetch(url, { headers, redirect: 'error', signal });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`it answered ${response.status}`);
    }
    return await bounded(response);
  } catch (error) {
    if (signal.aborted) throw new Error(`it did not answer within ${FETCH_MS / 1_000} s`);
    throw new Error(causeOf(error));
  }
}

/** True if an issuer's document may be fetched from `url`: its content decides which tokens are accepted. */
export function isFetchable(url: URL): boolean {
  if (url.username !== '' || url.password !== '') return false;
  const local = /^(127(\.\d+){3}|\[::1\]|localhost)$/.test(url.hostname);
  return url.protocol === 'https:' || (url.protocol === 'http:' && local);
}

async function bounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_DOCUMENT) throw new Error(`it sent more than ${MAX_DOCUMENT} bytes`);
    chunks.push(chunk);
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
}

function causeOf(error: unknown): string {
  return messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
}
