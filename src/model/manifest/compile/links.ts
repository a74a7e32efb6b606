import { type Column, columnOf, type Edge, isInteger, type Relation } from 'osl-compiler';
import { CODES, membersOf, type Path, type Problems, type RelationMap } from '../diagnostic.js';
import type { EndDocument, ManifestDocument, SideDocument } from '../document.js';
import { type Bridge, type BridgeSide, frozenMap, type LinkEnd, type Relationship } from '../manifest.js';

/** Returns the entity named at `path`; reports an unknown one and returns null. A bridge is not an entity. */
export function entityNamed(
  name: string,
  path: Path,
  relations: RelationMap,
  problems: Problems,
): Relation | null {
  const relation = relations.get(name);
  if (relation?.kind === 'entity') return relation;
  if (problems.broken.has(name)) return null;
  const entities = [...relations.values()].filter((r) => r.kind === 'entity').map((r) => r.name);
  problems.unknown(path, 'entity', name, entities);
  return null;
}

/** Returns the column named at `path`. If there is no such column, reports that and returns null. */
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
  relations: RelationMap,
  problems: Problems,
): ReadonlyMap<string, Relationship> {
  const out: [string, Relationship][] = [];
  for (const [name, r] of membersOf(document.relationships)) {
    const path: Path = ['relationships', name];
    const from = endOf(r.from, [...path, 'from'], relations, problems);
    const to = endOf(r.to, [...path, 'to'], relations, problems);
    if (from === null || to === null) continue;
    if (!mustPair(from, to, [...path, 'from'], problems)) continue;
    mustBeUnique(to, [...path, 'to'], problems);
    if (r.kind === 'one_to_one') mustBeUnique(from, [...path, 'from'], problems);
    for (const [i, column] of from.columns.entries()) {
      const other = to.columns[i];
      if (other !== undefined) mustMatch(column, other, from.places[i] ?? path, problems);
    }
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

interface ResolvedLinkEnd {
  readonly relation: Relation;
  readonly columns: readonly Column[];
  readonly places: readonly Path[];
}

function nameOf({ relation, columns }: ResolvedLinkEnd): LinkEnd {
  return Object.freeze({ entity: relation.name, columns: Object.freeze(columns.map((c) => c.name)) });
}

function endOf(
  end: EndDocument,
  path: Path,
  relations: RelationMap,
  problems: Problems,
): ResolvedLinkEnd | null {
  const texts = typeof end === 'string' ? [end] : end;
  const places = texts.map((_, i): Path => (typeof end === 'string' ? path : [...path, i]));
  const entityOf = (text: string): string => text.slice(0, text.indexOf('.'));
  const [first = ''] = texts;
  const relation = entityNamed(entityOf(first), places[0] ?? path, relations, problems);
  if (relation === null) return null;
  const columns: Column[] = [];
  for (const [i, text] of texts.entries()) {
    const place = places[i] ?? path;
    if (entityOf(text) !== relation.name) {
      const message = `\`${text}\` is not a column of \`${relation.name}\``;
      problems.add(CODES.keyNotColumn, place, message, 'one end of a link is columns of one entity');
      return null;
    }
    const column = columnNamed(text.slice(text.indexOf('.') + 1), place, relation, problems);
    if (column === null) return null;
    if (!relation.sealedKeys.includes(column.name)) {
      const hint = `add \`${column.name}\` to entity_key_columns of \`${relation.name}\``;
      problems.add(
        CODES.notSealed,
        place,
        `\`${text}\` is not a sealed key, so nothing may join on it`,
        hint,
      );
    }
    columns.push(column);
  }
  return { relation, columns, places };
}

function mustPair(from: ResolvedLinkEnd, to: ResolvedLinkEnd, path: Path, problems: Problems): boolean {
  if (from.columns.length === to.columns.length) return true;
  const message = `\`from\` has ${counted(from)} and \`to\` ${counted(to)}`;
  problems.add(CODES.keyNotColumn, path, message, 'give one column of `from` for each of `to`, in its order');
  return false;
}

function counted({ columns }: ResolvedLinkEnd): string {
  return columns.length === 1 ? 'one column' : `${columns.length} columns`;
}

/** Reports an end of a link that is not a primary key: it could match several rows, which would inflate sums. */
function mustBeUnique(end: ResolvedLinkEnd, path: Path, problems: Problems): void {
  const { primaryKey, name } = end.relation;
  const columns = end.columns.map((c) => c.name);
  if (primaryKey.length === columns.length && primaryKey.every((k) => columns.includes(k))) return;
  const hint =
    primaryKey.length === 0
      ? `\`${name}\` has no primary key`
      : `the primary key of \`${name}\` is ${primaryKey.join(', ')}`;
  const named = columns.map((c) => `\`${name}.${c}\``).join(', ');
  problems.add(CODES.notUnique, path, `${named} ${columns.length === 1 ? 'is' : 'are'} not unique`, hint);
}

export function bridgesOf(
  document: ManifestDocument,
  relations: RelationMap,
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
  relations: RelationMap,
  problems: Problems,
): BridgeSide | null {
  const entity = entityNamed(side.entity, [...path, 'entity'], relations, problems);
  if (entity === null) return null;
  const keys = entity.primaryKey;
  if (keys.length === 0 || keys.length !== side.columns.length) {
    const message =
      keys.length === 0
        ? `\`${entity.name}\` has no primary key, which a bridge would hold`
        : `the primary key of \`${entity.name}\` is (${keys.join(', ')}), ${side.columns.length} columns are given`;
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
    // A missing column has already been reported along with its relation.
    if (column !== null && key !== null) mustMatch(column, key, [...path, 'columns', i], problems);
  }
  return Object.freeze({ entity: entity.name, columns: Object.freeze([...side.columns]), keys });
}

/** Linked columns must be comparable without a cast. */
export function mustMatch(column: Column, key: Column, path: Path, problems: Problems): void {
  if (column.type === key.type || (isInteger(column.type) && isInteger(key.type))) return;
  const message = `\`${column.name}\` is ${column.type}, but \`${key.name}\` is ${key.type}`;
  problems.add(CODES.typeMismatch, path, message, 'both ends of a link have one type');
}

/** Converts relationships and bridges to edges for TRAVERSE. */
export function edgesOf(
  relationships: ReadonlyMap<string, Relationship>,
  bridges: ReadonlyMap<string, Bridge>,
): readonly Edge[] {
  const straight = [...relationships.values()].map(
    (r): Edge =>
      Object.freeze({
        name: r.name,
        from: r.from.entity,
        to: r.to.entity,
        fromColumns: r.from.columns,
        toColumns: r.to.columns,
        bridge: null,
      }),
  );
  const bridged = [...bridges.values()].map(
    (b): Edge =>
      Object.freeze({
        name: b.name,
        from: b.left.entity,
        to: b.right.entity,
        fromColumns: b.left.keys,
        toColumns: b.right.keys,
        bridge: Object.freeze({ name: b.name, fromColumns: b.left.columns, toColumns: b.right.columns }),
      }),
  );
  return Object.freeze([...straight, ...bridged]);
}
