import { join } from 'node:path';
import t from 'tap';
import { commandName, dataDirFlag } from '../../../cli/serve/invocation.js';
import { ROOT, temporary } from './support.js';

/** The beginning of a command line, for what called the program: npm or none, this script, this folder. */
function nameFor(npm: boolean, script: string, folder: string): string {
  const { env, argv } = process;
  const before = { npm: env['npm_command'], script: argv[1], folder: process.cwd() };
  if (npm) env['npm_command'] = 'exec';
  else delete env['npm_command'];
  argv[1] = script;
  process.chdir(folder);
  try {
    return commandName();
  } finally {
    process.chdir(before.folder);
    argv[1] = before.script ?? '';
    if (before.npm === undefined) delete env['npm_command'];
    else env['npm_command'] = before.npm;
  }
}

t.test('a command that is suggested begins as this one was called', async (t) => {
  const [elsewhere, script] = [temporary(), join(ROOT, 'bin', 'osl.js')];
  t.equal(nameFor(true, script, ROOT), 'npx osl');
  t.equal(nameFor(true, script, elsewhere), 'npx osl-gateway');
  t.equal(nameFor(false, '/usr/local/bin/osl', elsewhere), 'osl');
  t.equal(nameFor(false, script, ROOT), 'npx osl');
  t.equal(nameFor(false, script, join(ROOT, 'bin')), 'node osl.js');
  t.equal(nameFor(false, '/opt/my tools/osl.js', elsewhere), "node '/opt/my tools/osl.js'");
  t.equal(nameFor(false, process.execPath, elsewhere), process.execPath);
});

t.test('the default data directory needs no flag', async (t) => {
  t.equal(dataDirFlag(join(process.cwd(), '.osl')), '');
  t.equal(dataDirFlag(join(process.cwd(), 'data')), ' --data-dir data');
  t.equal(dataDirFlag('/var/lib/osl'), ' --data-dir /var/lib/osl');
});
