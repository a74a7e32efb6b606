import { randomBytes } from 'node:crypto';
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
 * @throws StartProblem
 */
export function tenantKeys(dataDir: string): TenantKeys {
  const dir = join(dataDir, 'keys');
  const first = !existsSync(dir);
  if (first) makeKeys(dataDir, dir);
  return Object.freeze({ signing: readKey(dir, FILES.signing), masking: readKey(dir, FILES.masking) });
}

/** The keys of the tenant where they have been made; null where no start has. @throws StartProblem */
export function keysThere(dataDir: string): TenantKeys | null {
  return existsSync(join(dataDir, 'keys')) ? tenantKeys(dataDir) : null;
}

/** All keys or none: a start that is killed in the middle must not leave some of them. */
function makeKeys(dataDir: string, dir: string): void {
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
