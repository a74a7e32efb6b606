import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  existingKeys,
  fingerprintOf,
  makeKeys,
  newExchangeKey,
  type TenantKeys,
  tenantKeys,
} from '../src/service/keys.js';
import { usage } from './exit.js';
import { type ServerFlags, settingsOf } from './flags.js';
import { note, print, printJson } from './output.js';

/** Stored next to the other two keys, unless OSL_EXCHANGE_KEY names another file. */
const EXCHANGE = 'exchange.pem';

export function runMakeKeys(given: string, { from }: { readonly from?: string }): void {
  const dir = resolve(process.cwd(), given);
  if (existsSync(dir)) throw usage(`${dir} is there already: keys are never written over`);
  if (from === undefined) makeKeys(dirname(dir), dir);
  else {
    const keys = resolve(process.cwd(), from, 'keys');
    if (!existsSync(keys)) throw usage(`there are no keys in ${keys}`);
    cpSync(keys, dir, { recursive: true, errorOnExist: true });
  }
  writeFileSync(join(dir, EXCHANGE), newExchangeKey(), { mode: 0o600, flag: 'wx' });
  tell(tenantKeys(dirname(dir), dir));
  note(
    `OSL_KEYS_DIR=${dir}\nOSL_EXCHANGE_KEY=${join(dir, EXCHANGE)}    # where accounts of a provider are exchanged`,
  );
  note('who can read these can mint tokens and undo masked hashes');
}

export function runShowKeys(flags: Pick<ServerFlags, 'dataDir'> & { readonly json?: true }): void {
  const { dataDir, keysDir } = settingsOf(flags);
  const keys = existingKeys(dataDir, keysDir);
  if (keys === null) throw usage(`there are no keys in ${keysDir ?? join(dataDir, 'keys')}`);
  if (flags.json) printJson(fingerprints(keys));
  else tell(keys);
}

function tell(keys: TenantKeys): void {
  for (const [kind, fingerprint] of Object.entries(fingerprints(keys))) print(`${kind} ${fingerprint}`);
}

function fingerprints({ signing, masking }: TenantKeys): Readonly<Record<keyof TenantKeys, string>> {
  return { signing: fingerprintOf('signing', signing), masking: fingerprintOf('masking', masking) };
}
