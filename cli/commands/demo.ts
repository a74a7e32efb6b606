import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { PACKAGE_ROOT } from '../../src/base/package-root.js';
import { isSet } from '../../src/service/settings/table.js';
import { addListenOptions, type ServerFlags, settingOption } from '../flags.js';

const HELP = `
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
    .addHelpText('after', HELP)
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
