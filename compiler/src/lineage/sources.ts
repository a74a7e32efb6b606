import { assertNever, InternalError } from '../errors/errors.js';
import {
  type GovernedPlan,
  type GovernedRuntime,
  type GovernedStore,
  stepsOfWalk,
} from '../govern/governed-plan.js';
import { stored } from '../govern/store/columns.js';
import type { FromLeaf, GovernedScan, Query, RecursionRef, RowSource, SourceId } from '../plan/plan.js';
import { EVIDENCE, ORDINAL } from '../plan/runtime.js';
import { allQueries, columnsOf, leavesOf } from '../plan/walk.js';

export type ColumnOrigin =
  | { readonly kind: 'scan'; readonly scan: GovernedScan }
  | { readonly kind: 'query'; readonly query: Query }
  | { readonly kind: 'rows'; readonly made: RowSource }
  | { readonly kind: 'step'; readonly query: Query; readonly recursion: RecursionRef }
  | { readonly kind: 'runtime'; readonly slot: number };

export class Sources {
  readonly #leaves = new Map<SourceId, FromLeaf>();
  readonly #tables = new Map<number, Query>();

  constructor(root: Query) {
    for (const query of allQueries(root)) {
      if (query.kind === 'values') continue;
      for (const table of query.with) this.#tables.set(table.id, table.query);
      if (query.kind !== 'select') continue;
      for (const leaf of leavesOf(query.from)) this.#leaves.set(leaf.id, leaf);
    }
  }

  origin(source: SourceId): ColumnOrigin {
    const leaf = this.#leaves.get(source);
    if (leaf === undefined) throw new InternalError(`source ${source} is no FROM item`);
    return this.originOf(leaf);
  }

  originOf(leaf: FromLeaf): ColumnOrigin {
    switch (leaf.kind) {
      case 'governed':
        return { kind: 'scan', scan: leaf };
      case 'derived':
        return { kind: 'query', query: leaf.query };
      case 'spine':
        return { kind: 'query', query: leaf.bounds };
      case 'cte': {
        const query = this.#tables.get(leaf.table);
        if (query === undefined) throw new InternalError(`common table ${leaf.table} is not there`);
        return { kind: 'query', query };
      }
      case 'rows':
        return { kind: 'rows', made: leaf };
      case 'recursion': {
        const query = this.#tables.get(leaf.table);
        if (query === undefined) throw new InternalError(`recursive table ${leaf.table} is not there`);
        return { kind: 'step', query, recursion: leaf };
      }
      case 'runtime':
        return { kind: 'runtime', slot: leaf.slot };
      case 'entity':
        throw new InternalError(`scan of ${leaf.relation.name} is not governed`);
      default:
        return assertNever(leaf);
    }
  }
}

export function widthOf(query: Query): number {
  return columnsOf(query).length;
}

/** Contribution of a column to a result, in the terms of OpenLineage's column lineage. */
export type Transformation =
  /** The value is part of the result, possibly transformed or aggregated. */
  | { readonly type: 'DIRECT'; readonly subtype: DirectKind; readonly masking: boolean }
  /**
   * The value affects the result without being part of it. `policy` is true if it does so through a row filter or a
   * mask rather than through the query.
   */
  | { readonly type: 'INDIRECT'; readonly subtype: IndirectKind; readonly policy: boolean };

export type DirectKind = 'IDENTITY' | 'TRANSFORMATION' | 'AGGREGATION';
export type IndirectKind = 'FILTER' | 'JOIN' | 'GROUP_BY' | 'SORT' | 'WINDOW' | 'CONDITIONAL';

/** A column of the semantic graph, with all its contributions to a result. */
export interface Influence {
  /** `osl.entities.<name>` or `osl.facets.<name>`. */
  readonly object: string;
  readonly column: string;
  /** Sorted, and never empty. */
  readonly transformations: readonly Transformation[];
}

const ORDER: readonly DirectKind[] = ['IDENTITY', 'TRANSFORMATION', 'AGGREGATION'];

/** Raises a direct transformation to at least `kind`. Indirect transformations remain unchanged. */
export function atLeast(transformation: Transformation, kind: DirectKind, masking = false): Transformation {
  if (transformation.type === 'INDIRECT') return transformation;
  const { subtype } = transformation;
  return {
    type: 'DIRECT',
    subtype: ORDER.indexOf(subtype) < ORDER.indexOf(kind) ? kind : subtype,
    masking: transformation.masking || masking,
  };
}

export function indirect(subtype: IndirectKind, policy = false): Transformation {
  return Object.freeze({ type: 'INDIRECT', subtype, policy });
}

/**
 * Returns the transformation of a column that only decides which value is used, such as in a CASE condition.
 * `transformation` is that of the value itself.
 */
export function deciding(transformation: Transformation, subtype: IndirectKind): Transformation {
  return transformation.type === 'INDIRECT' ? transformation : indirect(subtype);
}

export function keyOf(t: Transformation): string {
  return t.type === 'DIRECT' ? `0${ORDER.indexOf(t.subtype)}${t.masking}` : `1${t.subtype}${t.policy}`;
}

export class Influences {
  readonly #columns = new Map<
    string,
    { object: string; column: string; ways: Map<string, Transformation> }
  >();

  add(object: string, column: string, transformation: Transformation): void {
    const id = JSON.stringify([object, column]);
    const known = this.#columns.get(id) ?? { object, column, ways: new Map() };
    known.ways.set(keyOf(transformation), transformation);
    this.#columns.set(id, known);
  }

  list(): readonly Influence[] {
    const sorted = [...this.#columns].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.freeze(
      sorted.map(([, { object, column, ways }]) => {
        const transformations = [...ways]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([, t]) => Object.freeze(t));
        return Object.freeze({ object, column, transformations: Object.freeze(transformations) });
      }),
    );
  }
}

/** Traces values of a runtime relation back to their sources. */
export interface StepTrace {
  /** Returns the trace of the statement that computed a step. */
  step(plan: GovernedPlan): StepTrace;
  output(index: number, as: Transformation): void;
  named(name: string, as: Transformation): void;
  /** Follows the columns that determine the rows of `query`. */
  rows(query: Query): void;
}

/** Follows the sources of column `name` in rows that were computed before the statement. */
export function valueOfRuntime(
  runtime: GovernedRuntime | null,
  name: string,
  as: Transformation,
  trace: StepTrace,
): void {
  switch (runtime?.kind) {
    case undefined:
      return; // rows from the compiler itself, such as search terms
    case 'retrieval':
      if (runtime.store !== null) passageValue(runtime.store, name, as, trace);
      return;
    case 'traversal':
      // Keys are returned with their distance, which depends on every hop.
      for (const hop of runtime.hops) all(hop, atLeast(as, 'TRANSFORMATION'), trace);
      return;
    case 'hydration':
      for (const store of runtime.stores) hydratedValue(store, name, as, trace);
      return;
    case 'operated':
      operatedValue(runtime, name, as, trace);
      return;
    default:
      assertNever(runtime);
  }
}

/** Follows the columns that determine which rows of this relation exist. */
export function rowsOfRuntime(runtime: GovernedRuntime | null, trace: StepTrace): void {
  switch (runtime?.kind) {
    case undefined:
      return;
    case 'retrieval':
      if (runtime.store === null) return;
      trace.step(runtime.store.passages).rows(runtime.store.passages.query);
      // Passages are ranked by their text, which therefore determines the ones that are returned.
      trace.step(runtime.store.passages).named(stored('text'), FILTER);
      return;
    case 'traversal':
      for (const step of stepsOfWalk(runtime)) {
        trace.step(step).rows(step.query);
        all(step, JOIN, trace);
      }
      return;
    case 'hydration':
      for (const { passages, derived } of runtime.stores) {
        for (const plan of derived === null ? [passages] : [passages, derived])
          trace.step(plan).rows(plan.query);
      }
      return;
    case 'operated':
      trace.step(runtime.rows).rows(runtime.rows.query);
      return;
    default:
      assertNever(runtime);
  }
}

const FILTER = indirect('FILTER');
const JOIN = indirect('JOIN');

const CITED = ['source', 'doc_id', 'chunk_id', 'start_char', 'end_char', 'sha256'] as const;

function passageValue(store: GovernedStore, name: string, as: Transformation, trace: StepTrace): void {
  const { passages, redacts } = store;
  const step = trace.step(passages);
  const changed = atLeast(as, 'TRANSFORMATION');
  const served = redacts ? atLeast(as, 'TRANSFORMATION', true) : as;
  switch (name) {
    case 'text':
      step.named(stored(name), served);
      break;
    case 'redacted_fields':
      step.named(stored(name), as);
      break;
    case 'cite':
      for (const part of CITED) step.named(stored(part), changed);
      break;
    case 'score':
      step.named(stored('text'), changed);
      break;
    case ORDINAL:
      step.named(stored('text'), deciding(as, 'SORT'));
      break;
    default:
      // Metadata of the passage. A name that is not in the store is an operator's column, computed from the text.
      if (passages.outputs.some((o) => o.name === name))
        step.named(name, name === store.facet.entityKey ? as : served);
      else step.named(stored('text'), atLeast(served, 'TRANSFORMATION'));
  }
}

function operatedValue(
  { relation, rows }: Extract<GovernedRuntime, { kind: 'operated' }>,
  name: string,
  as: Transformation,
  trace: StepTrace,
): void {
  if (name === ORDINAL) return;
  const made = relation.operators.find((o) => o.column === name);
  const place = Number((made?.of ?? name).slice(1)) - relation.operators.length;
  trace.step(rows).output(place - 1, made === undefined ? as : atLeast(as, 'TRANSFORMATION'));
}

function hydratedValue(store: GovernedStore, name: string, as: Transformation, trace: StepTrace): void {
  const { facet, passages, derived, redacts } = store;
  const changed = atLeast(as, 'TRANSFORMATION');
  const step = trace.step(passages);
  if (name === 'key') step.named(facet.entityKey, as);
  if (name === EVIDENCE) {
    step.named(stored('text'), atLeast(changed, 'TRANSFORMATION', redacts));
    for (const part of CITED) step.named(stored(part), changed);
  }
  if (derived !== null && facet.derived.some((d) => d.name === name)) {
    trace.step(derived).named(stored('value'), changed);
  }
}

function all(plan: GovernedPlan, as: Transformation, trace: StepTrace): void {
  const step = trace.step(plan);
  for (let i = 0; i < widthOf(plan.query); i++) step.output(i, as);
}
