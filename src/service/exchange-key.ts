import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { EXCHANGE_ISSUER, type TrustedIssuer } from '../../policy/index.js';
import { StartProblem } from '../base/start-problem.js';
import { readText } from './read-text.js';
import type { Settings } from './settings.js';

/** New exchange key, PEM. Kept in memory only. */
export function newExchangeKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** The configured exchange key, shared by several gateways, else `own`. @throws StartProblem */
export function exchangeKey({ exchangeKeyFile }: Settings, own: string): KeyObject {
  if (exchangeKeyFile === null) return createPrivateKey(own);
  const text = readText(exchangeKeyFile, 'key of the exchange');
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch {
    throw new StartProblem(`${exchangeKeyFile} holds no private key in PEM`);
  }
  if (key.asymmetricKeyType !== 'ed25519')
    throw new StartProblem(`${exchangeKeyFile}: the exchange signs with a key on Ed25519`);
  return key;
}

/** The exchange as a trusted issuer, the only one that may sign exchanged tokens. */
export function exchangeIssuer(key: KeyObject): TrustedIssuer {
  const candidate = Object.freeze({ algorithm: 'EdDSA', kid: null, key: createPublicKey(key) } as const);
  return Object.freeze({
    issuers: [EXCHANGE_ISSUER],
    exchanged: true,
    keys: { candidates: (algorithm: string) => (algorithm === 'EdDSA' ? [candidate] : []) },
  });
}
