import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartProblem } from '../base/start-problem.js';

export interface TenantKeys {
  /** Key that signs and verifies actor tokens with HS256; at least 32 bytes. */
  readonly signing: Uint8Array;
  /** The secret from which the keys of `hash` masks and row security are derived. */
  readonly masking: Uint8Array;
}

const SECRET_BYTES = 48;
const FILES = { signing: 'signing.key', masking: 'masking.key' } as const;

/**
 * Returns the secrets in `<dataDir>/keys`, stored as base64 in files with mode 0600. Creates them at the first start; a
 * file missing later is an error, since a new key would change masked hashes and invalidate tokens.
 *
 * @param sharedDir directory shared by several gateways (`OSL_KEYS_DIR`), never created here
 * @throws StartProblem
 */
export function tenantKeys(dataDir: string, sharedDir: string | null = null): TenantKeys {
  const dir = sharedDir ?? join(dataDir, 'keys');
  if (!existsSync(dir)) {
    if (sharedDir !== null)
      throw new StartProblem(
        `there are no keys in ${dir} (OSL_KEYS_DIR): \`osl keys make\` makes them once, for all gateways`,
      );
    makeKeys(dataDir, dir);
  }
  return Object.freeze({ signing: readKey(dir, FILES.signing), masking: readKey(dir, FILES.masking) });
}

/** Returns the keys; null before the first start. @throws StartProblem */
export function existingKeys(dataDir: string, sharedDir: string | null = null): TenantKeys | null {
  return existsSync(sharedDir ?? join(dataDir, 'keys')) ? tenantKeys(dataDir, sharedDir) : null;
}

/** Returns a fingerprint of a key, which is safe to show. */
export function fingerprintOf(kind: keyof TenantKeys, key: Uint8Array): string {
  return createHash('sha256').update(`osl ${kind} key\0`).update(key).digest('hex').slice(0, 32);
}

/** Creates all keys atomically. */
export function makeKeys(dataDir: string, dir: string): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const temporary = mkdtempSync(join(dataDir, 'keys-'));
  for (const name of Object.values(FILES)) {
    writeFileSync(join(temporary, name), `${randomBytes(SECRET_BYTES).toString('base64')}\n`, {
      mode: 0o600,
      flag: 'wx',
      flush: true,
    });
  }
  renameSync(temporary, dir);
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
