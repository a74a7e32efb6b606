import { createVerifier, keyRing, type TokenVerifier } from '../../policy/index.js';
import type { ServiceLog } from '../base/log.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';
import { type Issuers, type IssuersParts, NO_ISSUERS, openIssuers } from '../identity/issuers.js';
import { loadIssuers } from '../identity/issuers-file.js';
import { issuerKeys } from './issuer-keys.js';
import { tenantKeys } from './keys.js';
import type { ReloadPart } from './reload.js';
import type { Settings } from './settings.js';
import { type KeysOfSettings, keysOfSettings, keysText } from './token-keys.js';

/** Whose tokens are believed. */
export interface TokenTrust {
  readonly verifier: TokenVerifier;
  readonly issuers: () => Issuers;
  /** Reads keys and issuers anew. */
  readonly reload: ReloadPart;
  /** Fetches no keys any more. */
  close(): void;
}

/** @throws StartProblem, ManifestProblems */
export async function openTrust(
  settings: Settings,
  tenant: string,
  signing: Uint8Array,
  log: ServiceLog,
): Promise<TokenTrust> {
  let forget: () => void = () => undefined;
  const parts: IssuersParts = {
    keysIn: (file) => issuerKeys({ kid: null, file }),
    log,
    onChange: () => forget(),
  };
  let issuers = await readIssuers(settings, parts, NO_ISSUERS);
  const ring = keyRing(keysOfSettings(settings, signing).source);
  const verifier = createVerifier({
    tenant,
    keys: ring,
    trusted: (issuer) => issuers.actor(issuer),
    issuers: settings.issuers,
    ...(settings.audiences.length > 0 && { audiences: settings.audiences }),
    now: Date.now,
  });
  forget = verifier.forget;
  const reload: ReloadPart = {
    prepare: async () => {
      const next = await readIssuers(settings, parts, issuers);
      const keys: KeysOfSettings = keysOfSettings(settings, tenantKeys(settings.dataDir).signing);
      const take = (): void => {
        issuers.close(next);
        issuers = next;
        ring.replace(keys.source);
        verifier.forget();
      };
      return { now: keysText(keys, next.configs.length), kept: null, take };
    },
  };
  return Object.freeze({ verifier, issuers: () => issuers, reload, close: () => issuers.close(null) });
}

/** The issuers of the operator's file, beside those that the environment names. @throws StartProblem, ManifestProblems */
async function readIssuers(settings: Settings, parts: IssuersParts, before: Issuers): Promise<Issuers> {
  const { issuersFile } = settings;
  if (issuersFile === null) return NO_ISSUERS;
  const configs = await loadIssuers(issuersFile);
  const both = configs.flatMap((c) => c.names).find((name) => settings.issuers.includes(name));
  if (both !== undefined)
    throw new StartProblem(
      `${issuersFile}: issuer \`${both}\` is one of OSL_TOKEN_ISSUERS too: its keys would be in two places`,
    );
  try {
    return openIssuers(configs, parts, before);
  } catch (error) {
    if (error instanceof RangeError) throw new StartProblem(`${issuersFile}: ${messageOf(error)}`);
    throw error;
  }
}
