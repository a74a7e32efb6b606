import {
  configuredKeys,
  createVerifier,
  EXCHANGE_ISSUER,
  type ExchangeParts,
  type ExchangeRequest,
  exchange,
  type KeySource,
  keyRing,
  type PolicySnapshot,
  type TokenVerifier,
  withDirectTokens,
} from '../../policy/index.js';
import { CLOCK_SKEW_SECONDS, MAX_LIFETIME_SECONDS } from '../../policy/tokens/token-fault.js';
import type { TokenExchange } from '../ask/request/token-exchange.js';
import type { ServiceLog } from '../base/log.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';
import {
  type IssuerAvailability,
  type IssuerConfig,
  type Issuers,
  type IssuersParts,
  type LoginConfig,
  loadIssuers,
  NO_ISSUERS,
  openIssuers,
} from '../model/identity/issuers.js';
import { exchangeIssuer, exchangeKey, issuerKeys } from './issuer-keys.js';
import { tenantKeys } from './keys.js';
import type { ReloadPart } from './reload/reload.js';
import type { Settings } from './settings.js';

export interface TokenTrust {
  readonly verifier: TokenVerifier;
  readonly exchange: TokenExchange;
  readonly issuers: () => Issuers;
  /** Availability of the issuers' keys. */
  readonly issuerAvailability: () => IssuerAvailability;
  /** The audiences by which issuers identify this service. */
  readonly resources: () => readonly string[];
  /** Longest lifetime in ms, including clock skew, that the current settings allow for a token. */
  readonly lifetimeMs: () => number;
  /** The issuers of identity tokens; `login` is the issuer's OAuth client for logging in, or null if it has none. */
  readonly logins: () => readonly { readonly issuer: string; readonly login: LoginConfig | null }[];
  /** Reloads keys and issuers. */
  readonly reload: ReloadPart;
  /** Stops fetching keys. */
  close(): void;
}

/** @param snapshot the policy whose rules accept identity tokens directly @throws StartProblem, ManifestProblems */
export async function startTrust(
  settings: Settings,
  tenant: string,
  { signing, exchangeKey: ownKey }: TrustKeys,
  snapshot: () => PolicySnapshot | null,
  log: ServiceLog,
): Promise<TokenTrust> {
  let forgetTokens: () => void = () => undefined;
  const parts: IssuersParts = {
    keysIn: (file) => issuerKeys({ kid: null, file }),
    log,
    onChange: () => forgetTokens(),
  };
  let issuers = await readIssuers(settings, parts, NO_ISSUERS);
  const initialKeys = readKeys(settings, signing);
  if (!initialKeys.acceptsOwn) log.info(keysText(initialKeys, issuers.configs.length));
  let hasKeys = initialKeys.acceptsOwn || initialKeys.issuerKeyCount > 0;
  const ring = keyRing(initialKeys.source);
  let currentExchangeKey = exchangeKey(settings, ownKey);
  let ownIssuer = exchangeIssuer(currentExchangeKey);
  const actors = createVerifier({
    tenant,
    keys: ring,
    trusted: (issuer) => (issuer === EXCHANGE_ISSUER ? ownIssuer : issuers.actor(issuer)),
    issuers: settings.issuers,
    ...(settings.audiences.length > 0 && { audiences: settings.audiences }),
    now: Date.now,
  });
  const reader = {
    tenant,
    now: Date.now,
    issuerOf: (issuer: unknown) => issuers.identity(issuer),
  };
  const hasIdentityIssuers = (): boolean => issuers.configs.some((config) => config.tokens === 'identity');
  const verifier = withDirectTokens(actors, {
    ...reader,
    verifyActor: actors.verify,
    snapshot,
    any: hasIdentityIssuers,
  });
  const exchangeParts: ExchangeParts = {
    ...reader,
    verifyActor: actors.verify,
    key: () => currentExchangeKey,
  };
  forgetTokens = verifier.forget;
  const reload: ReloadPart = {
    prepare: async () => {
      const next = await readIssuers(settings, parts, issuers);
      const key = exchangeKey(settings, ownKey);
      const keys: ConfiguredKeys = readKeys(settings, tenantKeys(settings.dataDir, settings.keysDir).signing);
      const applyChanges = (): void => {
        issuers.close(next);
        issuers = next;
        issuers.begin();
        currentExchangeKey = key;
        ownIssuer = exchangeIssuer(key);
        ring.replace(keys.source);
        hasKeys = keys.acceptsOwn || keys.issuerKeyCount > 0;
        verifier.forget();
      };
      return { now: keysText(keys, next.configs.length), kept: null, apply: applyChanges };
    },
  };
  issuers.begin();
  return Object.freeze({
    verifier,
    exchange: {
      exchange: (request: ExchangeRequest, rules: PolicySnapshot) => exchange(request, rules, exchangeParts),
    },
    issuers: () => issuers,
    issuerAvailability: () => (issuers.reached === 'none' && hasKeys ? 'some' : issuers.reached),
    resources: () => [...settings.audiences, ...issuers.configs.flatMap((config) => config.audiences)],
    lifetimeMs: () => Math.max(...[OWN_LIFETIME, ...issuers.configs.map(lifetimeOf)].map(maxLifetimeMs)),
    logins: () =>
      issuers.configs
        .filter((config) => config.tokens === 'identity')
        .map(({ names, login }) => ({ issuer: names[0] ?? '', login })),
    reload,
    close: () => issuers.close(null),
  });
}

type Lifetime = Pick<IssuerConfig, 'skewSeconds' | 'maxLifetimeSeconds'>;

const OWN_LIFETIME: Lifetime = { maxLifetimeSeconds: MAX_LIFETIME_SECONDS, skewSeconds: CLOCK_SKEW_SECONDS };

function lifetimeOf({ tokens, maxLifetimeSeconds, skewSeconds }: IssuerConfig): Lifetime {
  return {
    maxLifetimeSeconds: tokens === 'actor' ? MAX_LIFETIME_SECONDS : maxLifetimeSeconds,
    skewSeconds,
  };
}

/** Longest lifetime in ms, considering that the issuer's clock may be off in either direction. */
function maxLifetimeMs({ maxLifetimeSeconds, skewSeconds }: Lifetime): number {
  return 1_000 * (maxLifetimeSeconds + 2 * skewSeconds);
}

/** The gateway's own keys: one for `osl token` and one, in PEM, for the token exchange. */
interface TrustKeys {
  readonly signing: Uint8Array;
  readonly exchangeKey: string;
}

/** Reads the issuers from OSL_ISSUERS. @throws StartProblem, ManifestProblems */
async function readIssuers(settings: Settings, parts: IssuersParts, previous: Issuers): Promise<Issuers> {
  const { issuersFile } = settings;
  if (issuersFile === null) return NO_ISSUERS;
  const configs = await loadIssuers(issuersFile);
  const duplicate = configs.flatMap((c) => c.names).find((name) => settings.issuers.includes(name));
  if (configs.some((c) => c.names.includes(EXCHANGE_ISSUER)))
    throw new StartProblem(`${issuersFile}: \`${EXCHANGE_ISSUER}\` is the exchange of this gateway itself`);
  if (duplicate !== undefined)
    throw new StartProblem(
      `${issuersFile}: issuer \`${duplicate}\` is one of OSL_TOKEN_ISSUERS too: its keys would be in two places`,
    );
  try {
    return openIssuers(configs, parts, previous);
  } catch (error) {
    if (error instanceof RangeError) throw new StartProblem(`${issuersFile}: ${messageOf(error)}`);
    throw error;
  }
}

interface ConfiguredKeys {
  readonly source: KeySource;
  /** True if tokens signed with the gateway's own key are accepted. */
  readonly acceptsOwn: boolean;
  readonly issuerKeyCount: number;
}

const NO_KEYS: KeySource = Object.freeze({ candidates: () => [] });

/** @throws StartProblem for an unsuitable key, and if there is neither a key nor an issuers file */
function readKeys(settings: Settings, signing: Uint8Array): ConfiguredKeys {
  const secrets = settings.localTokens ? [{ secret: signing }] : [];
  const keys = settings.publicKeyFiles.flatMap(issuerKeys);
  const counts = { acceptsOwn: settings.localTokens, issuerKeyCount: keys.length };
  if (secrets.length + keys.length === 0 && settings.issuersFile !== null)
    return { source: NO_KEYS, ...counts };
  try {
    return { source: configuredKeys({ secrets, keys }), ...counts };
  } catch (error) {
    throw new StartProblem(`OSL_PUBLIC_KEYS: ${messageOf(error)}`);
  }
}

/** Returns a summary of the accepted tokens, for the log. */
function keysText({ acceptsOwn, issuerKeyCount }: ConfiguredKeys, issuers: number): string {
  const parts = [
    acceptsOwn ? "the gateway's own key" : null,
    issuerKeyCount > 0 ? `${issuerKeyCount} of issuers` : null,
    issuers > 0 ? `${issuers} ${issuers === 1 ? 'issuer' : 'issuers'} of OSL_ISSUERS` : null,
  ];
  const refusedText = acceptsOwn
    ? ''
    : "; those of the gateway's own key (HS256) are refused, unless OSL_LOCAL_TOKENS=on";
  return `tokens by ${parts.filter((text) => text !== null).join(' and ')}${refusedText}`;
}
