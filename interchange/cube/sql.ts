import type { Node } from '@pgsql/types';
import type { EntityDraft } from '../draft.js';
import { legalName, safeText } from '../names.js';
import type { Part } from '../part.js';
import type { SourcePlace } from '../source.js';
import {
  markedName,
  markOf,
  NoMapping,
  nameOf,
  parseExpression,
  refuseControlCharacters,
} from '../sql/expression.js';
import { identifier, print } from '../sql/print.js';

/** SQL of a cube after parsing, with its references numbered. */
export interface CubeSql {
  readonly node: Node;
  readonly references: readonly string[];
}

/** Object to which a name in a cube's SQL refers. */
export type CubeReference =
  | { readonly kind: 'column'; readonly cube: string; readonly column: string }
  | { readonly kind: 'member'; readonly cube: string; readonly member: string };

const REFERENCE = /\$?\{\s*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?)\s*\}/g;

/**
 * Parses SQL with references such as `{CUBE}.amount`, `{CUBE.status}`, `{customers.id}` or `{revenue}`. Anything else
 * in braces is rejected.
 *
 * @throws NoMapping
 */
export function parseCubeSql(text: string): CubeSql {
  refuseControlCharacters(text);
  if (/\{[{%#]/.test(text)) throw new NoMapping('it holds a template, which is not evaluated');
  const references: string[] = [];
  const sql = text.replace(REFERENCE, (_, name: string) => {
    references.push(name);
    return markedName(references.length - 1);
  });
  if (/[{}]/.test(sql))
    throw new NoMapping('what stands between its braces is no reference to a cube or a member');
  return { node: parseExpression(sql), references };
}

/** Resolves the name `parts` in the SQL of `cube`. @throws NoMapping */
export function referenceOf(parts: readonly string[], { references }: CubeSql, cube: string): CubeReference {
  const [first = '', second, more] = parts;
  if (more !== undefined) throw new NoMapping(`\`${safeText(parts.join('.'))}\` is no column of a cube`);
  const mark = markOf(first);
  if (mark === null) {
    if (second === undefined) return { kind: 'column', cube, column: first };
    if (first.toLowerCase() !== cube.toLowerCase())
      throw new NoMapping(`\`${safeText(first)}\` is no cube in braces`);
    return { kind: 'column', cube, column: second };
  }
  const [owner = '', member] = (references[mark] ?? '').split('.');
  const named = owner === 'CUBE' ? cube : owner;
  if (member !== undefined) {
    if (second !== undefined) throw new NoMapping('a member has no column');
    return { kind: 'member', cube: named, member };
  }
  if (second !== undefined) return { kind: 'column', cube: named, column: second };
  if (owner === 'CUBE') throw new NoMapping('a cube by itself is no value');
  return { kind: 'member', cube, member: owner };
}

/** The reference if the SQL consists of nothing else; otherwise null. @throws NoMapping */
export function soleReference(sql: CubeSql, cube: string): CubeReference | null {
  const name = nameOf(sql.node);
  return name === null ? null : referenceOf(name, sql, cube);
}

/** A cube converted to an entity, with its members by lower-case name. */
export interface Cube {
  readonly name: string;
  readonly part: Part;
  readonly entity: EntityDraft;
  readonly dimensions: Map<string, Dimension>;
  readonly measures: Map<string, Part>;
}

export interface Dimension {
  readonly name: string;
  readonly part: Part;
  readonly sql: CubeSql | null;
  readonly isPublic: boolean;
  /** The entity's column; null if the dimension is computed or hidden. */
  column: string | null;
}

/** Context of an expression over the rows of a cube's entity. */
export interface CubeScope {
  readonly cube: Cube;
  readonly place: SourcePlace;
  /** Description for messages, such as `measure \`revenue\``. */
  readonly what: string;
  /** Cubes whose rows the expression may refer to, by lower-case name; absent if only its own rows are allowed. */
  readonly others?: ReadonlyMap<string, Cube>;
}

/** SQL for a column of a linked row, named by its entity; the binder checks that there is at most one such row. */
function otherText(reference: CubeReference, { others, place, what }: CubeScope): string {
  const name = safeText(reference.cube);
  if (others === undefined)
    throw new NoMapping(`it needs cube \`${name}\`, and a metric adds up the rows of one`);
  const other = others.get(reference.cube.toLowerCase());
  if (other === undefined) throw new NoMapping(`there is no cube \`${name}\``);
  const of = identifier(other.entity.name);
  if (reference.kind === 'column')
    return `${of}.${identifier(other.entity.expose(reference.column, place, what).name)}`;
  const dimension = other.dimensions.get(reference.member.toLowerCase());
  if (dimension === undefined)
    throw new NoMapping(`\`${safeText(reference.member)}\` is no dimension of \`${name}\``);
  if (dimension.column !== null) return `${of}.${identifier(dimension.column)}`;
  const computed = dimension.isPublic ? legalName(dimension.name) : null;
  if (computed === null)
    throw new NoMapping(`dimension \`${safeText(dimension.name)}\` of \`${name}\` is not exposed`);
  return `${of}.${identifier(computed)}`;
}

/** Expression over the entity's columns. @throws NoMapping for measures, and for values that would need a join */
export function columnSql(sql: CubeSql, scope: CubeScope, within: readonly string[] = []): string {
  return print(sql.node, {
    column: (parts) => columnText(referenceOf(parts, sql, scope.cube.name), scope, within),
  });
}

function columnText(reference: CubeReference, scope: CubeScope, within: readonly string[]): string {
  const { cube, place, what } = scope;
  if (reference.cube.toLowerCase() !== cube.name.toLowerCase()) return otherText(reference, scope);
  if (reference.kind === 'column') return identifier(cube.entity.expose(reference.column, place, what).name);
  const name = reference.member.toLowerCase();
  const dimension = cube.dimensions.get(name);
  if (dimension === undefined)
    throw new NoMapping(`\`${safeText(reference.member)}\` is no dimension of \`${cube.name}\``);
  if (dimension.column !== null) return identifier(dimension.column);
  if (dimension.sql === null) throw new NoMapping(`dimension \`${dimension.name}\` has no SQL`);
  if (within.includes(name)) throw new NoMapping(`dimension \`${dimension.name}\` is made of itself`);
  if (within.length === 20)
    throw new NoMapping(`dimension \`${dimension.name}\` is made of dimensions of dimensions`);
  const text = columnSql(dimension.sql, scope, [...within, name]);
  return nameOf(dimension.sql.node) === null ? `(${text})` : text;
}
