import {
  configuredKeys,
  type IdentityIssuer,
  type KeySource,
  type TokenAlgorithm,
  type TrustedIssuer,
  type VerificationKey,
} from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import { type FetchDocument, fetchDocument } from './fetch-document.js';
import type { IssuerConfig, IssuerKeys } from './issuers-file.js';
import { RemoteKeys } from './remote-keys.js';

export interface Issuers {
  readonly configs: readonly IssuerConfig[];
  /** Issuer of actor tokens with this `iss`; null if there is none. */
  actor(issuer: unknown): TrustedIssuer | null;
  /** Issuer of identity tokens, likewise. */
  identity(issuer: unknown): IdentityIssuer | null;
  /** Stops fetching keys, except those that `next` uses too. */
  close(next: Issuers | null): void;
  /** Fetches all keys that are not loaded yet. */
  begin(): void;
  /** Keys in files count as loaded. */
  readonly reached: IssuersReached;
  /** Fetched key sets, by their configuration. */
  readonly remote: ReadonlyMap<string, RemoteKeys>;
}

/** Share of issuers whose keys are loaded. */
export type IssuersReached = 'all' | 'some' | 'none';

interface KnownIssuer {
  readonly config: IssuerConfig;
  readonly keys: KeySource;
}

export interface IssuersParts {
  /** Keys in a file of an issuer. @throws StartProblem */
  readonly keysIn: (file: string) => readonly VerificationKey[];
  readonly log: ServiceLog;
  /** Called when the keys of an issuer have changed. */
  readonly onChange: () => void;
  /** Default: over the network. */
  readonly fetch?: FetchDocument;
}

type RemoteConfig = Extract<IssuerKeys, { readonly kind: 'remote' }>;

export const NO_ISSUERS: Issuers = Object.freeze({
  configs: [],
  actor: () => null,
  identity: () => null,
  close: () => undefined,
  begin: () => undefined,
  reached: 'all',
  remote: new Map(),
});

/**
 * Reads keys from files at once, others when a token first needs them. Key sets that `before` fetches too are
 * reused, so that a reload while an issuer does not answer loses nothing.
 *
 * @throws StartProblem, RangeError
 */
export function openIssuers(
  configs: readonly IssuerConfig[],
  parts: IssuersParts,
  before: Issuers = NO_ISSUERS,
): Issuers {
  const remote = new Map<string, RemoteKeys>();
  const keysOf = (config: IssuerConfig): KeySource => {
    const { keys, algorithms } = config;
    if (keys.kind === 'files')
      return among(configuredKeys({ keys: keys.files.flatMap(parts.keysIn) }), algorithms);
    const name = JSON.stringify([config.names[0], keys, algorithms]);
    const known = remote.get(name) ?? before.remote.get(name) ?? fetched(config, keys, parts);
    remote.set(name, known);
    return known;
  };
  const known = configs.map((config) => Object.freeze({ config, keys: keysOf(config) }));
  const byName = (tokens: IssuerConfig['tokens']): ReadonlyMap<unknown, KnownIssuer> =>
    new Map(
      known.filter((i) => i.config.tokens === tokens).flatMap((i) => i.config.names.map((n) => [n, i])),
    );
  const identity = new Map([...byName('identity')].map(([name, issuer]) => [name, believed(issuer)]));
  const actor = new Map([...byName('actor')].map(([name, issuer]) => [name, trusted(issuer)]));
  return Object.freeze({
    configs,
    remote,
    actor: (issuer: unknown) => actor.get(issuer) ?? null,
    identity: (issuer: unknown) => identity.get(issuer) ?? null,
    begin: () => {
      for (const keys of remote.values()) if (!keys.reached) keys.begin();
    },
    get reached() {
      const missing = [...remote.values()].filter((keys) => !keys.reached).length;
      if (missing === 0) return 'all';
      return missing < remote.size || configs.some(({ keys }) => keys.kind === 'files') ? 'some' : 'none';
    },
    close: (next: Issuers | null) => {
      for (const [name, keys] of remote) if (next?.remote.get(name) !== keys) keys.close();
    },
  });
}

function believed({ config, keys }: KnownIssuer): IdentityIssuer {
  const { names, audiences, clients, skewSeconds, maxLifetimeSeconds } = config;
  return Object.freeze({ issuers: names, audiences, clients, skewSeconds, maxLifetimeSeconds, keys });
}

function trusted({ config, keys }: KnownIssuer): TrustedIssuer {
  const { names, audiences, skewSeconds } = config;
  return Object.freeze({ issuers: names, audiences, skewSeconds, keys });
}

function among(source: KeySource, algorithms: IssuerConfig['algorithms']): KeySource {
  const takes = (algorithm: TokenAlgorithm): boolean => algorithms.some((known) => known === algorithm);
  return Object.freeze({
    candidates: (algorithm: TokenAlgorithm, kid: string | null) =>
      takes(algorithm) ? source.candidates(algorithm, kid) : [],
  });
}

function fetched(config: IssuerConfig, keys: RemoteConfig, parts: IssuersParts): RemoteKeys {
  const { fetch = fetchDocument, log, onChange } = parts;
  return new RemoteKeys({
    issuer: config.names[0] ?? '',
    ...keys,
    url: keys.url === null ? null : new URL(keys.url),
    algorithms: config.algorithms,
    fetch,
    log,
    now: () => performance.now(),
    onChange,
  });
}
