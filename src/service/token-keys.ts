import { configuredKeys, type KeyConfiguration, type KeySource } from '../../policy/index.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';
import { issuerKeys } from './issuer-keys.js';
import type { Settings } from './settings.js';

/** By which keys tokens are verified. */
export function keyConfiguration(settings: Settings, signing: Uint8Array): KeyConfiguration {
  const secrets = settings.localTokens ? [{ secret: signing }] : [];
  return { secrets, publicKeys: settings.publicKeyFiles.flatMap(issuerKeys) };
}

/** @throws StartProblem for a key that is unfit */
export function readKeys(configuration: KeyConfiguration): KeySource {
  try {
    return configuredKeys(configuration);
  } catch (error) {
    throw new StartProblem(`OSL_PUBLIC_KEYS: ${messageOf(error)}`);
  }
}

/** What the operator is told of them. */
export function keysText({ secrets = [], publicKeys = [] }: KeyConfiguration): string {
  const local = secrets.length > 0 ? "the gateway's own key" : null;
  const issuers = publicKeys.length > 0 ? `${publicKeys.length} of issuers` : null;
  return `tokens by ${[local, issuers].filter((text) => text !== null).join(' and ')}`;
}
