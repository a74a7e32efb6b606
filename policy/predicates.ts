import { bindPredicate, type Expr, QueryError, type Relation } from 'osl-compiler';
import type { DocumentPath, ProblemList } from './problems.js';

/** Binds the `rows` predicates of a policy: each text once per relation, however many grants share it. */
export class Predicates {
  readonly #problems: ProblemList;
  readonly #bound = new Map<Relation, Map<string, Expr | QueryError>>();

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
    if (found === undefined) texts.set(text, (found = attempt(text, relation)));
    return found;
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
