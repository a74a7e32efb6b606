/**
 * Checksums and their signature. Uses ECDSA over P-256, because every `openssl`, including LibreSSL, can verify it
 * without additional software: see docs/releasing.md for the two commands.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const SUMS = 'SHA256SUMS';
export const SIGNATURE = `${SUMS}.sig`;
export const PUBLIC_KEY = 'osl-release.pub';

/** Reads the release key from a PEM file. @throws Error if it is not a P-256 key */
export function releaseKey(file: string): KeyObject {
  const key = createPrivateKey(readFileSync(file));
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new Error(
      `${file} is not a key of P-256: openssl ecparam -name prime256v1 -genkey -noout -out FILE`,
    );
  return key;
}

/** Generates a temporary key for a dry run. */
export function passingKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey;
}

/** Writes the checksums of all files in `folder` in the format of `sha256sum`, their signature, and the public key. */
export function signFolder(folder: string, key: KeyObject): void {
  const own = new Set<string>([SUMS, SIGNATURE, PUBLIC_KEY]);
  const files = readdirSync(folder).filter((name) => !own.has(name));
  const sums = files.toSorted().map((name) => `${sha256(join(folder, name))}  ${name}\n`);
  const text = Buffer.from(sums.join(''));
  writeFileSync(join(folder, SUMS), text);
  writeFileSync(join(folder, SIGNATURE), sign('sha256', text, key));
  writeFileSync(join(folder, PUBLIC_KEY), createPublicKey(key).export({ type: 'spki', format: 'pem' }));
}

export function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
