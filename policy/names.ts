import { type Catalog, labelsOf, type MaskKind, type Metric, nearest, type Relation } from 'osl-compiler';
import type { DocumentPath, ProblemList, ProblemName } from './problems.js';
import { MAX_ROLES } from './tokens/token-fault.js';

/** A relation with the names that grants may refer to. */
export interface RelationNames {
  readonly relation: Relation;
  readonly columns: ReadonlySet<string>;
  readonly labels: ReadonlySet<string>;
}

/** Resolves names of a policy document. An unknown name adds a problem. */
export class NameResolver {
  readonly #problems: ProblemList;
  readonly #relations: ReadonlyMap<string, RelationNames>;
  readonly #roles: ReadonlySet<string>;
  readonly #labels: ReadonlySet<string>;
  readonly #metrics: ReadonlyMap<string, Metric>;

  constructor(catalog: Catalog, roles: Iterable<string>, masked: Iterable<string>, problems: ProblemList) {
    this.#problems = problems;
    this.#relations = new Map([...catalog.relations].map(([name, r]) => [name, namesOf(r)]));
    this.#roles = new Set(roles);
    this.#metrics = catalog.metrics;
    this.#labels = new Set([...masked, ...[...this.#relations.values()].flatMap((r) => [...r.labels])]);
  }

  get relations(): ReadonlyMap<string, RelationNames> {
    return this.#relations;
  }

  relation(name: string, path: DocumentPath): RelationNames | null {
    const relation = this.#relations.get(name);
    if (relation !== undefined) return relation;
    this.#unknown('unknownRelation', 'entity, bridge or facet', name, this.#relations.keys(), path);
    return null;
  }

  /** Adds a problem for each name that is not a column of `relation`. */
  columns(names: readonly string[], relation: RelationNames, path: DocumentPath): ReadonlySet<string> {
    for (const [i, name] of names.entries()) {
      if (relation.columns.has(name)) continue;
      this.#unknown('unknownColumn', `column of \`${relation.relation.name}\``, name, relation.columns, [
        ...path,
        i,
      ]);
    }
    return new Set(names);
  }

  labels(names: readonly string[], path: DocumentPath): ReadonlySet<string> {
    for (const [i, name] of names.entries()) {
      if (this.#labels.has(name)) continue;
      this.#unknown('unknownLabel', 'sensitivity label', name, this.#labels, [...path, i]);
    }
    return new Set(names);
  }

  /** Returns the metrics with these names. A name that is not a metric of `relation` adds a problem. */
  metrics(names: readonly string[], relation: RelationNames, path: DocumentPath): readonly Metric[] {
    const metrics = [...this.#metrics.values()].filter((m) => m.entity === relation.relation.name);
    return names.flatMap((name, i) => {
      const metric = metrics.find((m) => m.name === name);
      if (metric !== undefined) return [metric];
      const candidates = metrics.map((m) => m.name);
      this.#unknown('unknownMetric', `metric of \`${relation.relation.name}\``, name, candidates, [
        ...path,
        i,
      ]);
      return [];
    });
  }

  /** Resolves a ceiling, which may have as many roles as a token can claim: by default, a token claims all of them. */
  ceiling(names: readonly string[], path: DocumentPath): ReadonlySet<string> {
    const roles = this.roles(names, path);
    if (roles.size > MAX_ROLES)
      this.#problems.add('ceiling', path, {
        message: `a ceiling has at most ${MAX_ROLES} roles, which is what a token can claim; this has ${roles.size}`,
        hint: 'let one role have the grants of several',
      });
    return roles;
  }

  roles(names: readonly string[], path: DocumentPath): ReadonlySet<string> {
    for (const [i, name] of names.entries()) {
      if (!this.#roles.has(name)) this.#unknown('unknownRole', 'role', name, this.#roles, [...path, i]);
    }
    return new Set(names);
  }

  /** Reports a mask for an unused label as a typo if a label in use has a similar name and no mask. */
  maskedLabels(masks: ReadonlyMap<string, MaskKind>, path: DocumentPath): void {
    const usedLabels = new Set([...this.#relations.values()].flatMap((r) => [...r.labels]));
    const unmasked = [...usedLabels].filter((l) => !masks.has(l));
    for (const label of masks.keys()) {
      if (!usedLabels.has(label) && nearest(label, unmasked) !== null) {
        this.#unknown('unknownLabel', 'sensitivity label', label, unmasked, [...path, label]);
      }
    }
  }

  #unknown(
    problem: ProblemName,
    kind: string,
    name: string,
    candidates: Iterable<string>,
    path: DocumentPath,
  ): void {
    const near = this.#problems.allowsSuggestions ? nearest(name, candidates) : null;
    const hint = near === null ? null : `perhaps you meant \`${near}\``;
    this.#problems.add(problem, path, { message: `there is no ${kind} \`${name}\``, hint });
  }
}

function namesOf(relation: Relation): RelationNames {
  return Object.freeze({
    relation,
    columns: new Set(relation.columns.map((c) => c.name)),
    labels: labelsOf(relation),
  });
}
