import type { Column, Relation, TypeName } from 'osl-compiler';
import { columnOf } from 'osl-compiler';
import { CODES } from '../codes.js';
import type { Path } from '../diagnostic.js';
import type { ManifestDocument, SideDocument } from '../document.js';
import { frozenMap } from '../frozen-map.js';
import type { Bridge, BridgeSide, ColumnName, Relationship } from '../manifest.js';
import { membersOf, type Problems } from './scope.js';

type Relations = ReadonlyMap<string, Relation>;

/** The entity named at `path`, or null after a problem. A bridge is no entity. */
export function entityNamed(
  name: string,
  path: Path,
  relations: Relations,
  problems: Problems,
): Relation | null {
  const relation = relations.get(name);
  if (relation?.kind === 'entity') return relation;
  if (problems.broken.has(name)) return null;
  const entities = [...relations.values()].filter((r) => r.kind === 'entity').map((r) => r.name);
  problems.unknown(path, 'entity', name, entities);
  return null;
}

/** The column named at `path`, or null after a problem. */
export function columnNamed(name: string, path: Path, relation: Relation, problems: Problems): Column | null {
  const column = columnOf(relation, name);
  if (column === null) {
    const known = relation.columns.map((c) => `${relation.name}.${c.name}`);
    problems.unknown(path, 'column', `${relation.name}.${name}`, known);
  }
  return column;
}

export function relationshipsOf(
  document: ManifestDocument,
  relations: Relations,
  problems: Problems,
): ReadonlyMap<string, Relationship> {
  const out: [string, Relationship][] = [];
  for (const [name, r] of membersOf(document.relationships)) {
    const path: Path = ['relationships', name];
    const from = endOf(r.from, [...path, 'from'], relations, problems);
    const to = endOf(r.to, [...path, 'to'], relations, problems);
    if (from === null || to === null) continue;
    mustBeUnique(to, [...path, 'to'], problems);
    if (r.kind === 'one_to_one') mustBeUnique(from, [...path, 'from'], problems);
    mustMatch(from.column, to.column, [...path, 'from'], problems);
    out.push([
      name,
      Object.freeze({
        name,
        description: r.description ?? null,
        from: nameOf(from),
        to: nameOf(to),
        kind: r.kind,
      }),
    ]);
  }
  return frozenMap(out);
}

interface End {
  readonly relation: Relation;
  readonly column: Column;
}

function nameOf(end: End): ColumnName {
  return Object.freeze({ entity: end.relation.name, column: end.column.name });
}

/** One end of a relationship: a sealed column of an entity. */
function endOf(text: string, path: Path, relations: Relations, problems: Problems): End | null {
  const dot = text.indexOf('.');
  const relation = entityNamed(text.slice(0, dot), path, relations, problems);
  if (relation === null) return null;
  const column = columnNamed(text.slice(dot + 1), path, relation, problems);
  if (column === null) return null;
  if (!relation.sealedKeys.includes(column.name)) {
    const hint = `add \`${column.name}\` to entity_key_columns of \`${relation.name}\``;
    problems.add(CODES.notSealed, path, `\`${text}\` is not a sealed key, so nothing may join on it`, hint);
  }
  return { relation, column };
}

/** A link to a column that is not unique would multiply rows and inflate sums. */
function mustBeUnique(end: End, path: Path, problems: Problems): void {
  const { primaryKey, name } = end.relation;
  if (primaryKey.length === 1 && primaryKey[0] === end.column.name) return;
  const hint = `the primary key of \`${name}\` is ${primaryKey.join(', ')}`;
  problems.add(CODES.notUnique, path, `\`${name}.${end.column.name}\` is not unique`, hint);
}

export function bridgesOf(
  document: ManifestDocument,
  relations: Relations,
  problems: Problems,
): ReadonlyMap<string, Bridge> {
  const out: [string, Bridge][] = [];
  for (const [name, b] of membersOf(document.bridges)) {
    const bridge = relations.get(name);
    if (bridge?.kind !== 'bridge') continue;
    const left = sideOf(b.left, ['bridges', name, 'left'], bridge, relations, problems);
    const right = sideOf(b.right, ['bridges', name, 'right'], bridge, relations, problems);
    if (left !== null && right !== null) out.push([name, Object.freeze({ name, left, right })]);
  }
  return frozenMap(out);
}

function sideOf(
  side: SideDocument,
  path: Path,
  bridge: Relation,
  relations: Relations,
  problems: Problems,
): BridgeSide | null {
  const entity = entityNamed(side.entity, [...path, 'entity'], relations, problems);
  if (entity === null) return null;
  const keys = entity.primaryKey;
  if (keys.length !== side.columns.length) {
    const message = `the primary key of \`${entity.name}\` is (${keys.join(', ')}), ${side.columns.length} columns are given`;
    problems.add(
      CODES.keyNotColumn,
      [...path, 'columns'],
      message,
      'give one column for each of the key',
      true,
    );
    return null;
  }
  for (const [i, name] of side.columns.entries()) {
    const column = columnOf(bridge, name);
    const key = columnOf(entity, keys[i] ?? '');
    // An absent one is reported already, by its own relation.
    if (column !== null && key !== null) mustMatch(column, key, [...path, 'columns', i], problems);
  }
  return Object.freeze({ entity: entity.name, columns: Object.freeze([...side.columns]), keys });
}

const INTEGERS: ReadonlySet<TypeName> = new Set<TypeName>(['int2', 'int4', 'int8']);

/** Linked columns must compare without a cast. */
export function mustMatch(column: Column, key: Column, path: Path, problems: Problems): void {
  if (column.type === key.type || (INTEGERS.has(column.type) && INTEGERS.has(key.type))) return;
  const message = `\`${column.name}\` is ${column.type}, but \`${key.name}\` is ${key.type}`;
  problems.add(CODES.typeMismatch, path, message, 'both ends of a link have one type');
}
