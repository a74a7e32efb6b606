import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { EXIT } from '../exit.js';
import { print, printJson } from '../output.js';

const HELP = `
Reads a password from standard input, one line, and prints what a policy keeps of it under \`service_accounts\`. The
password cannot be got back from it.

Examples:
  $ osl scram < password.txt
  $ openssl rand -base64 24 | tee password.txt | osl scram`;

export function addScram(program: Command): void {
  program.command('scram').option('--json', 'as JSON').addHelpText('after', HELP).action(runScram);
}

async function runScram(flags: { readonly json?: true }): Promise<void> {
  const password = await firstLine();
  if (password.length < SHORTEST)
    throw new Error(`a password of a service account has at least ${SHORTEST} characters`);
  const { makeScramVerifier } = await import('../../wire/index.js');
  const scram = await makeScramVerifier(password);
  if (flags.json) printJson({ scram });
  else print(scram);
  process.exitCode = EXIT.ok;
}

const SHORTEST = 12;

async function firstLine(): Promise<string> {
  for await (const line of createInterface({ input: process.stdin })) return line;
  return '';
}
