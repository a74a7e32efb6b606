import { identifier } from 'osl-compiler';
import { type CompletionItem, CompletionItemKind, InsertTextFormat } from 'vscode-languageserver/node';
import type { FunctionEntry } from '../../../src/model/graph/language.js';
import type { ManifestNames } from '../names.js';
import { columnsIn, isName, type OsqlToken, type Statement, sourcesIn } from './scope.js';

const KEYWORDS =
  'select from where group by order having limit offset join left inner on and or not in exists between like ilike is null case when then else end with as distinct union all intersect except over partition cast interval date timestamp true false asc desc'.split(
    ' ',
  );

const FORMS: readonly (readonly [name: string, snippet: string, detail: string])[] = [
  ['RETRIEVE', "RETRIEVE(facet => '$1', query => '$2', top_k => $3)", 'passages of a facet, the best first'],
  [
    'TRAVERSE',
    "TRAVERSE(anchor => '$1', target => '$2', keys => ('$3'))",
    'what keys lead to, along declared links',
  ],
  ['MEASURE', 'MEASURE($1)', 'a metric'],
];

export function completeQuestion(
  { tokens }: Statement,
  at: number,
  names: ManifestNames,
  functions: readonly FunctionEntry[],
): readonly CompletionItem[] {
  const before = tokens.filter((token) => token.to < at || (token.to === at && !isName(token)));
  const inside = tokens.find(
    (token) => token.kind === 'string' && token.from < at && (at < token.to || !token.closed),
  );
  if (inside !== undefined)
    return inString(
      before.filter((token) => token.to <= inside.from),
      names,
    );
  const last = before.at(-1);
  if (last?.text === '.') return afterDot(tokens, before, names);
  const previous = last?.kind === 'word' ? last.text : '';
  if (previous === 'from' || previous === 'join')
    return [...relationItems(names), ...formItems(['RETRIEVE', 'TRAVERSE'])];
  if (last?.text === '(' && before.at(-2)?.text === 'measure') return metricItems(names);
  return [
    ...columnItems(tokens, names),
    ...formItems(['MEASURE']),
    ...functionItems(functions),
    ...keywordItems(),
  ];
}

function inString(before: readonly OsqlToken[], names: ManifestNames): readonly CompletionItem[] {
  const argument = before.at(-1)?.text === '=>' ? before.at(-2)?.text : undefined;
  if (argument !== 'facet' && argument !== 'anchor' && argument !== 'target') return [];
  const kind = argument === 'facet' ? 'facet' : 'entity';
  return names.relations
    .filter((relation) => relation.kind === kind)
    .map(({ name, description }) => item(name, CompletionItemKind.Class, kind, description));
}

function afterDot(
  tokens: readonly OsqlToken[],
  before: readonly OsqlToken[],
  names: ManifestNames,
): readonly CompletionItem[] {
  const owner = before.at(-2);
  if (!isName(owner)) return [];
  if (owner.text === 'osl' && before.at(-3)?.text !== '.')
    return [item('entities', CompletionItemKind.Module, null, null)];
  if (owner.text === 'entities' && before.at(-4)?.text === 'osl') return relationItems(names);
  const source = sourcesIn(tokens, names).find(({ alias }) => alias === owner.text);
  if (source === undefined) return [];
  return columnsIn(source, names).map((c) => item(c.name, CompletionItemKind.Field, c.type, c.description));
}

function columnItems(tokens: readonly OsqlToken[], names: ManifestNames): readonly CompletionItem[] {
  const sources = sourcesIn(tokens, names);
  const columns = new Map(
    sources.flatMap((source) =>
      columnsIn(source, names).map((c) => [
        c.name,
        {
          ...item(c.name, CompletionItemKind.Field, c.type ?? source.relation, c.description),
          sortText: `0${c.name}`,
        },
      ]),
    ),
  );
  const aliases = sources.map(({ alias, relation }) => ({
    ...item(alias, CompletionItemKind.Variable, relation, null),
    sortText: `1${alias}`,
  }));
  return [...columns.values(), ...aliases];
}

function relationItems({ relations }: ManifestNames): readonly CompletionItem[] {
  return relations
    .filter(({ kind }) => kind !== 'facet')
    .map(({ name, kind, description }) => item(name, CompletionItemKind.Class, kind, description));
}

function metricItems({ metrics }: ManifestNames): readonly CompletionItem[] {
  return metrics.map((name) => item(name, CompletionItemKind.Value, 'metric', null));
}

function formItems(wanted: readonly string[]): readonly CompletionItem[] {
  return FORMS.filter(([name]) => wanted.includes(name)).map(([label, insertText, detail]) => ({
    label,
    detail,
    insertText,
    insertTextFormat: InsertTextFormat.Snippet,
    kind: CompletionItemKind.Snippet,
    sortText: `2${label}`,
  }));
}

function functionItems(functions: readonly FunctionEntry[]): readonly CompletionItem[] {
  return functions.map(({ name, kind, signatures }) => ({
    ...item(
      name,
      CompletionItemKind.Function,
      signatures[0] ?? null,
      [`${kind} function`, ...signatures].join('\n'),
    ),
    sortText: `3${name}`,
  }));
}

function keywordItems(): readonly CompletionItem[] {
  return KEYWORDS.map((label) => ({ label, kind: CompletionItemKind.Keyword, sortText: `4${label}` }));
}

function item(
  name: string,
  kind: CompletionItemKind,
  detail: string | null,
  documentation: string | null,
): CompletionItem {
  const written = identifier(name);
  return {
    label: name,
    kind,
    ...(written === name ? {} : { insertText: written }),
    ...(detail !== null && { detail }),
    ...(documentation !== null && { documentation }),
  };
}
