import { createHash } from 'node:crypto';
import { bindPredicate, type Catalog, type Expr, QueryError, type Relation, versionFor } from 'osl-compiler';
import { compileConditions } from './compile-conditions.js';
import type { GrantDocument, RoleDocument } from './document.js';
import { compileGroups } from './groups.js';
import type { NameResolver } from './names.js';
import type { DocumentPath, ProblemList } from './problems.js';
import type { DeniedColumns, PolicyGrant, RolePolicy } from './snapshot.js';

export interface RoleContext {
  readonly names: NameResolver;
  readonly catalog: Catalog;
  readonly predicates: PredicateBinder;
  readonly problems: ProblemList;
  /** By relation: the column that identifies a data subject, if it is not the primary key. */
  readonly units: ReadonlyMap<string, string>;
  readonly purposes: ReadonlySet<string>;
  /** A secret that prevents tracing grant ids back to role names. */
  readonly idKey: string;
}

/** Compiles a role in steps of `GRANTS_PER_STEP` grants, so that other requests can be served in between. */
export function* compileRoleInSteps(
  name: string,
  document: RoleDocument,
  context: RoleContext,
): Generator<void, RolePolicy> {
  const grants = new Map<string, PolicyGrant[]>();
  const base = opaqueId(name, context.idKey);
  for (const [i, grant] of document.grants.entries()) {
    const compiled = compileGrant(`${base}.${i}`, grant, ['roles', name, 'grants', i], context);
    const list = grants.get(grant.on);
    if (compiled === null) continue;
    if (list === undefined) grants.set(grant.on, [compiled]);
    else list.push(compiled);
    if (i % GRANTS_PER_STEP === GRANTS_PER_STEP - 1) yield;
  }
  yield;
  for (const list of grants.values()) Object.freeze(list);
  requireVersions(name, grants, context);
  const all = [...grants.values()].flat().flatMap(({ conditions }) => conditions ?? []);
  return Object.freeze({
    grants,
    conditions: new Map(all.map((c) => [c.key, c])),
    denied: compileDenied(name, document, context),
    maxCost: document.max_cost ?? null,
  });
}

/** Reports facets of which the role may not read any version. */
function requireVersions(
  role: string,
  grants: ReadonlyMap<string, readonly PolicyGrant[]>,
  { catalog, problems }: RoleContext,
): void {
  for (const [relation, roleGrants] of grants) {
    const facet = catalog.facets.get(relation);
    if (facet === undefined || versionFor(facet, { grants: roleGrants }) !== null) continue;
    const labels = [...new Set(facet.versions.flatMap((v) => [...v.redacts]))].sort();
    problems.add('facetVersion', ['roles', role], {
      message: `no version of facet \`${relation}\` leaves out all that the role may not read in it`,
      hint: `unmask more, or declare a version that redacts ${labels.join(' and ')}`,
    });
  }
}

const GRANTS_PER_STEP = 32;

function compileGrant(
  id: string,
  grant: GrantDocument,
  path: DocumentPath,
  context: RoleContext,
): PolicyGrant | null {
  const { names, predicates, problems } = context;
  const target = names.relation(grant.on, [...path, 'on']);
  if (target === null) return null;
  if (grant.columns.length === 0 && grant.metrics === undefined) {
    problems.add('noColumns', [...path, 'columns'], {
      message: 'the grant names no column',
      hint: 'all: `*`',
    });
  }
  const columnPath = [...path, 'columns'];
  const columns = grant.columns === '*' ? target.columns : names.columns(grant.columns, target, columnPath);
  const unmask = names.labels(grant.unmask ?? [], [...path, 'unmask']);
  const groups = compileGroups(grant, target, path, context);
  if (grant.decode === true && target.relation.kind !== 'facet') {
    problems.add('decode', [...path, 'decode'], {
      message: `\`${grant.on}\` is not a facet, so it has no passages`,
      hint: 'leave `decode` out',
    });
  }
  const conditions = compileConditions(grant, path, context);
  const plain = { id, columns, unmask, conditions, ...(groups !== null && { groups }) };
  const shape = grant.decode === true ? { ...plain, decode: true } : plain;
  if (grant.rows === undefined) return Object.freeze({ ...shape, filter: null });
  const filter = predicates.bind(grant.rows, target.relation, [...path, 'rows']);
  // INVARIANT: a filter that does not bind never becomes "every row"; the whole policy is rejected as well.
  return filter === null ? null : Object.freeze({ ...shape, filter });
}

function compileDenied(
  role: string,
  document: RoleDocument,
  { names, problems }: RoleContext,
): ReadonlyMap<string, DeniedColumns> {
  const denied = new Map<string, DeniedColumns>();
  for (const [i, rule] of (document.deny ?? []).entries()) {
    const path: DocumentPath = ['roles', role, 'deny', i];
    const target = names.relation(rule.on, [...path, 'on']);
    if (target === null) continue;
    if (rule.columns?.length === 0) {
      const hint = 'leave `columns` out to deny all of it';
      problems.add('noColumns', [...path, 'columns'], { message: 'the rule names no column', hint });
    }
    const columns =
      rule.columns === undefined ? 'all' : names.columns(rule.columns, target, [...path, 'columns']);
    denied.set(rule.on, joinDenied(denied.get(rule.on), columns));
  }
  return denied;
}

export function joinDenied(a: DeniedColumns | undefined, b: DeniedColumns): DeniedColumns {
  if (a === undefined) return b;
  return a === 'all' || b === 'all' ? 'all' : new Set([...a, ...b]);
}

function opaqueId(role: string, key: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([key, role]))
    .digest('hex');
  return `g${digest.slice(0, 12)}`;
}

/** Binds `rows` predicates; each text is bound once for all relations with the same columns. */
export class PredicateBinder {
  readonly #problems: ProblemList;
  readonly #bound = new Map<Relation, Map<string, Expr | QueryError>>();
  /** Bound predicates by column signature, then by text. */
  readonly #byColumns = new Map<string, Map<string, Expr>>();
  readonly #sharedTexts = new Map<Relation, Map<string, Expr>>();

  constructor(problems: ProblemList) {
    this.#problems = problems;
  }

  /** Returns the predicate, not yet bound to a chain. If the predicate is invalid, adds a problem and returns null. */
  bind(text: string, relation: Relation, path: DocumentPath): Expr | null {
    const bound = this.#lookUp(text, relation);
    if (!(bound instanceof QueryError)) return bound;
    this.#problems.add('predicate', path, {
      message: bound.message,
      hint: bound.hint,
      offset: bound.position?.offset ?? null,
    });
    return null;
  }

  #lookUp(text: string, relation: Relation): Expr | QueryError {
    let texts = this.#bound.get(relation);
    if (texts === undefined) this.#bound.set(relation, (texts = new Map()));
    let bound = texts.get(text);
    if (bound === undefined) texts.set(text, (bound = this.#bind(text, relation)));
    return bound;
  }

  #bind(text: string, relation: Relation): Expr | QueryError {
    // A qualified name depends on the name of the relation, so the predicate is not shared.
    const shared = text.includes('.') ? null : this.#sharedBy(relation);
    const cached = shared?.get(text);
    if (cached !== undefined) return cached;
    const bound = tryBind(text, relation);
    if (!(bound instanceof QueryError)) shared?.set(text, bound);
    return bound;
  }

  #sharedBy(relation: Relation): Map<string, Expr> {
    let texts = this.#sharedTexts.get(relation);
    if (texts === undefined) {
      const columns = JSON.stringify([
        relation.columns.map((c) => [c.name, c.physical, c.type, c.stored, c.labels, c.form]),
        relation.computed?.map((c) => [c.name, c.expression]),
      ]);
      texts = this.#byColumns.get(columns) ?? new Map();
      this.#byColumns.set(columns, texts);
      this.#sharedTexts.set(relation, texts);
    }
    return texts;
  }
}

function tryBind(text: string, relation: Relation): Expr | QueryError {
  try {
    return bindPredicate(text, relation);
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
}
