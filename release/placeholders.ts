/**
 * Values that must be replaced before anything is released: the address of the repository, which npm binds a package's
 * provenance to, and the public key in SECURITY.md, by which users verify a release.
 */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files of published packages. */
const MANIFESTS = ['package.json', 'compiler/package.json'] as const;
const SECURITY = 'SECURITY.md';

/** Names that no one can own (RFC 2606), alone or as the end of a host name. */
const RESERVED = /(^|\.)(example|example\.(com|net|org)|invalid|localhost|test)$/;

/** Reads a text of the checkout, by its path from the root. */
export type ReadText = (file: string) => string;

/** Reads the texts of a folder. */
export function textsOf(root: string): ReadText {
  return (file) => readFileSync(join(root, file), 'utf8');
}

/** The values that are still placeholders, one line each; empty if a release may be signed with a permanent key. */
export function placeholdersIn(read: ReadText): readonly string[] {
  const repositories = MANIFESTS.filter((file) => !isPublic(repositoryOf(read(file)))).map(
    (file) => `repository in ${file} is a placeholder`,
  );
  const key = publishedKey(read) === null ? [`the public key in ${SECURITY} is a placeholder`] : [];
  return [...repositories, ...key];
}

/** The key that SECURITY.md tells users to verify with; null if there is none yet. */
export function publishedKey(read: ReadText): KeyObject | null {
  const [pem] = /^-----BEGIN PUBLIC KEY-----$[\s\S]*?^-----END PUBLIC KEY-----$/m.exec(read(SECURITY)) ?? [];
  if (pem === undefined) return null;
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : null;
  } catch {
    return null; // text that is not a key is what a placeholder is
  }
}

/** URL of `repository`, which npm takes as text or as an object; null if there is none. */
function repositoryOf(manifest: string): string | null {
  const parsed: unknown = JSON.parse(manifest);
  if (typeof parsed !== 'object' || parsed === null || !('repository' in parsed)) return null;
  const { repository } = parsed;
  if (typeof repository === 'string') return repository;
  if (typeof repository !== 'object' || repository === null || !('url' in repository)) return null;
  return typeof repository.url === 'string' ? repository.url : null;
}

/** True for a URL whose host may exist. */
function isPublic(repository: string | null): boolean {
  if (repository === null || !URL.canParse(repository.replace(/^git\+/, ''))) return false;
  const { hostname } = new URL(repository.replace(/^git\+/, ''));
  return hostname.includes('.') && !RESERVED.test(hostname);
}
