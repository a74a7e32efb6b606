import type { Relation } from 'osl-compiler';
import { CODES, type Path } from '../diagnostic.js';
import type { ManifestDocument } from '../document.js';
import { type Connector, frozenMap } from '../manifest.js';
import { tableName } from '../name.js';
import { sourceOf, type TableSource } from './connectors.js';
import type { Problems, RelationMap } from './problems.js';

/**
 * Allowlist for raw SQL: tables by `schema.table`, each with the one entity or bridge that governs it. A table without
 * one would have no policy; with several, it would be ambiguous which policy applies.
 */
export function rawTablesOf(
  document: ManifestDocument,
  connectors: ReadonlyMap<string, Connector>,
  relations: RelationMap,
  problems: Problems,
): RelationMap {
  const tables = new Map<string, Relation>();
  const sources = new Map<string, string>();
  for (const [i, entry] of (document.raw_sql?.allow ?? []).entries()) {
    const path: Path = ['raw_sql', 'allow', i];
    const source = sourceOf(entry, path, connectors, problems);
    if (source === null) continue;
    const name = `${source.table.schema}.${source.table.table}`;
    const before = sources.get(name);
    if (before !== undefined) {
      const hint =
        before === source.connector ? null : `it is one of \`${before}\` and one of \`${source.connector}\``;
      problems.add(CODES.duplicateName, path, `table \`${name}\` is allowed twice`, hint);
      continue;
    }
    sources.set(name, source.connector);
    if (source.table.schema === ENTITIES) {
      const hint = 'in OSL-SQL it is where entities stand';
      problems.add(
        CODES.reserved,
        path,
        `a table of schema \`${ENTITIES}\` cannot be named in raw SQL`,
        hint,
      );
    }
    if (tableName(source.table) !== name)
      problems.add(
        CODES.conflict,
        path,
        `raw SQL cannot name \`${name}\`, which has a dot in its name`,
        null,
      );
    const governing = governorOf(source, name, path, relations, problems);
    if (governing !== null) tables.set(name, governing);
  }
  return frozenMap(tables);
}

/** The middle part of an entity's name in queries, `osl.entities.<name>`. */
const ENTITIES = 'entities';

function governorOf(
  { connector, table }: TableSource,
  name: string,
  path: Path,
  relations: RelationMap,
  problems: Problems,
): Relation | null {
  const [only, ...others] = [...relations.values()].filter(
    (r) => r.connector === connector && r.schema === table.schema && r.table === table.table,
  );
  if (only === undefined) {
    // The table's entity may be among those that could not be compiled.
    if (problems.broken.size === 0) {
      const hint = 'declare an entity of it: its grants are those of the entity';
      problems.add(CODES.notGoverned, path, `no entity governs table \`${name}\``, hint);
    }
    return null;
  }
  if (others.length > 0) {
    const names = [only, ...others].map((r) => `\`${r.name}\``).join(', ');
    const hint = `it must be the source of one entity or bridge, not of ${names}`;
    problems.add(CODES.conflict, path, `table \`${name}\` is governed ${others.length + 1} times`, hint);
    return null;
  }
  mustNameColumnsOnce(only, name, path, problems);
  return only;
}

/** Grants use the entity's column names, so no column of the table may be exposed twice. */
function mustNameColumnsOnce(relation: Relation, table: string, path: Path, problems: Problems): void {
  const names = new Map<string, string>();
  for (const { name, physical } of relation.columns) {
    const before = names.get(physical);
    names.set(physical, name);
    if (before === undefined) continue;
    const hint = `\`${before}\` and \`${name}\` of \`${relation.name}\` both are it`;
    problems.add(CODES.conflict, path, `column \`${physical}\` of \`${table}\` is exposed twice`, hint);
  }
}
