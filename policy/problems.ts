/** The keys and indices from the root of the policy document to the faulty value. */
export type DocumentPath = readonly (string | number)[];

export interface PolicyProblem {
  readonly path: DocumentPath;
  /** A stable code; see `PROBLEM_CODES`. */
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  /** Offset of the fault in a predicate's text, in UTF-16 code units; null if the whole value is at fault. */
  readonly offset: number | null;
}

/** The codes of problems that the schema cannot detect. Retired codes are never reused. */
const PROBLEM_CODES = Object.freeze({
  unknownRole: 'P0101',
  unknownRelation: 'P0102',
  unknownColumn: 'P0103',
  unknownLabel: 'P0104',
  predicate: 'P0105',
  noColumns: 'P0106',
  limit: 'P0107',
  name: 'P0108',
  mask: 'P0109',
  attribute: 'P0110',
  groups: 'P0111',
  unknownMetric: 'P0112',
  serviceAccount: 'P0113',
  decode: 'P0114',
  tenant: 'P0115',
  facetVersion: 'P0116',
  condition: 'P0117',
  certificate: 'P0118',
  exchange: 'P0121',
  ceiling: 'P0122',
});

export type ProblemName = keyof typeof PROBLEM_CODES;

/** All problems of a policy, in the order in which they were found. A policy with problems is not used at all. */
export class PolicyProblems extends Error {
  readonly problems: readonly PolicyProblem[];

  constructor(problems: readonly PolicyProblem[]) {
    super(problems.map((p) => `${p.path.join('.')}: ${p.code} ${p.message}`).join('\n'));
    this.name = 'PolicyProblems';
    this.problems = problems;
  }
}

export interface Fault {
  readonly message: string;
  readonly hint?: string | null;
  readonly offset?: number | null;
}

/** Collects problems so that they can be thrown together. */
export class ProblemList {
  readonly #problems: PolicyProblem[] = [];

  add(name: ProblemName, path: DocumentPath, fault: Fault): void {
    this.#problems.push(
      Object.freeze({
        path: Object.freeze([...path]),
        code: PROBLEM_CODES[name],
        message: fault.message,
        hint: fault.hint ?? null,
        offset: fault.offset ?? null,
      }),
    );
  }

  /**
   * True while there are fewer than 100 problems. Only the first 100 get a suggestion, since finding one is a pass
   * over all names.
   */
  get allowsSuggestions(): boolean {
    return this.#problems.length < 100;
  }

  throwIfAny(): void {
    if (this.#problems.length > 0) throw new PolicyProblems(Object.freeze([...this.#problems]));
  }
}
