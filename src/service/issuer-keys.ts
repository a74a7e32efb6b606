import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { isKeyId, type KeyConfiguration } from '../../policy/index.js';
import { StartProblem } from '../base/start-problem.js';
import { readText } from './read-text.js';
import type { PublicKeyFile } from './settings.js';

type PublicKey = NonNullable<KeyConfiguration['publicKeys']>[number];

/** The keys of an issuer's file: one in PEM, or the RSA keys of a JSON Web Key Set. @throws StartProblem */
export function issuerKeys({ kid, file }: PublicKeyFile): readonly PublicKey[] {
  const text = readText(file, 'public key');
  if (!text.trimStart().startsWith('{')) {
    requirePem(text, file);
    return [{ pem: text, ...(kid !== null && { kid }) }];
  }
  const keys = keysOfSet(text, file).flatMap((jwk): readonly PublicKey[] => {
    if (jwk['kty'] !== 'RSA' || jwk['use'] === 'enc') return [];
    const pem = pemOf(jwk);
    if (pem === null) return [];
    return [{ pem, ...(isKeyId(jwk['kid']) && { kid: jwk['kid'] }) }];
  });
  if (keys.length === 0) throw new StartProblem(`the key set ${file} holds no RSA key that signs`);
  return keys;
}

function requirePem(text: string, file: string): void {
  try {
    createPublicKey(text);
  } catch {
    throw new StartProblem(`${file} holds no public key in PEM`);
  }
}

function keysOfSet(text: string, file: string): readonly JsonWebKey[] {
  try {
    const set: unknown = JSON.parse(text);
    if (typeof set === 'object' && set !== null && 'keys' in set && Array.isArray(set.keys))
      return set.keys.filter((key) => typeof key === 'object' && key !== null);
  } catch {
    // said below
  }
  throw new StartProblem(`${file} is neither a public key in PEM nor a JSON Web Key Set`);
}

function pemOf(jwk: JsonWebKey): string | null {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString();
  } catch {
    return null; // one that another reader of the set understands
  }
}
