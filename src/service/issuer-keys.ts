import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  EXCHANGE_ISSUER,
  pemKey,
  readKeySet,
  type TrustedIssuer,
  type VerificationKey,
} from '../../policy/index.js';
import { readText, StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';
import type { PublicKeyFile, Settings } from './settings.js';

/** Reads the keys in an issuer's file: one PEM key or the signing keys of a JSON Web Key Set. @throws StartProblem */
export function issuerKeys({ kid, file }: PublicKeyFile): readonly VerificationKey[] {
  const text = readText(file, 'public key');
  if (!text.trimStart().startsWith('{')) return [parsePem(text, kid, file)];
  const keys = readKeySet(text);
  if (keys === null) throw new StartProblem(`${file} is neither a public key in PEM nor a JSON Web Key Set`);
  if (keys.length === 0)
    throw new StartProblem(`the key set ${file} holds no key that signs RS256, ES256 or EdDSA`);
  return keys;
}

function parsePem(text: string, kid: string | null, file: string): VerificationKey {
  try {
    return pemKey(text, kid);
  } catch (error) {
    if (error instanceof RangeError) throw new StartProblem(`${file}: ${messageOf(error)}`);
    throw new StartProblem(`${file} holds no public key in PEM`);
  }
}

/** Creates an exchange key in PEM, which is only kept in memory. */
export function newExchangeKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Returns the configured exchange key, shared by several gateways, or `generatedKey` if there is none. @throws StartProblem */
export function exchangeKey({ exchangeKeyFile }: Settings, generatedKey: string): KeyObject {
  if (exchangeKeyFile === null) return createPrivateKey(generatedKey);
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

/** Returns the token exchange as a trusted issuer, the only one that may sign exchanged tokens. */
export function exchangeIssuer(key: KeyObject): TrustedIssuer {
  const candidate = Object.freeze({ algorithm: 'EdDSA', kid: null, key: createPublicKey(key) } as const);
  return Object.freeze({
    issuers: [EXCHANGE_ISSUER],
    exchanged: true,
    keys: { candidates: (algorithm: string) => (algorithm === 'EdDSA' ? [candidate] : []) },
  });
}
