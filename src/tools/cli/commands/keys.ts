import type { Command } from 'commander';
import { dataDirOption } from '../flags.js';

const HELP = `
A gateway makes its keys at its first start. Several gateways need the same ones: with another masking key one person's
hash differs from gateway to gateway, with another signing key a token of one is refused by the next. Make them once, bring
the directory to each machine as any secret, and name it in OSL_KEYS_DIR; gateways that share a control database refuse to
start with others.

Examples:
  $ osl keys make /etc/osl/keys
  $ osl keys make /etc/osl/keys --from .osl     # the keys of a gateway that serves already
  $ osl keys show`;

/** Commands load what they run only then: `--help` stays quick. */
export function addKeys(program: Command): void {
  const keys = program.command('keys').addHelpText('after', HELP);
  keys
    .command('make')
    .description('make a directory of keys, for OSL_KEYS_DIR of all gateways')
    .argument('<dir>', 'where; it must not be there yet')
    .option('--from <data-dir>', 'copy those of a gateway, so that its hashes and tokens stay good')
    .addHelpText('after', '\nExample:\n  $ osl keys make /etc/osl/keys')
    .action(async (dir: string, flags) => (await import('../keys.js')).runMakeKeys(dir, flags));
  keys
    .command('show')
    .description('show fingerprints, to compare gateways by; never a key')
    .addOption(dataDirOption())
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ osl keys show')
    .action(async (flags) => (await import('../keys.js')).runShowKeys(flags));
}
