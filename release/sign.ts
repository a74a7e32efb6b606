/**
 * Checksums and their signature. ECDSA over P-256, since every `openssl` verifies it, LibreSSL's too, and nothing else is
 * to be installed: docs/releasing.md has the two commands.
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

/** The key of releases in PEM. @throws Error where it is none of P-256 */
export function releaseKey(file: string): KeyObject {
  const key = createPrivateKey(readFileSync(file));
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new Error(`${file} is no key of P-256: openssl ecparam -name prime256v1 -genkey -noout -out FILE`);
  return key;
}

/** For a dry run: nobody believes it. */
export function passingKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey;
}

/** Writes the sums of all files in `folder`, as `sha256sum` does, their signature, and the key that verifies it. */
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
