import { pemKey, readKeySet, type VerificationKey } from '../../policy/index.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';
import { readText } from './read-text.js';
import type { PublicKeyFile } from './settings.js';

/** Keys in an issuer's file: one PEM key, or the signing keys of a JSON Web Key Set. @throws StartProblem */
export function issuerKeys({ kid, file }: PublicKeyFile): readonly VerificationKey[] {
  const text = readText(file, 'public key');
  if (!text.trimStart().startsWith('{')) return [pemIn(text, kid, file)];
  const keys = readKeySet(text);
  if (keys === null) throw new StartProblem(`${file} is neither a public key in PEM nor a JSON Web Key Set`);
  if (keys.length === 0)
    throw new StartProblem(`the key set ${file} holds no key that signs RS256, ES256 or EdDSA`);
  return keys;
}

function pemIn(text: string, kid: string | null, file: string): VerificationKey {
  try {
    return pemKey(text, kid);
  } catch (error) {
    if (error instanceof RangeError) throw new StartProblem(`${file}: ${messageOf(error)}`);
    throw new StartProblem(`${file} holds no public key in PEM`);
  }
}
