import type { FacetStore } from '../catalog.js';
import { InternalError, type Position } from '../errors.js';
import type { Form, Query, Slot } from '../plan.js';
import type { Hydration, Retrieval, Traversal } from '../runtime.js';
import type { TypeName } from '../types.js';

/** One column of the answer. */
export interface OutputColumn {
  readonly name: string;
  readonly type: TypeName;
  /** `osl.entities.<entity>.<column>` where the value is passed through, else null. */
  readonly source: string | null;
  /** Whether something masked is in it, or may be: a field of passages whose version is searched for values. */
  readonly redacted: boolean;
  /** Whether it is the key that a passage carries of its entity. */
  readonly passageKey: boolean;
}

export interface GovernedPlanFields {
  readonly form: Form;
  readonly query: Query;
  /** What must be worked out before `query` runs, in order. */
  readonly runtime: readonly GovernedRuntime[];
  readonly slots: readonly Slot[];
  /** Type OIDs of the caller's `$1 … $n`. */
  readonly clientOids: readonly number[];
  readonly outputs: readonly OutputColumn[];
  /** Objects touched, as `osl.entities.<name>`, `osl.facets.<name>` and `osl.metrics.<name>`, sorted. */
  readonly objects: readonly string[];
  /** `<entity>.<column>` of everything masked that is in the outputs, sorted. */
  readonly redactedColumns: readonly string[];
  /** `<entity>.<column>` of everything masked that the query uses: in the outputs, or in what decides of them. */
  readonly maskedColumns: readonly string[];
  /** Fields of passages that are in the outputs; null for all, where the outputs have what lists them. */
  readonly passageFields: ReadonlySet<string> | null;
  /** Names of outputs that aggregate over a column that is masked in some rows only. */
  readonly partialColumns: readonly string[];
  /** The connector that must run it; null where no relation is read. */
  readonly connector: string | null;
  readonly accessSignature: string;
  readonly catalogVersion: string;
  readonly policyVersion: string;
  /** Opaque ids of the grants that apply. */
  readonly grants: readonly string[];
}

/** A runtime relation with the governed plans of its steps. */
export type GovernedRuntime =
  | {
      readonly kind: 'retrieval';
      readonly relation: Retrieval;
      /** Null where the caller has no grant: then there are no passages. */
      readonly store: GovernedStore | null;
      /**
       * Fields that the statement joins on and that the version may have redacted, each with its place in the text: a
       * passage in which one is redacted refuses the question.
       */
      readonly checkedKeys: ReadonlyMap<string, Position | null>;
    }
  | { readonly kind: 'traversal'; readonly relation: Traversal; readonly hops: readonly GovernedPlan[] }
  | { readonly kind: 'hydration'; readonly relation: Hydration; readonly stores: readonly GovernedStore[] };

/** How the passages of one facet may be read by this caller: one redaction version, and no other store. */
export interface GovernedStore {
  readonly facet: FacetStore;
  readonly version: string;
  readonly fields: {
    /** The key and the metadata that this caller may know of, in declared order. */
    readonly shown: readonly string[];
    /** Those that policy or the version masks in every passage; `passages` flags those that it masks in some. */
    readonly masked: ReadonlySet<string>;
  };
  /** Whether every passage that the caller may see may also be sent to a language model. */
  readonly mayDecode: boolean;
  /**
   * Best passages first. Slots `vector` (pgvector text), `terms` (int4[], lexical lane only) and `limit`; or, for
   * the content of named entities, `keys` and `limit`.
   */
  readonly passages: GovernedPlan;
  /**
   * The steps of the other lanes over the vectors of a model; null for the lexical lane and for named entities. Each
   * sees what `passages` sees.
   */
  readonly nearest: {
    /** How many passages the caller may see under the same filters, counted up to slot `limit`. */
    readonly some: GovernedPlan;
    /** Ids of the nearest passages by the signs of their vectors, and how many signs differ. Slots `vector`, `limit`. */
    readonly bySigns: GovernedPlan;
    /** Ids of the nearest passages by an approximate index, and how far they are; null where the facet does not allow it, or the filters rule it out. */
    readonly byIndex: GovernedPlan | null;
    /** As `passages`, of the chunks of slot `chunks` (text[]). */
    readonly among: GovernedPlan;
  } | null;
  /**
   * Of the entities in `keys`, the derived attributes that the statement uses: a row for each visible passage that
   * one rests on, so that fewer rows than `#support` mean a hidden one. Slots `keys` and `limit`.
   */
  readonly derived: GovernedPlan | null;
  /**
   * How many passages the caller may see under the same filters, and of them how many hold a word: `at once`, each
   * `term` of the rows in slot `words`; `one by one`, slot `term`, where a fence would make the other a scan for each.
   */
  readonly counts: {
    readonly all: GovernedPlan;
    readonly ofTerms: { readonly asked: 'at once' | 'one by one'; readonly plan: GovernedPlan };
  } | null;
}

const MINT = Symbol('mint');

/**
 * A plan that policy has been applied to: the only thing that the governed door runs.
 *
 * INVARIANT: only this folder makes one: `govern`, the reads of a facet's store beside it, and a template that puts
 * other literals into a plan of `govern`'s. A brand would not do, since a spread copies it; a private field is not
 * copied, and `is` looks for it.
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

  constructor(key: symbol, fields: GovernedPlanFields) {
    if (key !== MINT) throw new InternalError('only govern() makes a GovernedPlan');
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
    Object.freeze(this);
  }

  static is(value: unknown): value is GovernedPlan {
    return typeof value === 'object' && value !== null && #minted in value && value.#minted;
  }
}

/** For `govern` alone; the package does not export it. */
export function mint(fields: GovernedPlanFields): GovernedPlan {
  return new GovernedPlan(MINT, fields);
}
