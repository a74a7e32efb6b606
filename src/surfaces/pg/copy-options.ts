import { type parse, quoteIdentifier } from 'osl-compiler';
import { error } from '../../../wire/index.js';

type Node = ReturnType<typeof parse>['node'];
type CopyNode = Extract<Node, { CopyStmt: unknown }>['CopyStmt'];
type Option = NonNullable<CopyNode['options']>[number];

export interface CopyOptions {
  readonly format: 'text' | 'csv' | 'binary';
  readonly delimiter: string;
  readonly null: string;
  readonly header: boolean;
  readonly quote: string;
  readonly escape: string;
  /** Names of columns whose values are quoted always; `*` is all. */
  readonly forceQuote: '*' | readonly string[];
}

/** COPY … TO STDOUT and its options, checked as Postgres does. @throws WireError */
export function copyOptions(node: CopyNode): CopyOptions {
  if (node.is_from === true) throw error('25006', 'cannot execute COPY FROM in a read-only transaction');
  if (node.is_program === true || node.filename !== undefined)
    throw error('42501', 'COPY goes to STDOUT only', { hint: 'use \\copy in psql' });
  const given = new Map<string, Option & { DefElem: unknown }>();
  for (const option of node.options ?? []) {
    if (!('DefElem' in option)) continue;
    const name = option.DefElem.defname ?? '';
    if (given.has(name)) throw error('42601', 'conflicting or redundant options');
    given.set(name, option);
  }
  const text = (name: string): string | null => {
    const option = given.get(name);
    given.delete(name);
    return option === undefined ? null : textOf(option, name);
  };
  const format = text('format') ?? 'text';
  if (format !== 'text' && format !== 'csv' && format !== 'binary')
    throw error('22023', `COPY format "${format}" not recognized`);
  const encoding = text('encoding');
  if (encoding !== null && !/^utf-?8$/i.test(encoding)) throw error('0A000', 'COPY is served in UTF-8 only');
  const csv = format === 'csv';
  const quote = text('quote');
  const forceQuote = listOf(given.get('force_quote'));
  given.delete('force_quote');
  const options = {
    format,
    delimiter: text('delimiter') ?? (csv ? ',' : '\t'),
    null: text('null') ?? (csv ? '' : '\\N'),
    header: truth(text('header')),
    quote: quote ?? '"',
    escape: text('escape') ?? quote ?? '"',
    forceQuote: forceQuote ?? [],
  } as const;
  for (const name of given.keys()) throw error('42601', `option "${name}" not recognized`);
  requireSense(options, node.options ?? []);
  return options;
}

function requireSense(options: CopyOptions, given: readonly Option[]): void {
  const { format, delimiter, quote } = options;
  const has = (name: string): boolean => given.some((o) => 'DefElem' in o && o.DefElem.defname === name);
  for (const name of ['delimiter', 'null'])
    if (format === 'binary' && has(name))
      throw error('42601', `cannot specify ${name.toUpperCase()} in BINARY mode`);
  for (const name of ['header', 'quote', 'escape', 'force_quote'])
    if (format !== 'csv' && has(name))
      throw error('0A000', `COPY ${name.replace('_', ' ')} available only in CSV mode`);
  for (const [name, value] of [
    ['delimiter', delimiter],
    ['quote', quote],
    ['escape', options.escape],
  ] as const) {
    if (Buffer.byteLength(value) !== 1)
      throw error('0A000', `COPY ${name} must be a single one-byte character`);
  }
  if (/[\r\n]/.test(delimiter + options.null))
    throw error('22023', 'COPY delimiter and null cannot be line ends');
  if (format === 'text' && /[\\.a-z0-9]/.test(delimiter))
    throw error('22023', `COPY delimiter cannot be "${delimiter}"`);
  if (format === 'csv' && delimiter === quote)
    throw error('22023', 'COPY delimiter and quote must be different');
  if (options.null.includes(delimiter))
    throw error('22023', 'COPY delimiter character must not appear in the NULL specification');
}

function textOf(option: Option, name: string): string {
  const arg = 'DefElem' in option ? option.DefElem.arg : undefined;
  if (arg === undefined) return 'true';
  if ('String' in arg) return arg.String.sval ?? '';
  if ('Boolean' in arg) return arg.Boolean.boolval === true ? 'true' : 'false';
  if ('Integer' in arg) return String(arg.Integer.ival ?? 0);
  throw error('42601', `COPY option "${name}" takes a constant`);
}

function truth(value: string | null): boolean {
  if (value === null || /^(false|off|0)$/i.test(value)) return false;
  if (/^(true|on|1)$/i.test(value)) return true;
  throw error('42601', 'header requires a Boolean value');
}

function listOf(option: Option | undefined): '*' | readonly string[] | null {
  const arg = option !== undefined && 'DefElem' in option ? option.DefElem.arg : undefined;
  if (arg === undefined) return null;
  if ('A_Star' in arg) return '*';
  if (!('List' in arg))
    throw error('42601', 'argument to option "force_quote" must be a list of column names');
  return (arg.List.items ?? []).map((item) => ('String' in item ? (item.String.sval ?? '') : ''));
}

/** `COPY relation (columns) TO …` as the question it stands for; null where COPY has a question of its own. */
export function questionOf(node: CopyNode): string | null {
  const relation = node.relation;
  if (relation === undefined) return null;
  const names = [relation.catalogname, relation.schemaname, relation.relname].filter((n) => n !== undefined);
  const columns = (node.attlist ?? []).map((c) =>
    'String' in c ? quoteIdentifier(c.String.sval ?? '') : '',
  );
  return `select ${columns.length === 0 ? '*' : columns.join(', ')} from ${names.map(quoteIdentifier).join('.')}`;
}
