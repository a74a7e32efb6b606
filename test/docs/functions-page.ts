import type { FunctionDefinition, OperatorDefinition } from '../../compiler/src/functions/define.js';
import { functions } from '../language/functions/support/table.js';

const { CATALOG_CASTS, FUNCTIONS, OPERATORS } = functions;

const KINDS: readonly (readonly [kind: FunctionDefinition['kind'], title: string])[] = [
  ['scalar', 'Functions'],
  ['aggregate', 'Aggregates'],
  ['ordered_set', 'Ordered-set aggregates'],
  ['window', 'Window functions'],
  ['rows', 'Functions that make rows'],
];

/** The whole of `docs/functions.md`. */
export function functionsPage(): string {
  const sections = KINDS.map(([kind, title]) => `## ${title}\n\n${NOTES[kind]}${functionTable(kind)}`);
  return `${HEAD}\n${sections.join('\n\n')}\n\n${OPERATOR_HEAD}${operatorTable()}\n\n${CAST_HEAD}${castTable()}\n`;
}

const HEAD = `# Functions, operators and casts

The complete list of functions, operators and casts that OSL-SQL can use; nothing else in the database can be called. Each row is checked against the engine's own \`pg_proc\`, \`pg_operator\` and \`pg_cast\` (\`test/language/functions\`). This page is generated from the compiler's table; [osl-sql.md](osl-sql.md) describes the grammar.

Types are those of Postgres. \`any\`, \`anyelement\`, \`anyarray\` and similar pseudo-types accept the same as there. \`…\` marks a last argument that may be repeated. _stable_: the result may depend on the session's settings or the clock; _volatile_: it may differ at each call; all others are immutable. _leakproof_: it can neither fail on a value nor reveal it, so a predicate made of it may run beside a row filter. Arguments from a fixed set, such as the unit of \`date_trunc\`, must be literals.

COALESCE, NULLIF, GREATEST, LEAST, CASE, CURRENT_DATE, CURRENT_TIMESTAMP, LOCALTIME, LOCALTIMESTAMP, GROUPING, \`pg_typeof\`, \`row_to_json\` and the [JSON constructors](osl-sql.md#json) are part of the grammar and not listed. EXTRACT, SUBSTRING, POSITION, OVERLAY, TRIM, OVERLAPS and AT TIME ZONE may be written in SQL syntax. MEASURE is described in [metrics.md](metrics.md#querying-with-measure), the twelve operators over RETRIEVE in [operators.md](operators.md).
`;

const NOTES: Readonly<Record<FunctionDefinition['kind'], string>> = {
  scalar: '',
  aggregate:
    'Can be used with DISTINCT, ORDER BY, FILTER and OVER (DISTINCT and ORDER BY not together with OVER). `count(*)` is part of the grammar.\n\n',
  ordered_set:
    'The last argument is written in WITHIN GROUP (ORDER BY …). `rank`, `dense_rank`, `percent_rank` and `cume_dist` can be used in the same way, with the values of a hypothetical row.\n\n',
  window: 'Require OVER.\n\n',
  rows: 'Used in FROM, with WITH ORDINALITY and column aliases; those with one column also in the select list. In FROM, `unnest` accepts several arrays, and `jsonb_to_recordset(…) AS t(a int, b text)` and `jsonb_to_record` read objects. A `generate_series` may return a million rows; a longer one fails with 54000.\n\n',
};

const OPERATOR_HEAD = `## Operators

AND, OR, NOT, IN, BETWEEN, IS NULL, IS TRUE and IS DISTINCT FROM are part of the grammar. LIKE is \`~~\`, ILIKE \`~~*\`, SIMILAR TO \`~\` with a translated pattern.

`;

const CAST_HEAD = `## Casts

In addition, every type can be cast to and from text, and an array if its elements can. _implicit_ casts are applied automatically; the others need CAST or \`::\`.

`;

function functionTable(kind: FunctionDefinition['kind']): string {
  const names = new Map<string, FunctionDefinition[]>();
  for (const f of FUNCTIONS) {
    if (f.kind === kind) names.set(f.name, [...(names.get(f.name) ?? []), f]);
  }
  const rows = [...names].sort(byName).map(([name, overloads]) => {
    const calls = overloads.map((f) => `(${argumentsOf(f)}) → ${f.result}`).join('<br>');
    return `| \`${name}\` | ${calls} | ${traits(overloads)} |`;
  });
  return table(['function', 'calls', ''], rows);
}

function argumentsOf(f: FunctionDefinition): string {
  return [...f.arguments, ...(f.variadic === null ? [] : ['…'])].join(', ');
}

function traits(overloads: readonly FunctionDefinition[]): string {
  const share = (has: (f: FunctionDefinition) => boolean, name: string): string[] =>
    overloads.every(has) ? [name] : overloads.some(has) ? [`partly ${name}`] : [];
  return [
    ...share((f) => f.volatility === 'stable', 'stable'),
    ...share((f) => f.volatility === 'volatile', 'volatile'),
    ...share((f) => f.leakproof, 'leakproof'),
  ].join(', ');
}

function operatorTable(): string {
  const names = new Map<string, OperatorDefinition[]>();
  for (const o of OPERATORS) names.set(o.name, [...(names.get(o.name) ?? []), o]);
  const rows = [...names].sort(byName).map(([name, overloads]) => {
    const uses = overloads.map((o) => {
      const use = o.left === null ? `${name} ${o.right}` : `${o.left} ${name} ${o.right}`;
      return `\`${use}\` → ${o.result}${o.leakproof ? ', leakproof' : ''}`;
    });
    return `| \`${escaped(name)}\` | ${uses.map(escaped).join('<br>')} |`;
  });
  return table(['operator', 'uses'], rows);
}

function castTable(): string {
  const rows = CATALOG_CASTS.map(
    (c) =>
      `| ${c.from} | ${c.to} | ${c.context === 'implicit' ? 'implicit' : ''} | ${c.leakproof ? 'leakproof' : ''} |`,
  );
  return table(['from', 'to', '', ''], rows);
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function escaped(text: string): string {
  return text.replaceAll('|', '\\|');
}

function table(head: readonly string[], rows: readonly string[]): string {
  return [`| ${head.join(' | ')} |`, `| ${head.map(() => '---').join(' | ')} |`, ...rows].join('\n');
}
