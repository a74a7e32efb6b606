import type { Command } from 'commander';
import { addListenOptions, manifestOption, policyOption, type ServerFlags, settingOption } from '../flags.js';

const HELP = `
All settings are environment variables: \`osl config list\` prints them, \`osl config check\` checks them without serving.

SIGHUP reloads manifest, policy, keys, certificates and credentials. If one is invalid, the old version stays in use. A
policy that is missing or invalid is replaced by the last valid one for OSL_POLICY_KEEP_SECONDS; then every request is
refused. OSL_POLICY_WATCH=on reloads the policy when its file changes. SIGTERM or Ctrl-C stops the server after the
requests in progress.

If a database, issuer or store is away at start, the server waits for it: /ready says what is missing, and requests are
refused. Warnings go to standard error (OSL_LOG_LEVEL), as JSON if that is not a terminal.

Exit status: 0 stopped in order, 1 an error that may pass, 2 settings or files that can never work, 7 the audit log failed
for good, 130 stopped at once.

Example:
  $ osl serve --manifest manifest.yaml --policy policy.yaml --data-dir .osl`;

export function addServe(program: Command): void {
  const command = program.command('serve').addOption(manifestOption()).addOption(policyOption());
  addListenOptions(command)
    .addOption(settingOption('OSL_WORKERS'))
    .addOption(settingOption('OSL_CONSOLE'))
    .option('--json', 'print where it listens as one JSON line')
    .addHelpText('after', HELP)
    .action(async (flags: ServerFlags) => {
      const begun = import('osl-compiler').then(({ ready }) => ready());
      begun.catch(() => undefined); // the code that awaits it reports the error
      await (await import('../serve/run.js')).runServer(flags, null);
    });
}
