import { type Access, forChain, isArray, isComparable, labelsOf, type TypeName } from 'osl-compiler';
import { attributesOf, type TableAttribute } from './attributes.js';
import type { TableAttributeDocument } from './document.js';
import type { NameResolver, RelationNames } from './names.js';
import type { DocumentPath, ProblemList } from './problems.js';
import type { PredicateBinder } from './role.js';
import type { PolicySnapshot, SubjectPolicy } from './snapshot.js';

interface CompileContext {
  readonly names: NameResolver;
  readonly predicates: PredicateBinder;
  readonly problems: ProblemList;
}

/** Compiles the attributes that are read from entities. Each one comes after those that its filter names. */
export function compileTableAttributes(
  documents: Readonly<Record<string, TableAttributeDocument>>,
  context: CompileContext,
): ReadonlyMap<string, TableAttribute> {
  const compiled = new Map<string, TableAttribute>();
  for (const [name, document] of Object.entries(documents)) {
    const attribute = compileTableAttribute(name, document, context);
    if (attribute !== null) compiled.set(name, attribute);
  }
  return sortByNeeds(compiled, context.problems);
}

function compileTableAttribute(
  name: string,
  { on, column, rows, max_age }: TableAttributeDocument,
  { names, predicates, problems }: CompileContext,
): TableAttribute | null {
  const path = ['attributes', name];
  const target = names.relation(on, [...path, 'on']);
  if (target === null) return null;
  const { relation } = target;
  if (relation.kind !== 'entity') {
    const hint = 'declare the table as an entity';
    problems.add('attribute', [...path, 'on'], { message: `\`${on}\` is not an entity`, hint });
    return null;
  }
  const type =
    column === undefined ? 'bool' : typeOf(column, target, [...path, 'column'], { names, problems });
  if (type === null) return null;
  const filter = predicates.bind(rows, relation, [...path, 'rows']);
  if (filter === null) return null;
  const needs = attributesOf(filter);
  return Object.freeze({
    name,
    relation,
    column: column ?? null,
    type,
    filter,
    needs,
    maxAgeMs: 1_000 * (max_age ?? 0),
  });
}

/** Returns the type of the column's values. If they cannot be compared by `=`, adds a problem and returns null. */
function typeOf(
  column: string,
  relation: RelationNames,
  path: DocumentPath,
  { names, problems }: Pick<CompileContext, 'names' | 'problems'>,
): TypeName | null {
  const type = relation.relation.columns.find((c) => c.name === column)?.type;
  if (type !== undefined && !isArray(type) && isComparable(type)) return type;
  if (type !== undefined)
    problems.add('attribute', path, { message: `values of ${type} are not compared by =` });
  else if (relation.columns.has(column))
    problems.add('attribute', path, { message: `\`${column}\` is not a column of the table` });
  else names.columns([column], relation, path);
  return null;
}

/** Sorts attributes so that each follows those that it needs. Reports a problem if there is a cycle. */
function sortByNeeds(
  all: ReadonlyMap<string, TableAttribute>,
  problems: ProblemList,
): ReadonlyMap<string, TableAttribute> {
  const ordered = new Map<string, TableAttribute>();
  const visiting = new Set<string>();
  const visit = (attribute: TableAttribute): void => {
    if (ordered.has(attribute.name)) return;
    if (visiting.has(attribute.name)) {
      problems.add('attribute', ['attributes', attribute.name, 'rows'], {
        message: `\`${attribute.name}\` needs itself`,
        hint: 'a hierarchy needs a table of all ancestors and descendants',
      });
      return;
    }
    visiting.add(attribute.name);
    for (const name of attribute.needs) {
      const needed = all.get(name);
      if (needed !== undefined) visit(needed);
    }
    visiting.delete(attribute.name);
    ordered.set(attribute.name, attribute);
  };
  for (const attribute of all.values()) visit(attribute);
  return ordered;
}

type TableAttributesOf = Pick<PolicySnapshot, 'tableAttributes'>;

/** Returns `names` with all attributes that are needed, directly or indirectly, to read them from entities. */
function withNeeded(names: ReadonlySet<string>, { tableAttributes }: TableAttributesOf): ReadonlySet<string> {
  const result = new Set<string>();
  const add = (name: string): void => {
    if (result.has(name)) return;
    result.add(name);
    for (const needed of tableAttributes.get(name)?.needs ?? []) add(needed);
  };
  for (const name of names) add(name);
  return result;
}

/** The attributes that must be read from entities for filters that name `names`, in the order of reading. */
export function attributesToRead(
  names: ReadonlySet<string>,
  snapshot: TableAttributesOf,
): readonly TableAttribute[] {
  const needed = withNeeded(names, snapshot);
  return [...snapshot.tableAttributes.values()].filter(({ name }) => needed.has(name));
}

/** Returns the attributes that the policy or the token must state for filters that name `names`. */
export function statedAttributes(names: ReadonlySet<string>, snapshot: TableAttributesOf): readonly string[] {
  return [...withNeeded(names, snapshot)].filter((name) => !snapshot.tableAttributes.has(name));
}

/**
 * Returns the access with which the gateway reads an attribute of one subject: one column (or the key), unmasked, of
 * the rows that the attribute's filter selects for this subject. No caller ever gets this access.
 */
export function accessForReading(
  { name, relation, column, filter }: TableAttribute,
  { pattern }: Pick<SubjectPolicy, 'pattern'>,
  { version, masks }: Pick<PolicySnapshot, 'version' | 'masks'>,
): Access {
  const grant = {
    id: `attribute ${name}`,
    columns: new Set(column === null ? relation.primaryKey : [column]),
    unmask: labelsOf(relation),
    filter: forChain(filter, [pattern]),
  };
  const rights = {
    grants: Object.freeze([Object.freeze(grant)]),
    masks: masks.get(relation.name) ?? new Map(),
    denied: new Set<string>(),
  };
  return Object.freeze({
    signature: `attribute ${name} ${version} ${JSON.stringify([...pattern])}`,
    policyVersion: version,
    chainLength: 1,
    relations: new Map([[relation.name, Object.freeze(rights)]]),
  });
}
