import { dirname, resolve } from 'node:path';
import {
  configuredKeys,
  type IdentityIssuer,
  type KeySource,
  PUBLIC_ALGORITHMS,
  type PublicAlgorithm,
  type TokenAlgorithm,
  type TrustedIssuer,
  type VerificationKey,
} from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import { StartProblem } from '../../base/start-problem.js';
import { readText } from '../manifest/files.js';
import { shapeCheck } from '../manifest/schema/check.js';
import { choice, closed, DRAFT, integer, some } from '../manifest/schema/json-schema.js';
import { parseSource, throwProblems } from '../manifest/source.js';
import { type FetchDocument, fetchDocument, isFetchable, type KeyTimes, RemoteKeys } from './remote-keys.js';

export interface Issuers {
  readonly configs: readonly IssuerConfig[];
  /** Returns the trusted issuer of actor tokens with this `iss`; null if none is configured. */
  actor(issuer: unknown): TrustedIssuer | null;
  /** Returns the trusted issuer of identity tokens with this `iss`; null if none is configured. */
  identity(issuer: unknown): IdentityIssuer | null;
  /** Stops fetching keys, except those that `next` also uses. */
  close(next: Issuers | null): void;
  /** Starts fetching all keys that are not loaded yet. */
  begin(): void;
  /** Availability of the issuers' keys; keys read from files count as loaded. */
  readonly reached: IssuerAvailability;
  /** Remote key sets, by their configuration as JSON, so that a reload can reuse those that did not change. */
  readonly remote: ReadonlyMap<string, RemoteKeys>;
}

/** The issuers whose keys are loaded: all, some or none. */
export type IssuerAvailability = 'all' | 'some' | 'none';

interface ConfiguredIssuer {
  readonly config: IssuerConfig;
  readonly keys: KeySource;
}

export interface IssuersParts {
  /** Reads the keys in an issuer's file. @throws StartProblem */
  readonly keysIn: (file: string) => readonly VerificationKey[];
  readonly log: ServiceLog;
  readonly onChange: () => void;
  /** Fetches documents; by default over the network. */
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
 * Opens the configured issuers. Keys in files are read immediately, others at `begin` or when a token first needs them.
 * Key sets that `before` also fetches are reused, so that a reload does not lose them while an issuer is down.
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
      return withAlgorithms(configuredKeys({ keys: keys.files.flatMap(parts.keysIn) }), algorithms);
    const name = JSON.stringify([config.names[0], keys, algorithms]);
    const known = remote.get(name) ?? before.remote.get(name) ?? remoteKeysOf(config, keys, parts);
    remote.set(name, known);
    return known;
  };
  const known = configs.map((config) => Object.freeze({ config, keys: keysOf(config) }));
  const byName = (tokens: IssuerConfig['tokens']): ReadonlyMap<unknown, ConfiguredIssuer> =>
    new Map(
      known.filter((i) => i.config.tokens === tokens).flatMap((i) => i.config.names.map((n) => [n, i])),
    );
  const identity = new Map([...byName('identity')].map(([name, issuer]) => [name, identityIssuer(issuer)]));
  const actor = new Map([...byName('actor')].map(([name, issuer]) => [name, actorIssuer(issuer)]));
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

function identityIssuer({ config, keys }: ConfiguredIssuer): IdentityIssuer {
  const { names, audiences, clients, skewSeconds, maxLifetimeSeconds } = config;
  return Object.freeze({ issuers: names, audiences, clients, skewSeconds, maxLifetimeSeconds, keys });
}

function actorIssuer({ config, keys }: ConfiguredIssuer): TrustedIssuer {
  const { names, audiences, skewSeconds } = config;
  return Object.freeze({ issuers: names, audiences, skewSeconds, keys });
}

function withAlgorithms(source: KeySource, algorithms: IssuerConfig['algorithms']): KeySource {
  const takes = (algorithm: TokenAlgorithm): boolean => algorithms.some((known) => known === algorithm);
  return Object.freeze({
    candidates: (algorithm: TokenAlgorithm, kid: string | null) =>
      takes(algorithm) ? source.candidates(algorithm, kid) : [],
  });
}

function remoteKeysOf(config: IssuerConfig, keys: RemoteConfig, parts: IssuersParts): RemoteKeys {
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

const NAME = { type: 'string', minLength: 1, maxLength: 256, pattern: '^[^\\s\\u0000-\\u001f]+$' } as const;

const login = closed(
  {
    client_id: { ...NAME, description: 'ID of the public client with which people log in.' },
    scopes: some(NAME, 'Scopes that `osl login` requests. Default: openid, offline_access.'),
  },
  ['client_id'],
  'Settings for `osl login`.',
);

const issuer = closed(
  {
    issuer: {
      ...NAME,
      description:
        'Value of `iss` in its tokens. Without `keys` and `jwks_url`, it is also the URL of an OpenID Connect provider whose discovery document names the key set.',
    },
    aliases: some(NAME, 'Other accepted values of `iss`.'),
    tokens: choice(
      ['actor', 'identity'],
      'actor: the issuer signs actor tokens. identity: it signs identity tokens, which are exchanged by the rules of the policy.',
    ),
    keys: some(
      { type: 'string', minLength: 1 },
      'Files with its public keys (PEM or JWKS); paths are relative to this file.',
    ),
    jwks_url: {
      type: 'string',
      minLength: 1,
      description: 'URL of its key set. Default: the one in its discovery document.',
    },
    refresh_seconds: integer(
      1,
      86_400,
      'Interval at which the key set is fetched again, in seconds. Default: 300.',
    ),
    cool_down_seconds: integer(
      1,
      3_600,
      'Minimum time between two fetches of the key set, in seconds, even for an unknown key ID. Default: 30.',
    ),
    stale_seconds: integer(
      0,
      2_592_000,
      'Time for which the last keys stay valid while the issuer does not answer, in seconds. Default: 86400.',
    ),
    audiences: some(
      NAME,
      'Accepted values of `aud`, which identify this gateway at the issuer; each token except ID tokens must have one of them.',
    ),
    clients: some(NAME, 'IDs of clients whose ID tokens are accepted; their `aud` must have one of them.'),
    algorithms: {
      type: 'array',
      items: { enum: ['RS256', 'ES256', 'EdDSA'] },
      minItems: 1,
      uniqueItems: true,
      description: 'Accepted signature algorithms. Default: all three.',
    },
    clock_skew_seconds: integer(0, 300, 'Tolerated difference of its clock, in seconds. Default: 30.'),
    max_lifetime_seconds: integer(
      1,
      2_592_000,
      'Maximum lifetime of an identity token, in seconds. Default: 86400. Actor tokens may live 300 seconds at most.',
    ),
    login,
  },
  ['issuer', 'tokens', 'audiences'],
  'An issuer of tokens.',
);

const ISSUERS_SCHEMA = {
  $schema: DRAFT,
  title: 'OSL issuers',
  ...closed(
    {
      issuers: {
        type: 'array',
        items: issuer,
        minItems: 1,
        description: 'Trusted issuers.',
      },
    },
    ['issuers'],
    'Issuers whose tokens are accepted.',
  ),
} as const;

/** An issuer as configured in the issuers file. Plain data. */
export interface IssuerConfig {
  /** Accepted values of `iss`; the first is also the base URL of the discovery document, if one is used. */
  readonly names: readonly string[];
  /** `actor`: signs actor tokens. `identity`: signs identity tokens, exchanged under the policy's rules. */
  readonly tokens: 'actor' | 'identity';
  readonly keys: IssuerKeys;
  /** Accepted values of `aud`; each token except an ID token must contain one of them. */
  readonly audiences: readonly string[];
  /** Ids of clients whose ID tokens are accepted; the `aud` of an ID token must contain one of them. */
  readonly clients: readonly string[];
  readonly algorithms: readonly PublicAlgorithm[];
  readonly skewSeconds: number;
  readonly maxLifetimeSeconds: number;
  /** Settings for `osl login`; null if the issuer is not used for logins. */
  readonly login: LoginConfig | null;
}

type IssuerKeys =
  | { readonly kind: 'files'; readonly files: readonly string[] }
  /** Key set fetched from `url`, or from the URL in the discovery document if `url` is null. */
  | ({ readonly kind: 'remote'; readonly url: string | null } & KeyTimes);

export interface LoginConfig {
  readonly clientId: string;
  readonly scopes: readonly string[];
}

interface IssuerDocument {
  readonly issuer: string;
  readonly aliases?: readonly string[];
  readonly tokens: 'actor' | 'identity';
  readonly keys?: readonly string[];
  readonly jwks_url?: string;
  readonly refresh_seconds?: number;
  readonly cool_down_seconds?: number;
  readonly stale_seconds?: number;
  readonly audiences: readonly string[];
  readonly clients?: readonly string[];
  readonly algorithms?: readonly PublicAlgorithm[];
  readonly clock_skew_seconds?: number;
  readonly max_lifetime_seconds?: number;
  readonly login?: { readonly client_id: string; readonly scopes?: readonly string[] };
}

const shape = shapeCheck(ISSUERS_SCHEMA);
const DAY_SECONDS = 86_400;

/** Reads the issuers file. @throws ManifestProblems if its shape is invalid, StartProblem if its content is invalid */
export async function loadIssuers(file: string): Promise<readonly IssuerConfig[]> {
  const source = parseSource(await readText(file), file);
  throwProblems(source, shape(source.value));
  const { issuers } = source.value as { readonly issuers: readonly IssuerDocument[] }; // cast: checked by the schema
  const configs = issuers.map((document) => configOf(document, dirname(file)));
  const names = configs.flatMap((config) => config.names);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new StartProblem(`${file}: issuer \`${twice}\` is named twice`);
  return Object.freeze(configs);
}

function configOf(document: IssuerDocument, dir: string): IssuerConfig {
  const fault = (message: string): StartProblem =>
    new StartProblem(`issuer \`${document.issuer}\`: ${message}`);
  const { login, clients = [] } = document;
  if (document.tokens === 'actor' && (clients.length > 0 || login !== undefined))
    throw fault('`clients` and `login` are of issuers of identity tokens');
  return Object.freeze({
    names: [document.issuer, ...(document.aliases ?? [])],
    tokens: document.tokens,
    keys: keysOf(document, dir, fault),
    audiences: document.audiences,
    clients,
    algorithms: document.algorithms ?? PUBLIC_ALGORITHMS,
    skewSeconds: document.clock_skew_seconds ?? 30,
    maxLifetimeSeconds: document.max_lifetime_seconds ?? DAY_SECONDS,
    login:
      login === undefined
        ? null
        : { clientId: login.client_id, scopes: login.scopes ?? ['openid', 'offline_access'] },
  });
}

function keysOf(document: IssuerDocument, dir: string, fault: (message: string) => StartProblem): IssuerKeys {
  const { issuer, keys, jwks_url } = document;
  if (keys !== undefined && jwks_url !== undefined) throw fault('`keys` and `jwks_url` exclude each other');
  if (keys !== undefined) return { kind: 'files', files: keys.map((file) => resolve(dir, file)) };
  const url = jwks_url ?? issuer;
  if (!URL.canParse(url) || !isFetchable(new URL(url)))
    throw fault(
      jwks_url === undefined
        ? 'it is not an https URL from which keys can be fetched: name `keys` or `jwks_url`'
        : '`jwks_url` must be an https URL (http on this machine)',
    );
  return {
    kind: 'remote',
    url: jwks_url ?? null,
    refreshMs: 1_000 * (document.refresh_seconds ?? 300),
    coolDownMs: 1_000 * (document.cool_down_seconds ?? 30),
    staleMs: 1_000 * (document.stale_seconds ?? DAY_SECONDS),
  };
}
