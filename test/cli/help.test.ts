import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { osl, ROOT } from './support.js';

const COMMANDS = [
  [],
  ['serve'],
  ['demo'],
  ['query'],
  ['explain'],
  ['sample'],
  ['schema'],
  ['map'],
  ['resolve'],
  ['psql'],
  ['mcp'],
  ['token'],
  ['validate'],
  ['diff'],
  ['discover'],
  ['audit'],
  ['audit', 'verify'],
  ['audit', 'tail'],
  ['audit', 'prove'],
  ['audit', 'check'],
  ['errors'],
];

const GOLDEN = join(ROOT, 'test', 'cli', 'help.txt');

t.test('the help of every command is the golden text, and shows an example', async (t) => {
  const all: string[] = [];
  for (const command of COMMANDS) {
    const { code, stdout, stderr } = await osl([...command, '--help']);
    const name = ['osl', ...command].join(' ');
    t.equal(code, 0, name);
    t.equal(stderr, '', name);
    if (command.join() !== 'audit') t.match(stdout, /\n {2}\$ .*osl /, `${name} shows an example`);
    all.push(`==== ${name} --help\n${stdout}`);
  }
  const text = all.join('\n');
  if (process.env['OSL_GOLDEN'] === 'rewrite') writeFileSync(GOLDEN, text);
  t.equal(text, readFileSync(GOLDEN, 'utf8'), 'OSL_GOLDEN=rewrite writes test/cli/help.txt anew');
});

t.test('--version is the version of the package', async (t) => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  t.equal((await osl(['--version'])).stdout, `${version}\n`);
});
