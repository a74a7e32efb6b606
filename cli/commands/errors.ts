import { type Command, Help } from 'commander';
import type { ERRORS as Errors, nearest as Nearest } from 'osl-compiler';
import type { Explanation } from '../error-explanations.js';
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
    .argument('[code]', 'such as E0512, or an SQLSTATE such as 42703')
    .option('--json', 'as JSON')
    .addHelpText('after', HELP)
    .action(runErrors);
}

async function runErrors(code: string | undefined, flags: { readonly json?: true }): Promise<void> {
  const { EXPLANATIONS } = await import('../error-explanations.js');
  const { ERRORS, nearest } = await import('osl-compiler');
  const entries = catalogue(ERRORS);
  const found = code === undefined ? entries : entries.filter((e) => matches(e, code.toUpperCase()));
  if (code !== undefined && found.length === 0) throw unknownCode(code, entries, nearest);
  const explained = found.map((entry) => ({ ...entry, ...EXPLANATIONS.get(entry.code) }));
  if (flags.json) printJson(explained.map(({ page, ...entry }) => ({ ...entry, docs: `docs/${page}` })));
  else print(code === undefined ? listOf(found) : explanationsOf(found, EXPLANATIONS));
}

function matches(entry: ErrorShape, code: string): boolean {
  return entry.code === code || entry.sqlstate === code;
}

function unknownCode(code: string, entries: readonly ErrorShape[], nearest: typeof Nearest) {
  const near = nearest(code.toUpperCase(), new Set(entries.flatMap((e) => [e.code, e.sqlstate])));
  const hint = near === null ? '`osl errors` lists them' : `perhaps you meant ${near}`;
  return usage(`there is no error code \`${code}\`: ${hint}`);
}

function listOf(entries: readonly ErrorShape[]): string {
  const columns = ['code', { name: 'HTTP', align: 'right' }, 'SQLSTATE', 'message'] as const;
  return formatTable(
    columns,
    entries.map((e) => [e.code, String(e.http), e.sqlstate, e.message]),
  );
}

function explanationsOf(found: readonly ErrorShape[], known: ReadonlyMap<string, Explanation>): string {
  const codes = [...new Set(found.map((e) => e.code))];
  return codes
    .flatMap((code) => {
      const entries = found.filter((e) => e.code === code);
      return [...paragraphOf(code, known.get(code)), '', 'Messages', ...entries.flatMap(linesOf), ''];
    })
    .join('\n')
    .trimEnd();
}

function paragraphOf(code: string, explanation: Explanation | undefined): readonly string[] {
  if (explanation === undefined) return [code];
  const { cause, remedy, page } = explanation;
  const labelled = (label: string, text: string): string =>
    new Help()
      .boxWrap(text, WIDTH)
      .split('\n')
      .map((line, i) => `  ${(i === 0 ? label : '').padEnd(INDENT)}${line}`)
      .join('\n');
  return [code, labelled('cause', cause), labelled('do', remedy), labelled('see', `docs/${page}`)];
}

const INDENT = 8;
const WIDTH = 90;

function linesOf({ message, hint, http, sqlstate, name }: ErrorShape): readonly string[] {
  return [
    `  ${message}`,
    ...(hint === null ? [] : [`    hint: ${hint}`]),
    `    HTTP ${http}, SQLSTATE ${sqlstate} (${name})`,
  ];
}

/** A message from the catalogue; parameters are shown as `<name>`. */
export interface ErrorShape {
  readonly code: string;
  readonly name: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly message: string;
  readonly hint: string | null;
}

function catalogue(errors: typeof Errors): readonly ErrorShape[] {
  return Object.entries(errors)
    .map(([name, entry]) => shapeOf(name, entry as unknown as AnyEntry)) // each entry has its own parameter type
    .sort((a, b) => (a.code < b.code ? -1 : a.code > b.code ? 1 : 0));
}

interface AnyEntry {
  readonly code: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly message: (parameters: unknown) => string;
  readonly hint: (parameters: unknown) => string | null;
}

function shapeOf(name: string, entry: AnyEntry): ErrorShape {
  const { code, sqlstate, http } = entry;
  return { code, name, sqlstate, http, message: entry.message(PLACEHOLDERS), hint: entry.hint(PLACEHOLDERS) };
}

/** Placeholder parameters: every property evaluates to its own name in angle brackets. */
const PLACEHOLDERS: unknown = new Proxy(Object.freeze({}), {
  get: (_, name) => `<${String(name)}>`,
});
