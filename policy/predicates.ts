import { bindPredicate, type Expr, QueryError, type Relation } from 'osl-compiler';
import type { DocumentPath, ProblemList } from './problems.js';

/**
 * Binds the `rows` predicates of a policy: each text once for all relations with the same columns, however many
 * grants share it.
 */
export class Predicates {
  readonly #problems: ProblemList;
  readonly #bound = new Map<Relation, Map<string, Expr | QueryError>>();
  /** By what the columns of a relation are, then by text. */
  readonly #alike = new Map<string, Map<string, Expr>>();
  readonly #likeness = new Map<Relation, Map<string, Expr>>();

  constructor(problems: ProblemList) {
    this.#problems = problems;
  }

  /** The predicate, not yet tied to a chain; null, and a problem, where it is wrong. */
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
    // Behind a dot, or in a message, the relation's own name counts.
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
