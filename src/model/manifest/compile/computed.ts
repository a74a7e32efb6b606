import {
  type Catalog,
  type ComputedColumn,
  computedFacts,
  type Edge,
  QueryError,
  type Relation,
} from 'osl-compiler';
import { checkArguments, InvalidArgument } from '../../facets/arguments.js';
import { CODES, membersOf, type Path, type Problems, type RelationMap } from '../diagnostic.js';
import type { DerivedDocument, ManifestDocument } from '../document.js';
import { type DerivedAttributeSettings, frozenMap } from '../manifest.js';
import { RESERVED } from './relations.js';

/** Maximum number of computed columns of one entity, which bounds the cost of selecting all of them. */
const MOST_COMPUTED = 200;

/**
 * Binds and types the computed columns, so that an invalid expression is reported at load and not by the first query.
 * Requires `ready()` of osl-compiler.
 */
export function withComputed(
  document: ManifestDocument,
  relations: RelationMap,
  edges: readonly Edge[],
  problems: Problems,
): RelationMap {
  const written = writtenIn(document, relations, problems);
  if (written.size === 0) return relations;
  const named = frozenMap(
    [...relations].map(([name, r]) => [name, withColumns(r, written.get(name))] as const),
  );
  const catalog: Catalog = { version: '', relations: named, metrics: new Map(), facets: new Map(), edges };
  return frozenMap(
    [...named].map(([name, relation]) => {
      const computed = relation.computed?.flatMap((column) => bound(column, relation, catalog, problems));
      return [name, withColumns(relation, computed)] as const;
    }),
  );
}

function withColumns(relation: Relation, computed: readonly ComputedColumn[] | undefined): Relation {
  return computed === undefined
    ? relation
    : Object.freeze({ ...relation, computed: Object.freeze(computed) });
}

/** Returns the computed columns as declared; their types and inputs are not known yet. */
function writtenIn(
  document: ManifestDocument,
  relations: RelationMap,
  problems: Problems,
): ReadonlyMap<string, readonly ComputedColumn[]> {
  const out = new Map<string, readonly ComputedColumn[]>();
  for (const [name, entity] of membersOf(document.entities)) {
    const relation = relations.get(name);
    if (relation === undefined || entity.computed === undefined) continue;
    const path: Path = ['entities', name, 'computed'];
    const taken = new Map(relation.columns.map((c) => [c.name.toLowerCase(), `column \`${c.name}\``]));
    const columns = membersOf(entity.computed).map(
      ([column, { expression, description, sensitivity }]): ComputedColumn => {
        mustBeFree(column, taken, [...path, column], problems);
        taken.set(column.toLowerCase(), `\`${column}\``);
        return {
          name: column,
          type: 'text',
          description: description ?? null,
          expression,
          reads: [],
          keys: [],
          sensitivity: sensitivity ?? null,
          labels: [],
        };
      },
    );
    if (columns.length > MOST_COMPUTED) {
      const message = `\`${name}\` has ${columns.length} computed columns, and ${MOST_COMPUTED} is the most`;
      problems.add(CODES.conflict, path, message, null, true);
    } else out.set(name, columns);
  }
  return out;
}

function bound(
  column: ComputedColumn,
  relation: Relation,
  catalog: Catalog,
  problems: Problems,
): readonly ComputedColumn[] {
  try {
    return [Object.freeze({ ...column, ...computedFacts(column.name, relation, catalog) })];
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    const path = ['entities', relation.name, 'computed', column.name, 'expression'];
    problems.add(CODES.badExpression, path, error.message, error.hint);
    return [];
  }
}

/** Returns the derived attributes by entity, in file order. */
export function derivedOf(
  document: ManifestDocument,
  relations: RelationMap,
  problems: Problems,
): ReadonlyMap<string, readonly DerivedAttributeSettings[]> {
  const out = new Map<string, readonly DerivedAttributeSettings[]>();
  for (const [name, e] of membersOf(document.entities)) {
    const relation = relations.get(name);
    if (relation === undefined || e.derived === undefined) continue;
    const taken = new Map(
      [...relation.columns, ...(relation.computed ?? [])].map((c) => [
        c.name.toLowerCase(),
        `column \`${c.name}\``,
      ]),
    );
    const attributes = membersOf(e.derived).map(([attribute, d]) => {
      const path: Path = ['entities', name, 'derived', attribute];
      mustBeFree(attribute, taken, path, problems);
      taken.set(attribute.toLowerCase(), `\`${attribute}\``);
      mustBeAbout(name, d, document, path, problems);
      return attributeOf(attribute, d, path, problems);
    });
    out.set(name, Object.freeze(attributes));
  }
  return out;
}

/** Reports a name that is reserved or that the entity already uses. `taken` maps lower-case names to descriptions. */
function mustBeFree(name: string, taken: ReadonlyMap<string, string>, path: Path, problems: Problems): void {
  const before = taken.get(name.toLowerCase());
  if (before !== undefined)
    problems.add(CODES.duplicateName, path, `\`${name}\` is also the name of ${before}`, null, true);
  if (RESERVED.has(name.toLowerCase()))
    problems.add(CODES.reserved, path, `\`${name}\` has a meaning of its own in OSL-SQL`, null, true);
}

function mustBeAbout(
  entity: string,
  { facet }: DerivedDocument,
  { facets = {} }: ManifestDocument,
  path: Path,
  problems: Problems,
): void {
  const declared = Object.hasOwn(facets, facet) ? facets[facet] : undefined;
  const known = Object.keys(facets).filter((f) => facets[f]?.entity === entity);
  if (declared === undefined) problems.unknown([...path, 'facet'], 'facet', facet, known);
  else if (declared.entity !== entity) {
    const message = `facet \`${facet}\` is about \`${declared.entity}\`, not about \`${entity}\``;
    problems.add(CODES.conflict, [...path, 'facet'], message);
  }
}

function attributeOf(
  name: string,
  d: DerivedDocument,
  path: Path,
  problems: Problems,
): DerivedAttributeSettings {
  const given = { labels: d.labels, min_score: d.min_score, threshold: d.threshold };
  const values = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  try {
    checkArguments(d.operator, values);
  } catch (error) {
    if (!(error instanceof InvalidArgument)) throw error;
    problems.add(CODES.badExpression, path, error.message);
  }
  return Object.freeze({
    name,
    description: d.description ?? null,
    facet: d.facet,
    operator: d.operator,
    arguments: Object.freeze(values),
  });
}
