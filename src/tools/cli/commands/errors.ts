import type { Command } from 'commander';
import type { ErrorShape } from '../error-catalogue.js';
import { usage } from '../exit.js';
import { print, printJson } from '../output.js';
import { formatTable } from '../table.js';

const HELP = `
Examples:
  $ osl errors              # all of them
  $ osl errors E0512
  $ osl errors 42703        # by SQLSTATE`;

export function addErrors(program: Command): void {
  program
    .command('errors')
    .description('explain an error code, or list them all')
    .argument('[code]', 'such as E0512, or an SQLSTATE such as 42703')
    .option('--json', 'as JSON')
    .addHelpText('after', HELP)
    .action(runErrors);
}

async function runErrors(code: string | undefined, flags: { readonly json?: true }): Promise<void> {
  const { catalogue } = await import('../error-catalogue.js');
  const entries = catalogue();
  const found = code === undefined ? entries : entries.filter((e) => matches(e, code.toUpperCase()));
  if (code !== undefined && found.length === 0) throw await unknownCode(code, entries);
  if (flags.json) printJson(found);
  else print(code === undefined ? listOf(found) : found.map(paragraph).join('\n\n'));
}

function matches(entry: ErrorShape, code: string): boolean {
  return entry.code === code || entry.sqlstate === code;
}

async function unknownCode(code: string, entries: readonly ErrorShape[]) {
  const { nearest } = await import('osl-compiler');
  const near = nearest(code.toUpperCase(), new Set(entries.flatMap((e) => [e.code, e.sqlstate])));
  const hint = near === null ? '`osl errors` lists them' : `perhaps you meant ${near}`;
  return usage(`there is no error code \`${code}\`: ${hint}`);
}

function listOf(entries: readonly ErrorShape[]): string {
  const columns = [
    { name: 'code', align: 'left' as const },
    { name: 'HTTP', align: 'right' as const },
    { name: 'SQLSTATE', align: 'left' as const },
    { name: 'message', align: 'left' as const },
  ];
  return formatTable(
    columns,
    entries.map((e) => [e.code, String(e.http), e.sqlstate, e.message]),
  );
}

function paragraph(entry: ErrorShape): string {
  const lines = [
    `${entry.code}  ${entry.name}`,
    `  message   ${entry.message}`,
    ...(entry.hint === null ? [] : [`  hint      ${entry.hint}`]),
    `  HTTP      ${entry.http}`,
    `  SQLSTATE  ${entry.sqlstate}`,
  ];
  return lines.join('\n');
}
