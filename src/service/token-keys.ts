import { configuredKeys, type KeySource } from '../../policy/index.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';
import { issuerKeys } from './issuer-keys.js';
import type { Settings } from './settings.js';

/** The keys that the environment names. */
export interface KeysOfSettings {
  readonly source: KeySource;
  /** Whether tokens of the gateway's own key are good. */
  readonly own: boolean;
  readonly ofIssuers: number;
}

const NO_KEYS: KeySource = Object.freeze({ candidates: () => [] });

/** @throws StartProblem for a key that is unfit, and where there is none and no file of issuers either */
export function keysOfSettings(settings: Settings, signing: Uint8Array): KeysOfSettings {
  const secrets = settings.localTokens ? [{ secret: signing }] : [];
  const keys = settings.publicKeyFiles.flatMap(issuerKeys);
  const counts = { own: settings.localTokens, ofIssuers: keys.length };
  if (secrets.length + keys.length === 0 && settings.issuersFile !== null)
    return { source: NO_KEYS, ...counts };
  try {
    return { source: configuredKeys({ secrets, keys }), ...counts };
  } catch (error) {
    throw new StartProblem(`OSL_PUBLIC_KEYS: ${messageOf(error)}`);
  }
}

/** What the operator is told of them, and of so many issuers beside. */
export function keysText({ own, ofIssuers }: KeysOfSettings, issuers: number): string {
  const parts = [
    own ? "the gateway's own key" : null,
    ofIssuers > 0 ? `${ofIssuers} of issuers` : null,
    issuers > 0 ? `${issuers} ${issuers === 1 ? 'issuer' : 'issuers'} of OSL_ISSUERS` : null,
  ];
  const refused = own
    ? ''
    : "; those of the gateway's own key (HS256) are refused, unless OSL_LOCAL_TOKENS=on";
  return `tokens by ${parts.filter((text) => text !== null).join(' and ')}${refused}`;
}
