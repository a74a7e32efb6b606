import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartProblem } from '../base/start-problem.js';

/** The tenant's own secrets. */
export interface TenantKeys {
  /** Signs and verifies actor tokens with HS256; 32 bytes or more. */
  readonly signing: Uint8Array;
  /** What keys of `hash` masks, and those of row security, are derived from. */
  readonly masking: Uint8Array;
}

const SECRET_BYTES = 48;
const FILES = { signing: 'signing.key', masking: 'masking.key' } as const;

/**
 * The secrets in `<dataDir>/keys`, base64 in files of mode 0600. They are made at the first start; later a missing
 * one is an error, since a new one would quietly change every masked hash and void every token.
 *
 * @param shared a directory that several gateways have (`OSL_KEYS_DIR`), in the place of their own: never made here
 * @throws StartProblem
 */
export function tenantKeys(dataDir: string, shared: string | null = null): TenantKeys {
  const dir = shared ?? join(dataDir, 'keys');
  if (!existsSync(dir)) {
    if (shared !== null)
      throw new StartProblem(
        `there are no keys in ${dir} (OSL_KEYS_DIR): \`osl keys make\` makes them once, for all gateways`,
      );
    makeKeys(dataDir, dir);
  }
  return Object.freeze({ signing: readKey(dir, FILES.signing), masking: readKey(dir, FILES.masking) });
}

/** The keys of the tenant where they have been made; null where no start has. @throws StartProblem */
export function keysThere(dataDir: string, shared: string | null = null): TenantKeys | null {
  return existsSync(shared ?? join(dataDir, 'keys')) ? tenantKeys(dataDir, shared) : null;
}

/** What may be shown of a key: equal for equal keys, and of no other use. */
export function fingerprintOf(kind: keyof TenantKeys, key: Uint8Array): string {
  return createHash('sha256').update(`osl ${kind} key\0`).update(key).digest('hex').slice(0, 32);
}

/** All keys or none: a start that is killed in the middle must not leave some of them. */
export function makeKeys(dataDir: string, dir: string): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const making = mkdtempSync(join(dataDir, 'keys-'));
  for (const name of Object.values(FILES)) {
    writeFileSync(join(making, name), `${randomBytes(SECRET_BYTES).toString('base64')}\n`, {
      mode: 0o600,
      flag: 'wx',
      flush: true,
    });
  }
  renameSync(making, dir);
}

function readKey(dir: string, name: string): Uint8Array {
  const file = join(dir, name);
  if (!existsSync(file)) {
    throw new StartProblem(
      `key file ${file} is missing: restore it, or remove ${dir} to make new keys (old tokens and masked hashes end)`,
    );
  }
  const key = Buffer.from(readFileSync(file, 'utf8').trim(), 'base64');
  if (key.length < 32) throw new StartProblem(`key file ${file} holds fewer than 32 bytes of base64`);
  return key;
}
