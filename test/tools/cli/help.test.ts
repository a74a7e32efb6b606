import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import t from 'tap';
import { program } from '../../../cli/program.js';
import { osl, ROOT } from './support.js';

/** The words of every command, in the order of the help. */
function commandsOf(command: Command, path: readonly string[] = []): readonly (readonly string[])[] {
  return [path, ...command.commands.flatMap((c) => commandsOf(c, [...path, c.name()]))];
}

const COMMANDS = commandsOf(await program());
t.setTimeout(600_000);
const GOLDEN = join(ROOT, 'test', 'tools', 'cli', 'help.txt');

t.test('the help of every command is the golden text, and shows an example', async (t) => {
  const all: string[] = [];
  const runs = await Promise.all(COMMANDS.map((command) => osl([...command, '--help'])));
  for (const [i, command] of COMMANDS.entries()) {
    const { code = null, stdout = '', stderr = '' } = runs[i] ?? {};
    const name = ['osl', ...command].join(' ');
    t.equal(code, 0, name);
    t.equal(stderr, '', name);
    if (command.join() !== 'audit') t.match(stdout, /\n {2}\$ .*osl /, `${name} shows an example`);
    all.push(`==== ${name} --help\n${stdout}`);
  }
  const text = all.join('\n');
  if (process.env['OSL_GOLDEN'] === 'rewrite') writeFileSync(GOLDEN, text);
  t.equal(text, readFileSync(GOLDEN, 'utf8'), 'OSL_GOLDEN=rewrite writes test/tools/cli/help.txt anew');
});

t.test('--version is the version of the package', async (t) => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  t.equal((await osl(['--version'])).stdout, `${version}\n`);
});
