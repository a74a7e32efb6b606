import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { PACKAGE_ROOT } from '../../src/base/package-root.js';
import { isSet } from '../../src/service/settings/table.js';
import { addListenOptions, manifestOption, policyOption, type ServerFlags, settingOption } from '../flags.js';

const HELP = `
All settings are environment variables: \`osl config list\` prints them, \`osl config check\` checks them without serving.

SIGHUP reloads manifest, policy, keys, certificates and credentials. If one is invalid, the old version stays in use. A
policy that is missing or invalid is replaced by the last valid one for OSL_POLICY_KEEP_SECONDS; then every request is
refused. OSL_POLICY_WATCH=on reloads the policy when its file changes. SIGTERM or Ctrl-C stops the server after the
requests in progress.

If a database, issuer or store is away at start, the server waits for it: /ready says what is missing, and requests are
refused. Warnings go to standard error (OSL_LOG_LEVEL), as JSON if that is no terminal.

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

const DEMO_HELP = `
The data are the packages that npm installed here: who wrote them, what they need, under which terms. They are read
at the first start, and again when package-lock.json has changed.

Example:
  $ osl demo --http-port 8642 --pg-port 15432`;

const CONSOLE: ServerFlags['console'] & string = existsSync(
  join(PACKAGE_ROOT, 'dist', 'console', 'index.html'),
)
  ? 'admin'
  : 'off';

const FOLDER = join(PACKAGE_ROOT, 'examples', 'supply-chain');

export function addDemo(program: Command): void {
  const command = program.command('demo');
  addListenOptions(command)
    .addOption(settingOption('OSL_CONSOLE', 'admin'))
    .option('--json', 'print where it listens as one JSON line')
    .addHelpText('after', DEMO_HELP)
    .action(async (flags: ServerFlags) => {
      const files = { manifest: join(FOLDER, 'manifest.yaml'), policy: join(FOLDER, 'policy.yaml') };
      const asked = { ...(isSet('OSL_CONSOLE') ? {} : { console: CONSOLE }), ...flags, ...files };
      const [{ runServer }, { DEMO }] = await Promise.all([
        import('../serve/run.js'),
        import('../serve/demo.js'),
      ]);
      await runServer(asked, DEMO);
    });
}
