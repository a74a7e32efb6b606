import { CODES } from '../codes.js';
import type { Path } from '../diagnostic.js';
import type { ColumnsDocument, ManifestDocument } from '../document.js';
import { isModelName } from '../name.js';
import { membersOf, type Problems } from './scope.js';

/** Refuses what the schema's pattern cannot: names that Postgres would cut off, and those that are not composed. */
export function checkNames(document: ManifestDocument, problems: Problems): void {
  const check = (name: string, path: Path): void => {
    if (isModelName(name)) return;
    const composed = name.normalize('NFC');
    const hint =
      composed === name
        ? 'a name has 63 bytes of UTF-8 at most: give a shorter one, and the upstream one as `column`'
        : `write it composed (NFC): \`${composed}\``;
    problems.add(CODES.badName, path, `\`${name}\` cannot be a name here`, hint, true);
  };
  const columns = (listed: ColumnsDocument | undefined, path: Path): void => {
    for (const [step, name] of namesIn(listed)) check(name, [...path, step]);
  };
  for (const section of ['entities', 'bridges', 'relationships', 'facets', 'metrics'] as const)
    for (const name of Object.keys(document[section] ?? {})) check(name, [section, name]);
  for (const [name, entity] of membersOf(document.entities)) {
    columns(entity.columns, ['entities', name, 'columns']);
    for (const part of ['computed', 'derived'] as const)
      for (const column of Object.keys(entity[part] ?? {})) check(column, ['entities', name, part, column]);
  }
  for (const [name, bridge] of membersOf(document.bridges))
    columns(bridge.columns, ['bridges', name, 'columns']);
  for (const [name, facet] of membersOf(document.facets))
    columns(facet.metadata, ['facets', name, 'metadata']);
}

/** Each name with its step in the path. */
function namesIn(columns: ColumnsDocument | undefined): readonly (readonly [string | number, string])[] {
  if (columns === undefined) return [];
  const isList = (listed: ColumnsDocument): listed is readonly string[] => Array.isArray(listed);
  return isList(columns)
    ? columns.map((name, i) => [i, name] as const)
    : Object.keys(columns).map((name) => [name, name] as const);
}
