import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { newExchangeKey } from '../../src/service/issuer-keys.js';
import {
  existingKeys,
  fingerprintOf,
  makeKeys,
  type TenantKeys,
  tenantKeys,
} from '../../src/service/keys.js';
import { splitList } from '../../src/service/settings/types.js';
import { usage } from '../exit.js';
import { dataDirOption, type ServerFlags, settingsOf } from '../flags.js';
import { note, print, printJson } from '../output.js';
import type { MigrateFlags } from '../policy/versions.js';

const HELP = `
Example:
  $ osl control migrate --gateway osl_gateway --author osl_author`;

const MIGRATE_HELP = `
Makes or brings up to date the schema osl_control in the database of OSL_CONTROL_URL, as the role of that URL: its
owner. Gateways then log in as a role of their own that may read policies and append what is published; who writes
policies, as another. Both must exist. Safe to run again, and beside gateways that serve.

Example:
  $ osl control migrate --gateway osl_gateway --author osl_author    # OSL_CONTROL_URL names the owner`;

export function addControl(program: Command): void {
  const control = program.command('control').addHelpText('after', HELP);
  control
    .command('migrate')
    .description('make or renew the schema osl_control, and grant roles what they need')
    .addOption(rolesOption('--gateway <roles>', 'roles, with commas, that gateways log in as'))
    .addOption(rolesOption('--author <roles>', 'roles, with commas, that write policies'))
    .option('--json', 'what was done as JSON')
    .addHelpText('after', MIGRATE_HELP)
    .action(async (flags: MigrateFlags) => (await import('../policy/versions.js')).runMigrate(flags));
}

function rolesOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser(splitList);
}

const KEYS_HELP = `
A gateway makes its keys at its first start. Several gateways need the same ones: with another masking key one person's
hash differs from gateway to gateway, with another signing key a token of one is refused by the next. Make them once, bring
the directory to each machine as any secret, and name it in OSL_KEYS_DIR; gateways that share a control database refuse to
start with others.

Examples:
  $ osl keys make /etc/osl/keys
  $ osl keys make /etc/osl/keys --from .osl     # the keys of a gateway that serves already
  $ osl keys show`;

export function addKeys(program: Command): void {
  const keys = program.command('keys').addHelpText('after', KEYS_HELP);
  keys
    .command('make')
    .description('make a directory of keys, for OSL_KEYS_DIR of all gateways')
    .argument('<dir>', 'where; it must not be there yet')
    .option('--from <data-dir>', 'copy those of a gateway, so that its hashes and tokens stay good')
    .addHelpText('after', '\nExample:\n  $ osl keys make /etc/osl/keys')
    .action(async (dir: string, flags) => runMakeKeys(dir, flags));
  keys
    .command('show')
    .description('show fingerprints, to compare gateways by; never a key')
    .addOption(dataDirOption())
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ osl keys show')
    .action(async (flags) => runShowKeys(flags));
}

/** File name of the exchange key, next to the signing and masking keys unless OSL_EXCHANGE_KEY names another file. */
const EXCHANGE = 'exchange.pem';

function runMakeKeys(given: string, { from }: { readonly from?: string }): void {
  const dir = resolve(process.cwd(), given);
  if (existsSync(dir)) throw usage(`${dir} is there already: keys are never written over`);
  if (from === undefined) makeKeys(dirname(dir), dir);
  else {
    const keys = resolve(process.cwd(), from, 'keys');
    if (!existsSync(keys)) throw usage(`there are no keys in ${keys}`);
    cpSync(keys, dir, { recursive: true, errorOnExist: true });
  }
  const exchange = join(dir, EXCHANGE);
  if (!existsSync(exchange)) writeFileSync(exchange, newExchangeKey(), { mode: 0o600, flag: 'wx' });
  tell(tenantKeys(dirname(dir), dir));
  note(`OSL_KEYS_DIR=${dir}\nOSL_EXCHANGE_KEY=${exchange}    # where accounts of a provider are exchanged`);
  note('who can read these can mint tokens and undo masked hashes');
}

function runShowKeys(flags: Pick<ServerFlags, 'dataDir'> & { readonly json?: true }): void {
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
