import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import t from 'tap';
import { program } from '../../../cli/program.js';
import { partOf } from '../../support/part.js';
import { osl, ROOT } from './support.js';

interface Named {
  readonly command: Command;
  /** Its words. */
  readonly path: readonly string[];
}

/** Every command, in the order of the help. */
function commandsOf(command: Command, path: readonly string[] = []): readonly Named[] {
  return [{ command, path }, ...command.commands.flatMap((c) => commandsOf(c, [...path, c.name()]))];
}

/** What `--help` of a command prints. */
function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  return text;
}

const COMMANDS = commandsOf(await program());
t.setTimeout(600_000);
const GOLDEN = join(ROOT, 'test', 'tools', 'cli', 'help.txt');

t.test('the help of every command is the golden text, and shows an example', async (t) => {
  const all: string[] = [];
  for (const { command, path } of COMMANDS) {
    const name = ['osl', ...path].join(' ');
    const help = helpOf(command);
    if (path.join() !== 'audit') t.match(help, /\n {2}\$ .*osl /, `${name} shows an example`);
    all.push(`==== ${name} --help\n${help}`);
  }
  const text = all.join('\n');
  if (process.env['OSL_GOLDEN'] === 'rewrite') writeFileSync(GOLDEN, text);
  t.equal(text, readFileSync(GOLDEN, 'utf8'), 'OSL_GOLDEN=rewrite writes test/tools/cli/help.txt anew');
});

t.test('a process prints the same', async (t) => {
  for (const { command, path } of partOf('help', COMMANDS, 8, ({ path }) => path.length === 0))
    t.match(await osl([...path, '--help']), { code: 0, stdout: helpOf(command), stderr: '' }, path.join(' '));
});

t.test('--version is the version of the package', async (t) => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  t.equal((await osl(['--version'])).stdout, `${version}\n`);
});
