import { identifier } from 'osl-compiler';
import {
  type CompletionItem,
  CompletionItemKind,
  InsertTextFormat,
  type Range,
} from 'vscode-languageserver/node';
import type { FunctionEntry } from '../../src/model/graph/language.js';
import {
  candidatesFor,
  choicesOf,
  type FileKind,
  type JsonSchemaPart,
  mayBe,
  meaningOf,
  type NameCandidate,
  type PlaceMeaning,
  schemaAt,
} from './meaning.js';
import type { ManifestNames } from './names.js';
import { columnsIn, isName, type OsqlToken, type Statement, sourcesIn } from './osql-scope.js';
import type { YamlPlace } from './yaml/place.js';

/** Maximum number of items. Editors filter the list as the user types, and reload it if it is marked incomplete. */
const MOST_ITEMS = 1_000;

export interface Completion {
  readonly items: CompletionItem[];
  readonly isIncomplete: boolean;
}

/** Completions at a position in a manifest or a policy. */
export function completeYaml(
  kind: FileKind,
  place: YamlPlace,
  line: number,
  names: ManifestNames,
): Completion {
  const part = schemaAt(kind, place.steps);
  const range = { start: { line, character: place.start }, end: { line, character: place.end } };
  const items = [
    ...(place.role === 'value' ? [] : keyItems(kind, place, part, range, names)),
    ...(place.role === 'key' ? [] : valueItems(kind, place, part, range, names)),
  ];
  const fitting =
    items.length <= MOST_ITEMS ? items : items.filter(({ label }) => label.includes(place.word));
  return {
    items: fitting.slice(0, MOST_ITEMS),
    isIncomplete: fitting.length > MOST_ITEMS || fitting !== items,
  };
}

function keyItems(
  kind: FileKind,
  place: YamlPlace,
  part: JsonSchemaPart | null,
  range: Range,
  names: ManifestNames,
): readonly CompletionItem[] {
  if (part === null || !mayBe(part, 'object')) return [];
  const required = new Set(part.required ?? []);
  const known = Object.entries(part.properties ?? {})
    .filter(([key]) => key === place.word || !place.siblings.has(key))
    .map(
      ([key, { description }]): CompletionItem => ({
        label: key,
        kind: CompletionItemKind.Property,
        sortText: `${required.has(key) ? 0 : 1}${key}`,
        ...(description !== undefined && { documentation: description }),
        ...(required.has(key) && { detail: 'required' }),
        textEdit: { range, newText: `${key}:` },
      }),
    );
  const meaning = meaningOf(kind, place, 'key');
  const named = meaning === null ? [] : keysNamed(meaning, kind, place, names);
  return [...known, ...named.map((candidate) => nameItem(candidate, range, ':'))];
}

/** Names to offer for a key; none for keys that declare names themselves. */
function keysNamed(
  meaning: PlaceMeaning,
  kind: FileKind,
  { steps }: YamlPlace,
  names: ManifestNames,
): readonly NameCandidate[] {
  const declares = kind === 'manifest' ? steps.length === 1 : ['roles', 'subjects'].includes(steps[0] ?? '');
  if (declares) return [];
  // An entity's columns are named after the columns of its table.
  const [, of = ''] = steps;
  const wanted =
    kind === 'manifest' && steps[2] === 'columns' ? ({ kind: 'table column', of } as const) : meaning;
  return candidatesFor(wanted, names);
}

function valueItems(
  kind: FileKind,
  place: YamlPlace,
  part: JsonSchemaPart | null,
  range: Range,
  names: ManifestNames,
): readonly CompletionItem[] {
  const choices = (part === null ? [] : choicesOf(part)).map(
    (choice): CompletionItem => ({
      label: choice,
      kind: CompletionItemKind.EnumMember,
      textEdit: { range, newText: choice },
    }),
  );
  const meaning = meaningOf(kind, place, 'value');
  const named = meaning === null ? [] : candidatesFor(meaning, names);
  return [...choices, ...named.map((candidate) => nameItem(candidate, range, ''))];
}

function nameItem({ name, detail, description }: NameCandidate, range: Range, after: string): CompletionItem {
  return {
    label: name,
    kind: CompletionItemKind.Reference,
    ...(detail !== null && { detail }),
    ...(description !== null && { documentation: description }),
    textEdit: { range, newText: `${plainScalar(name)}${after}` },
  };
}

/** Formats a name, quoted if YAML would otherwise not read it as text. */
function plainScalar(name: string): string {
  return /^[\p{L}_][\p{L}\p{N}_ .:@/-]*$/u.test(name) && !/: |^(true|false|null|yes|no|on|off)$/i.test(name)
    ? name
    : JSON.stringify(name);
}

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
