import { bindPredicate, type Expr, QueryError, type Relation } from 'osl-compiler';
import type { DocumentPath, ProblemList } from './problems.js';

/** Binds `rows` predicates; each text is bound once for all relations with the same columns. */
export class PredicateBinder {
  readonly #problems: ProblemList;
  readonly #bound = new Map<Relation, Map<string, Expr | QueryError>>();
  /** Bound predicates by column signature, then by text. */
  readonly #alike = new Map<string, Map<string, Expr>>();
  readonly #likeness = new Map<Relation, Map<string, Expr>>();

  constructor(problems: ProblemList) {
    this.#problems = problems;
  }

  /** Returns the predicate, not yet bound to a chain; null, and a problem, if it is invalid. */
  bind(text: string, relation: Relation, path: DocumentPath): Expr | null {
    const found = this.#lookUp(text, relation);
    if (!(found instanceof QueryError)) return found;
    this.#problems.add('predicate', path, {
      message: found.message,
      hint: found.hint,
      offset: found.position?.offset ?? null,
    });
    return null;
  }

  #lookUp(text: string, relation: Relation): Expr | QueryError {
    let texts = this.#bound.get(relation);
    if (texts === undefined) this.#bound.set(relation, (texts = new Map()));
    let found = texts.get(text);
    if (found === undefined) texts.set(text, (found = this.#bind(text, relation)));
    return found;
  }

  #bind(text: string, relation: Relation): Expr | QueryError {
    // A qualified name depends on the name of the relation, so the predicate is not shared.
    const alike = text.includes('.') ? null : this.#like(relation);
    const known = alike?.get(text);
    if (known !== undefined) return known;
    const found = attempt(text, relation);
    if (!(found instanceof QueryError)) alike?.set(text, found);
    return found;
  }

  #like(relation: Relation): Map<string, Expr> {
    let texts = this.#likeness.get(relation);
    if (texts === undefined) {
      const columns = JSON.stringify([
        relation.columns.map((c) => [c.name, c.physical, c.type, c.stored, c.labels, c.form]),
        relation.computed?.map((c) => [c.name, c.expression]),
      ]);
      texts = this.#alike.get(columns) ?? new Map();
      this.#alike.set(columns, texts);
      this.#likeness.set(relation, texts);
    }
    return texts;
  }
}

function attempt(text: string, relation: Relation): Expr | QueryError {
  try {
    return bindPredicate(text, relation);
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
}
