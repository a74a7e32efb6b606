import { type CompletionItem, CompletionItemKind, type Range } from 'vscode-languageserver/node';
import {
  candidatesFor,
  choicesOf,
  type FileKind,
  type JsonSchemaPart,
  type Meaning,
  mayBe,
  meaningOf,
  type NameCandidate,
  schemaAt,
} from './meaning.js';
import type { ManifestNames } from './names.js';
import type { YamlPlace } from './yaml/place.js';

/** Maximum length of a list. Editors filter it by what is typed, and ask again if it is marked incomplete. */
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
    .filter(([key]) => key === place.word || !place.beside.has(key))
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
  meaning: Meaning,
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
