import type { Access } from '../access/access.js';
import type { Catalog, FacetStore, Joins, MetricFormat } from '../catalog/catalog.js';
import { InternalError, type Position } from '../errors/errors.js';
import type { Form, Query, Slot } from '../plan/plan.js';
import type { Hydration, OperatedRows, Retrieval, Traversal } from '../plan/runtime.js';
import type { ColumnForm } from '../types/column-form.js';
import type { TypeName } from '../types/types.js';
import type { UnusedRollup } from './rollup/rollup.js';
import { verifyRollup } from './verify/rollup.js';
import { verify } from './verify/verify.js';

/** One column of the result. */
export interface OutputColumn {
  readonly name: string;
  readonly type: TypeName;
  /** Database type, such as `varchar(20)`, if it is the same in all rows and no value is masked; otherwise null. */
  readonly form: ColumnForm | null;
  /** `osl.entities.<entity>.<column>` if the value is passed through, otherwise null. */
  readonly source: string | null;
  /** True if policy masks the column's value in some or all rows. */
  readonly redacted: boolean;
  /**
   * Columns of runtime relations that contribute to the value and may be redacted too; each row states whether they
   * are.
   */
  readonly redactable: readonly RedactableColumn[];
  /** True if the column is the entity key of a passage. */
  readonly passageKey: boolean;
  /** The display format, if the column is a metric that declares one. */
  readonly format: MetricFormat | null;
}

/** A column of passages that may have been redacted by the served version, or in some passages by policy. */
export interface RedactableColumn {
  /** The index of the relation in the plan's `runtime`. */
  readonly runtime: number;
  readonly column: string;
}

/** True if a column may contain redacted values, even if that depends on the row. */
export function mayBeRedacted({ redacted, redactable }: OutputColumn): boolean {
  return redacted || redactable.length > 0;
}

export interface GovernedPlanFields {
  readonly form: Form;
  readonly query: Query;
  /** Relations to compute before `query` runs, in order. */
  readonly runtime: readonly GovernedRuntime[];
  readonly slots: readonly Slot[];
  /** The type OIDs of the caller's `$1 … $n`. */
  readonly clientOids: readonly number[];
  readonly outputs: readonly OutputColumn[];
  /** The objects used, as `osl.entities.<name>`, `osl.facets.<name>` and `osl.metrics.<name>`, sorted. */
  readonly objects: readonly string[];
  /** `<entity>.<column>` of every masked column in the outputs, sorted. */
  readonly redactedColumns: readonly string[];
  /** `<entity>.<column>` of every masked column that the query reads, sorted. */
  readonly maskedColumns: readonly string[];
  /** Passage fields in the outputs; null means all fields, because the outputs include the list of redacted fields. */
  readonly passageFields: ReadonlySet<string> | null;
  /** The names of outputs that aggregate a column masked only in some rows. */
  readonly partialColumns: readonly string[];
  /** The connector that runs the query; null if no relation is read. */
  readonly connector: string | null;
  readonly accessSignature: string;
  readonly catalogVersion: string;
  readonly policyVersion: string;
  /** Opaque ids of the grants that apply. */
  readonly grants: readonly string[];
  /** The rollup that answers the query; absent or null if the query reads the entities themselves. */
  readonly rollup?: string | null;
  /** Rollups that could not answer the query, with the reason. */
  readonly passedRollups?: readonly UnusedRollup[];
}

/** A runtime relation with the governed plans that compute it. */
export type GovernedRuntime =
  | {
      readonly kind: 'retrieval';
      readonly relation: Retrieval;
      /** Null if the caller has no grant, and therefore no passages. */
      readonly store: GovernedStore | null;
      /** The store for the word search, if the query searches both by vector and by words; otherwise null. */
      readonly lexical: GovernedStore | null;
      /**
       * Fields that the statement joins on and that the version may have redacted, with their positions in the text.
       * The query fails if one of them is redacted in a passage.
       */
      readonly checkedKeys: ReadonlyMap<string, Position | null>;
      /** Notices to return with the result. */
      readonly notices: readonly string[];
    }
  | {
      readonly kind: 'traversal';
      readonly relation: Traversal;
      /** The plan that returns the keys to start from; null if `relation` lists them. */
      readonly start: GovernedPlan | null;
      readonly hops: readonly GovernedPlan[];
    }
  | { readonly kind: 'hydration'; readonly relation: Hydration; readonly stores: readonly GovernedStore[] }
  /** `rows` is the plan that returns the rows to be processed by operators. */
  | { readonly kind: 'operated'; readonly relation: OperatedRows; readonly rows: GovernedPlan };

/** Returns the steps of a traversal, in order. */
export function stepsOfWalk({
  start,
  hops,
}: Extract<GovernedRuntime, { kind: 'traversal' }>): readonly GovernedPlan[] {
  return start === null ? hops : [start, ...hops];
}

/** Plans that read the passages of one facet for this caller, all from one redaction version. */
export interface GovernedStore {
  readonly facet: FacetStore;
  readonly version: string;
  readonly fields: {
    /** The key and metadata fields visible to this caller, in declared order. */
    readonly shown: readonly string[];
    /** Columns that policy or the version masks in every passage; `passages` has flags for those masked in some. */
    readonly masked: ReadonlySet<string>;
  };
  /** True if the served version replaces values, so that a passage's text may contain `[redacted]`. */
  readonly redacts: boolean;
  /** True if every passage that the caller may see may also be sent to a language model. */
  readonly mayDecode: boolean;
  /**
   * Returns passages, best first. Slots `vector` (pgvector text), `terms` (int4[], word search only) and `limit`; or,
   * for the content of named entities, `keys` and `limit`.
   */
  readonly passages: GovernedPlan;
  /** Like `passages`, for the ids in slot `ids` (text[]). Null unless vector and word search are combined. */
  readonly named: GovernedPlan | null;
  /**
   * Faster searches over the vectors of a model; null except for a vector search. Each plan finds candidates and
   * returns the best of them, as `passages` does, and sees the same passages. Slots `vector`, `candidates` (their
   * maximum number) and `limit`; every row has the number of candidates (`#candidates`) and the distance of the
   * farthest (`#farthest`).
   */
  readonly nearest: {
    /** Counts the passages that the caller may see under the same filters, up to slot `limit`. */
    readonly some: GovernedPlan;
    /** Finds candidates by the Hamming distance between the signs of their vectors. */
    readonly bySigns: GovernedPlan;
    /** Finds candidates by an approximate index; null if the facet does not allow it, or the filters rule it out. */
    readonly byIndex: GovernedPlan | null;
  } | null;
  /**
   * Derived attributes that the statement uses, for the entities in `keys`: one row for each visible passage that
   * supports an attribute, so fewer rows than `#support` mean that a passage is hidden. Slots `keys` and `limit`.
   */
  readonly derived: GovernedPlan | null;
  /**
   * Plans that count, under the same filters, the visible passages that contain each word; null except for a word
   * search. Slots: `words` (rows with `word`, int4, and `term`, an array with only that word) and `terms` (int4[], the
   * same words). Like `passages`, the plans return the snapshot that they read (`#snapshot`).
   */
  readonly counts: {
    /** Also returns the number of all visible passages (`documents`). */
    readonly whole: GovernedPlan;
    readonly ofWords: GovernedPlan;
    /** True if the counts depend on the stored data only, never on the clock. */
    readonly timeless: boolean;
  } | null;
  /**
   * Like `passages`, for words that most passages contain: it scores every passage, and passages without any of the
   * words come last, at distance 0. Null except for a word search. It has no slot `terms`.
   */
  readonly commonWords: GovernedPlan | null;
}

const MINT = Symbol('mint');
const NONE_PASSED: readonly UnusedRollup[] = Object.freeze([]);

/**
 * A plan that policy has been applied to: the only kind of plan that a `GovernedEngine` runs.
 *
 * INVARIANT: only `mint` creates one, after proof, and `withValues`, from a proved one. A brand would not be enough,
 * since a spread copies it; a private field is not copied, and `is` checks for it.
 */
export class GovernedPlan implements GovernedPlanFields {
  readonly #minted = true;
  readonly form;
  readonly query;
  readonly runtime;
  readonly slots;
  readonly clientOids;
  readonly outputs;
  readonly objects;
  readonly redactedColumns;
  readonly maskedColumns;
  readonly passageFields;
  readonly partialColumns;
  readonly connector;
  readonly accessSignature;
  readonly catalogVersion;
  readonly policyVersion;
  readonly grants;
  readonly rollup;
  readonly passedRollups;

  constructor(key: symbol, fields: GovernedPlanFields) {
    if (key !== MINT) throw new InternalError('only mint() makes a GovernedPlan');
    this.form = fields.form;
    this.query = fields.query;
    this.runtime = fields.runtime;
    this.slots = fields.slots;
    this.clientOids = fields.clientOids;
    this.outputs = fields.outputs;
    this.objects = fields.objects;
    this.redactedColumns = fields.redactedColumns;
    this.maskedColumns = fields.maskedColumns;
    this.passageFields = fields.passageFields;
    this.partialColumns = fields.partialColumns;
    this.connector = fields.connector;
    this.accessSignature = fields.accessSignature;
    this.catalogVersion = fields.catalogVersion;
    this.policyVersion = fields.policyVersion;
    this.grants = fields.grants;
    this.rollup = fields.rollup ?? null;
    this.passedRollups = fields.passedRollups ?? NONE_PASSED;
    Object.freeze(this);
  }

  static is(value: unknown): value is GovernedPlan {
    return typeof value === 'object' && value !== null && #minted in value && value.#minted;
  }
}

/** Catalog, rights and rules that `mint` proves a plan against. */
export interface ProofContext {
  readonly catalog: Catalog;
  /** The caller's own access, even if the plan was made with different access. */
  readonly access: Access;
  /** The join rule that the plan obeys; null if no caller can write a join. */
  readonly joins: Joins | null;
  /** Rollups that are built and fresh enough. */
  readonly usable: ReadonlySet<string>;
}

/**
 * Proves a plan and turns it into a `GovernedPlan`. The access signature and the versions are those of the access and
 * catalog used in the proof. The package does not export this function.
 *
 * @throws InternalError if the proof fails
 */
export function mint(
  fields: Omit<GovernedPlanFields, 'accessSignature' | 'catalogVersion' | 'policyVersion'>,
  { catalog, access, joins, usable }: ProofContext,
): GovernedPlan {
  const { query, slots } = fields;
  freeze(query);
  freeze(slots);
  verify(query, slots, joins, catalog, access);
  verifyRollup(query, slots, catalog, access, usable);
  return new GovernedPlan(MINT, {
    ...fields,
    accessSignature: access.signature,
    catalogVersion: catalog.version,
    policyVersion: access.policyVersion,
  });
}

/** Returns `plan` with other literals of the caller; `PlanTemplate` must have checked them. */
export function withValues(plan: GovernedPlan, slots: readonly Slot[]): GovernedPlan {
  return new GovernedPlan(MINT, { ...plan, slots: Object.freeze(slots) });
}

/** INVARIANT: a plan never changes after its proof. The catalog and functions it uses are already frozen. */
function freeze(value: object): void {
  Object.freeze(value);
  for (const key in value) {
    const part: unknown = value[key as keyof typeof value];
    if (typeof part === 'object' && part !== null && !FROZEN_ELSEWHERE.has(key)) freeze(part);
  }
}

const FROZEN_ELSEWHERE: ReadonlySet<string> = new Set(['relation', 'definition', 'equality', 'grants']);
