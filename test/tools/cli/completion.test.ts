import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { test } from 'tap';
import { osl, ROOT, temporary } from './support.js';

t.setTimeout(600_000);

function has(shell: string): boolean {
  return spawnSync(shell, ['--version']).status === 0;
}

async function scriptFor(shell: string): Promise<string> {
  const { code, stdout, stderr } = await osl(['completion', shell]);
  if (code !== 0) throw new Error(stderr);
  const file = join(temporary(), `osl.${shell}`);
  writeFileSync(file, stdout);
  return file;
}

function run(command: string, args: readonly string[], input: string): string {
  const { stdout, stderr, error } = spawnSync(command, args, {
    cwd: ROOT,
    input,
    encoding: 'utf8',
    timeout: 60_000,
  });
  if (error !== undefined) throw error;
  return `${stdout}${stderr}`;
}

/** What is typed, the last word in part, and what a shell offers for it; sorted. */
const CASES: readonly (readonly [typed: readonly string[], offered: readonly string[]])[] = [
  [['osl', 'au'], ['audit']],
  [
    ['osl', 'audit', ''],
    ['check', 'export', 'prove', 'search', 'table', 'tail', 'verify', 'witness-table'],
  ],
  [['osl', 'audit', 'verify', '--k'], ['--key']],
  [['osl', 'query', '--format', 'c'], ['csv']],
  [
    ['osl', 'completion', ''],
    ['bash', 'fish', 'zsh'],
  ],
  // The value of a flag is not a command, whatever it reads like.
  [['osl', 'token', '--subject', 'audit', '--tt'], ['--ttl']],
  [['osl', 'validate', '--manifest', 'READ'], ['README.md']],
  [['osl', 'errors', 'READ'], []],
];

test('bash', { skip: !has('bash') && 'bash is not installed here' }, async (t) => {
  const file = await scriptFor('bash');
  const lines = CASES.map(([typed]) => `at ${typed.map((w) => `'${w}'`).join(' ')}`);
  const answers = run(
    'bash',
    ['--norc', '-s'],
    `source ${file}
     at() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _osl 2>/dev/null; printf '%s\\n' "\${COMPREPLY[*]}"; }
     ${lines.join('\n')}`,
  ).split('\n');
  for (const [i, [typed, offered]] of CASES.entries()) {
    const found = (answers[i] ?? '?').split(' ').filter((w) => w !== '');
    t.strictSame(found.sort(), offered, typed.join(' '));
  }
});

test('fish', { skip: !has('fish') && 'fish is not installed here' }, async (t) => {
  const file = await scriptFor('fish');
  for (const [typed, offered] of CASES) {
    const said = run('fish', ['--no-config', '-c', `source ${file}; complete -C '${typed.join(' ')}'`], '');
    const found = said.split('\n').flatMap((line) => line.split('\t')[0] || []);
    t.strictSame(found.sort(), offered, typed.join(' '));
  }
});

/** An interactive zsh in a terminal of its own: each line is typed, then Tab, then Enter. */
const ZSH = `
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D; source $1; osl() { print -r -- \\"GOT:\\$*:\\" }; print READY''NOW"
until_() { local line; while zpty -r z line; do [[ $line == *$1* ]] && { REPLY=\${line//$'\\r'/}; return 0 }; done; return 1 }
until_ READYNOW
shift
for typed in "$@"; do
  zpty -w -n z "$typed"$'\\t'$'\\n'
  until_ 'GOT:' && print -r -- "\${\${REPLY##*GOT:}%%:*}"
done
zpty -d z`;

test('zsh', { skip: !has('zsh') && 'zsh is not installed here' }, async (t) => {
  const file = await scriptFor('zsh');
  const driver = join(temporary(), 'driver.zsh');
  writeFileSync(driver, ZSH);
  const single = CASES.filter(([, offered]) => offered.length === 1);
  const said = run('zsh', ['-f', driver, file, ...single.map(([typed]) => typed.join(' '))], '').split('\n');
  for (const [i, [typed, offered]] of single.entries()) {
    t.equal(said[i]?.trim(), [...typed.slice(1, -1), ...offered].join(' '), typed.join(' '));
  }
});

test('another shell is a usage error', async (t) => {
  t.match(await osl(['completion', 'tcsh']), { code: 2, stderr: /Allowed choices are bash, zsh, fish/ });
});
