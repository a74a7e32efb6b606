import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const KINDS = ['introspection', 'data', 'session'] as const;
export type Kind = (typeof KINDS)[number];

/**
 * Origin of a list: written after what a tool sends, heard from the client itself, or what analysts write. `checks`
 * are forms of SQL one by one, which are compared and counted for no tool.
 */
const SOURCES = ['written', 'captured', 'analysts', 'checks'] as const;
export type Source = (typeof SOURCES)[number];

/** One thing that a tool does: a statement, or in a session several after one another. */
export interface Entry {
  readonly kind: Kind;
  /** What about it is particular; with the tool's name, its own name. */
  readonly what: string;
  readonly statements: readonly string[];
  /** Of `$1 …`, as text; absent where there are none. */
  readonly values?: readonly (string | null)[];
  /** Why it is refused, where it is. */
  readonly refused?: string;
}

export interface ToolCorpus {
  readonly tool: string;
  readonly source: Source;
  /** As the tool sends its statements. */
  readonly protocol: 'simple' | 'extended';
  readonly entries: readonly Entry[];
}

const FOLDER = join('test', 'clients', 'bi', 'corpus');

/**
 * Statements, one file for each tool. A file begins with `-- tool: NAME (SOURCE, PROTOCOL)`; each entry with
 * `-- KIND: what is particular`, and below it, where there are any, `-- values: ["JSON"]` and `-- refused: why`.
 * In a session a semicolon at the end of a line ends a statement.
 */
export function readCorpus(): readonly ToolCorpus[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file) => parseCorpus(file, readFileSync(join(FOLDER, file), 'utf8')));
}

function parseCorpus(file: string, text: string): ToolCorpus {
  const head = /^-- tool: (.+) \((\w+), (simple|extended)\)\n/.exec(text);
  const [, tool = '', source = '', protocol = ''] = head ?? [];
  const known = SOURCES.find((s) => s === source);
  if (known === undefined || (protocol !== 'simple' && protocol !== 'extended'))
    throw new Error(`${file} does not begin with its tool`);
  const parts = text.split(/^(?=-- (?:introspection|data|session): )/m).slice(1);
  return { tool, source: known, protocol, entries: parts.map((part) => parseEntry(file, part)) };
}

function parseEntry(file: string, part: string): Entry {
  const lines = part.trimEnd().split('\n');
  const [, kindText, what = ''] = /^-- (\w+): (.+)$/.exec(lines.shift() ?? '') ?? [];
  const kind = KINDS.find((k) => k === kindText);
  if (kind === undefined) throw new Error(`${file}: ${part}`);
  const noted = (name: string): string | undefined => {
    const prefix = `-- ${name}: `;
    return lines[0]?.startsWith(prefix) === true ? lines.shift()?.slice(prefix.length) : undefined;
  };
  const values = noted('values');
  const refused = noted('refused');
  const sql = lines.join('\n').trim();
  const statements = kind === 'session' ? sql.split(/;[ \t]*$/m) : [sql.replace(/;$/, '')];
  return {
    kind,
    what,
    statements: statements.map((s) => s.trim()).filter((s) => s !== ''),
    ...(values === undefined ? {} : { values: JSON.parse(values) as (string | null)[] }), // as the file says
    ...(refused === undefined ? {} : { refused }),
  };
}
