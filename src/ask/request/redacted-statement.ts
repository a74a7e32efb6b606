import { createHash } from 'node:crypto';
import { type Catalog, FUNCTIONS } from 'osl-compiler';

/** Redacted statement text, safe to log. */
export interface RedactedStatement {
  /** Without literals and comments; undeclared names are `_1`, `_2`, … */
  readonly shape: string;
  /** 16 hex digits; equal for statements that differ only in literals, layout and aliases. */
  readonly fingerprint: string;
}

/** Maximum length of the text that is read and of the shape that is returned, in UTF-16 code units. */
const MAX_READ = 8_192;
const MAX_SHAPE = 1_024;

/**
 * Redacts `text` for operators, keeping only keywords, punctuation and declared names, since anything else may be a
 * value pasted in the wrong place. Takes linear time for any text.
 */
export function redactStatement(text: string, catalog: Catalog): RedactedStatement {
  const declaredNames = declaredNamesOf(catalog);
  const placeholders = new Map<string, string>();
  const parts: string[] = [];
  const input = text.slice(0, MAX_READ);
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(input); match !== null; match = TOKEN.exec(input)) {
    const { dollar, literal, quoted, word, number, parameter, sign } = match.groups ?? {};
    if (dollar !== undefined) TOKEN.lastIndex = endOfDollar(input, TOKEN.lastIndex, dollar);
    if (dollar !== undefined || literal !== undefined || number !== undefined) parts.push('?');
    else if (parameter !== undefined) parts.push(parameter);
    else if (sign !== undefined) parts.push(sign);
    const name = quoted === undefined ? word?.toLowerCase() : quoted.replace(/^"|"$/g, '');
    if (name === undefined) continue;
    const isKeyword = quoted === undefined && (WORDS.has(name) || FUNCTION_NAMES.has(name));
    if (isKeyword || declaredNames.has(name)) parts.push(name);
    else {
      const placeholder = placeholders.get(name) ?? `_${placeholders.size + 1}`;
      placeholders.set(name, placeholder);
      parts.push(placeholder);
    }
  }
  const shape = join(parts);
  const fingerprint = createHash('sha256').update(shape).digest('hex').slice(0, 16);
  const isTruncated = shape.length > MAX_SHAPE || text.length > MAX_READ;
  return { shape: isTruncated ? `${shape.slice(0, MAX_SHAPE)} …` : shape, fingerprint };
}

/** Matches a token. Unclosed literals, comments and quotes extend to the end, so that half a literal is redacted. */
const TOKEN = new RegExp(
  [
    String.raw`\s+`,
    String.raw`--[^\n]*`,
    String.raw`/\*(?:[^*]|\*(?!/))*(?:\*/)?`,
    String.raw`(?<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)`,
    String.raw`(?<parameter>\$\d{1,5})`,
    String.raw`(?<literal>[eE]'(?:[^'\\]|\\[^]|'')*(?:'|$)|(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*(?:'|$))`,
    '(?<quoted>(?:[uU]&)?"(?:[^"]|"")*(?:"|$))',
    String.raw`(?<number>\d[\w.]*|\.\d[\w.]*)`,
    String.raw`(?<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)`,
    String.raw`(?<sign>::|:=|=>|<=|>=|<>|!=|\|\||[^])`,
  ].join('|'),
  'g',
);

function endOfDollar(text: string, from: number, tag: string): number {
  const end = text.indexOf(tag, from);
  return end < 0 ? text.length : end + tag.length;
}

/** Joins the parts with single spaces, except around dots and `::`, inside brackets, and before punctuation. */
function join(parts: readonly string[]): string {
  let out = '';
  let previous = '';
  for (const part of parts) {
    const noSpace =
      previous === '' ||
      '.(['.includes(previous) ||
      '.,)(];'.includes(part) ||
      previous === '::' ||
      part === '::';
    out += noSpace ? part : ` ${part}`;
    previous = part;
  }
  return out;
}

const NAME_CACHE = new WeakMap<Catalog, ReadonlySet<string>>();

function declaredNamesOf(catalog: Catalog): ReadonlySet<string> {
  const cached = NAME_CACHE.get(catalog);
  if (cached !== undefined) return cached;
  const names = new Set(['osl', 'entities', 'metrics', 'facets']);
  for (const relation of catalog.relations.values()) {
    names.add(relation.name).add(relation.schema).add(relation.table);
    for (const { name, physical } of relation.columns) names.add(name).add(physical);
    for (const { name } of relation.computed ?? []) names.add(name);
  }
  for (const name of [...catalog.metrics.keys(), ...catalog.facets.keys()]) names.add(name);
  NAME_CACHE.set(catalog, names);
  return names;
}

const FUNCTION_NAMES: ReadonlySet<string> = new Set(FUNCTIONS.map(({ name }) => name));

const WORDS: ReadonlySet<string> = new Set(
  `all analyze and any array as asc at begin between bigint bool boolean both by bytea case cast char character close
  coalesce collate commit copy count cross csv cube current current_date current_role current_time current_timestamp
  current_user cursor date day deallocate decimal declare desc discard distinct double else end except execute exists
  explain extract false fetch filter first float float4 float8 following for format forward from full group grouping
  groups having header hour ilike in inner int int2 int4 int8 integer intersect interval into is isnull isolation join
  json jsonb last lateral left level like limit local measure metrics minute month move natural next no not notnull null
  nullif nulls numeric of offset on only or order ordinality outer over overlaps partition per_hop position preceding
  precision prepare range read real recursive release reset retrieve right rollback rollup row rows savepoint second
  select session set sets show similar simple smallint some start stdout substring symmetric table tablesample text then
  ties time timestamp timestamptz timetz to trailing transaction traverse trim true unbounded union unknown using uuid
  values varchar varying verbose when where window with within without year zone evidence`.split(/\s+/),
);
