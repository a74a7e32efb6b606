import type { Relation } from '../catalog/catalog.js';
import { assertNever, InternalError } from '../errors/errors.js';
import type { FunctionDefinition } from '../functions/definition.js';
import type { GovernedPlan, GovernedRuntime } from '../govern/governed-plan.js';
import { valuesAt } from '../govern/lineage.js';
import {
  type Aggregate,
  type ColumnRef,
  type Expr,
  type GovernedScan,
  type Query,
  SHOWN,
  type SortKey,
  type WindowCall,
} from '../plan/plan.js';
import { stepValues } from '../plan/relations-read.js';
import { boundExprs, childrenOf, conditionsOf, leavesOf, sortExprs } from '../plan/walk.js';
import {
  atLeast,
  deciding,
  type IndirectKind,
  type Influence,
  Influences,
  indirect,
  keyOf,
  type Transformation,
} from './influence.js';
import { rowsOfRuntime, type StepTrace, valueOfRuntime } from './runtime.js';
import { Sources, widthOf } from './sources.js';

const IDENTITY: Transformation = Object.freeze({ type: 'DIRECT', subtype: 'IDENTITY', masking: false });

/** The column of a governed scan that tells of another whether it may be read, or serves joins: `<name>#…`. */
const SUFFIX = /#\w+$/;

/** Follows values and rows of one statement back to the columns they come from, and gathers them. */
class LineageTrace implements StepTrace {
  readonly #plan: GovernedPlan;
  readonly #sources: Sources;
  readonly #found: Influences;
  /** Columns and queries that were followed already, so that shared tables are not followed once for each path. */
  readonly #seen = new Set<string>();
  readonly #walked = new Set<Query>();
  readonly #wholes = new Map<Query, Set<IndirectKind>>();

  constructor(plan: GovernedPlan, sources: Sources, found: Influences) {
    this.#plan = plan;
    this.#sources = sources;
    this.#found = found;
  }

  /** Follows the statement of a step that this one rests on, into the same gathering. */
  step(plan: GovernedPlan): LineageTrace {
    return new LineageTrace(plan, new Sources(plan.query), this.#found);
  }

  /** Follows the values of output `index`. */
  output(index: number, as: Transformation = IDENTITY): void {
    for (const expr of valuesAt(this.#plan.query, index)) this.value(expr, as);
  }

  /** Follows the values of the output of that name, if there is one. */
  named(name: string, as: Transformation): void {
    const { query } = this.#plan;
    const index = query.kind === 'select' ? query.outputs.findIndex((o) => o.name === name) : -1;
    if (index !== -1) this.output(index, as);
  }

  field(object: string, column: string, as: Transformation): void {
    this.#found.add(object, column, as);
  }

  /** @param scan the governed scan that has `expr`, if it is over base columns */
  value(expr: Expr, as: Transformation, scan: GovernedScan | null = null): void {
    const computed = atLeast(as, 'TRANSFORMATION');
    switch (expr.kind) {
      case 'column':
        this.#column(expr, as);
        break;
      case 'base':
        this.#base(expr.column, as, scan);
        break;
      case 'distance':
        this.#base(expr.column, computed, scan);
        this.value(expr.to, computed, scan);
        break;
      case 'stored_vector':
        this.#base(expr.column, computed, scan);
        break;
      case 'case':
        this.#deciding(
          expr.arms.map((arm) => arm.when),
          'CONDITIONAL',
          as,
          scan,
        );
        for (const result of [...expr.arms.map((arm) => arm.result), expr.otherwise])
          this.value(result, computed, scan);
        break;
      case 'aggregate':
        this.#aggregate(expr, as, scan);
        break;
      case 'window':
        this.#window(expr, as, scan);
        break;
      case 'scalar_query':
        for (const value of valuesAt(expr.query, 0)) this.value(value, as);
        this.rows(expr.query);
        break;
      case 'exists':
        this.rows(expr.query);
        break;
      case 'in_query':
        this.value(expr.arg, computed, scan);
        for (const value of valuesAt(expr.query, 0)) this.value(value, computed);
        this.rows(expr.query);
        break;
      case 'grouping':
        break;
      case 'parameter':
      case 'literal':
      case 'null':
      case 'boolean':
      case 'structural':
      case 'call':
      case 'and':
      case 'or':
      case 'conditional':
      case 'operation':
      case 'cast':
      case 'not':
      case 'null_test':
      case 'truth_test':
      case 'attribute_match':
      case 'distinct_test':
      case 'row_comparison':
      case 'bit_number':
      case 'slice':
      case 'collate':
      case 'quantified':
      case 'membership':
      case 'array':
      case 'row_text':
      case 'subscript':
        for (const child of childrenOf(expr)) this.value(child, computed, scan);
        break;
      default:
        assertNever(expr);
    }
  }

  #aggregate(call: Aggregate, as: Transformation, scan: GovernedScan | null): void {
    const { args, definition, filter, orderBy } = call;
    for (const arg of args) this.value(arg, aggregateTransformation(as, definition), scan);
    // Under an ordered-set aggregate the order is what is aggregated.
    if (definition.kind === 'ordered_set')
      for (const key of sortExprs(orderBy)) this.value(key, aggregateTransformation(as, definition), scan);
    else this.#deciding(sortExprs(orderBy), 'SORT', as, scan);
    this.#deciding(filter === null ? [] : [filter], 'FILTER', as, scan);
  }

  #window(call: WindowCall, as: Transformation, scan: GovernedScan | null): void {
    const { args, definition, filter, partitionBy, orderBy, frame } = call;
    const how =
      definition.kind === 'aggregate'
        ? aggregateTransformation(as, definition)
        : atLeast(as, 'TRANSFORMATION');
    for (const arg of args) this.value(arg, how, scan);
    this.#deciding(filter === null ? [] : [filter], 'FILTER', as, scan);
    const offsets = frame === null ? [] : [frame.start, frame.end].flatMap(boundExprs);
    this.#deciding([...partitionBy, ...sortExprs(orderBy), ...offsets], 'WINDOW', as, scan);
  }

  #deciding(exprs: readonly Expr[], kind: IndirectKind, as: Transformation, scan: GovernedScan | null): void {
    const how = policyIn(deciding(as, kind), scan);
    for (const expr of exprs) this.value(expr, how, scan);
  }

  /** Follows the columns that decide which rows a query has, how many, and in which order. */
  rows(query: Query): void {
    if (this.#walked.has(query)) return;
    this.#walked.add(query);
    const decide = (e: Expr | null, subtype: IndirectKind): void => {
      if (e !== null) this.value(e, indirect(subtype));
    };
    const whole = (of: Query, subtype: IndirectKind): void => this.#whole(of, subtype);
    const sorted = (keys: readonly SortKey[]): void => {
      for (const { by } of keys) {
        for (const e of typeof by === 'number' ? valuesAt(query, by - 1) : [by]) decide(e, 'SORT');
      }
    };
    switch (query.kind) {
      case 'values':
        return;
      case 'set_operation': {
        const compares = !query.all || query.operator !== 'union';
        for (const side of [query.left, query.right]) {
          this.rows(side);
          if (compares) whole(side, query.operator === 'union' ? 'GROUP_BY' : 'FILTER');
        }
        sorted(query.orderBy);
        break;
      }
      case 'select':
        for (const leaf of leavesOf(query.from)) this.#rowsOf(leaf, whole);
        for (const e of conditionsOf(query.from)) decide(e, 'JOIN');
        for (const e of query.where) decide(e, 'FILTER');
        for (const e of query.groupBy) decide(e, 'GROUP_BY');
        for (const e of query.having) decide(e, 'FILTER');
        for (const e of query.distinctOn) decide(e, 'GROUP_BY');
        if (query.distinct) whole(query, 'GROUP_BY');
        sorted(query.orderBy);
        break;
      default:
        assertNever(query);
    }
    decide(query.limit, 'FILTER');
    decide(query.offset, 'FILTER');
  }

  /** Follows each value of a query, all of which decide. Of a set operation those of each operand, once. */
  #whole(query: Query, subtype: IndirectKind): void {
    const known = this.#wholes.get(query) ?? new Set();
    if (known.has(subtype)) return;
    this.#wholes.set(query, known.add(subtype));
    if (query.kind === 'set_operation') {
      this.#whole(query.left, subtype);
      if (query.operator !== 'except') this.#whole(query.right, subtype);
      return;
    }
    for (let i = 0; i < widthOf(query); i++)
      for (const value of valuesAt(query, i)) this.value(value, indirect(subtype));
  }

  #rowsOf(
    leaf: ReturnType<typeof leavesOf>[number],
    whole: (of: Query, subtype: IndirectKind) => void,
  ): void {
    const origin = this.#sources.originOf(leaf);
    switch (origin.kind) {
      case 'scan': {
        const { scan } = origin;
        if (scan.filter !== null) this.value(scan.filter, POLICY_FILTER, scan);
        for (const e of scan.pushed) this.value(e, indirect('FILTER'), scan);
        return;
      }
      case 'query':
        this.rows(origin.query);
        // A spine has a row for each period between what its bounds say.
        if (leaf.kind === 'spine') whole(origin.query, 'FILTER');
        return;
      case 'rows':
        for (const arg of origin.made.args) this.value(arg, indirect('FILTER'));
        return;
      // Which rows a step finds is followed where its table is read.
      case 'step':
        return;
      case 'runtime':
        rowsOfRuntime(this.#runtimeAt(origin.slot), this);
        return;
      default:
        assertNever(origin);
    }
  }

  #column(ref: ColumnRef, as: Transformation): void {
    const id = `${ref.source} ${keyOf(as)} ${ref.name}`;
    if (this.#seen.has(id)) return;
    this.#seen.add(id);
    const origin = this.#sources.origin(ref.source);
    switch (origin.kind) {
      case 'scan':
        this.#scannedColumn(origin.scan, ref.name, as);
        return;
      case 'query':
        for (const value of valuesAt(origin.query, Number(ref.name.slice(1)) - 1)) this.value(value, as);
        return;
      case 'step':
        for (const value of stepValues(
          origin.query,
          origin.recursion,
          Number(ref.name.slice(1)) - 1,
          valuesAt,
        ))
          this.value(value, as);
        return;
      case 'rows':
        for (const arg of origin.made.args) this.value(arg, atLeast(as, 'TRANSFORMATION'));
        return;
      case 'runtime':
        valueOfRuntime(this.#runtimeAt(origin.slot), ref.name, as, this);
        return;
      default:
        assertNever(origin);
    }
  }

  #scannedColumn(scan: GovernedScan, name: string, as: Transformation): void {
    const column = scan.columns.find((c) => c.name === name);
    if (column === undefined) throw new InternalError(`scan of ${scan.relation.name} has no column ${name}`);
    // Policy asks by it, wherever it stands, and by nothing but the row filter.
    if (name === SHOWN) {
      this.value(column.expr, POLICY_FILTER, scan);
      return;
    }
    if (column.masked === 'none') {
      this.value(column.expr, as, scan);
      return;
    }
    const masked = atLeast(as, 'TRANSFORMATION', true);
    this.value(column.expr, masked, scan);
    // A mask that holds nothing of the value is still shown in its place.
    const own = scan.relation.columns.find((c) => c.name === name.replace(SUFFIX, ''));
    if (own !== undefined) this.#base(own.physical, masked, scan);
  }

  #base(physical: string, as: Transformation, scan: GovernedScan | null): void {
    if (scan === null) throw new InternalError(`column ${physical} stands outside a scan`);
    const { object, column } = fieldOf(scan.relation, physical);
    this.#found.add(object, column, as);
  }

  #runtimeAt(slot: number): GovernedRuntime | null {
    const from = this.#plan.slots[slot];
    return from?.kind === 'runtime' ? (this.#plan.runtime[from.index] ?? null) : null;
  }
}

const POLICY_FILTER = indirect('FILTER', true);

/** Within a scan only policy has conditions: those that say in which rows a column is masked. */
function policyIn(transformation: Transformation, scan: GovernedScan | null): Transformation {
  return scan === null || transformation.type === 'DIRECT'
    ? transformation
    : { ...transformation, policy: true };
}

/** Transformation by an aggregate. A count says little about the values counted; OpenLineage calls it a mask. */
function aggregateTransformation(as: Transformation, { name }: FunctionDefinition): Transformation {
  return atLeast(as, 'AGGREGATION', name === 'count');
}

/** A column as the semantic graph names it. */
interface GraphColumn {
  readonly object: string;
  readonly column: string;
}

/**
 * Columns of a facet's store that hold document fields, by the names that readers use; all others derive from its text.
 */
const STORED: ReadonlyMap<string, string> = new Map([
  ['chunk_id', 'cite'],
  ['doc_id', 'cite'],
  ['source', 'cite'],
  ['start_char', 'cite'],
  ['end_char', 'cite'],
  ['sha256', 'cite'],
  ['redacted_fields', 'redacted_fields'],
]);

function objectOf(relation: Relation): string {
  return relation.kind === 'facet' ? `osl.facets.${relation.name}` : `osl.entities.${relation.name}`;
}

/** The field behind the upstream column `physical` of `relation`. */
function fieldOf(relation: Relation, physical: string): GraphColumn {
  const object = objectOf(relation);
  const declared = relation.columns.find((c) => c.physical === physical && !c.name.startsWith('#'));
  if (declared !== undefined) return { object, column: declared.name };
  if (relation.kind === 'facet') return { object, column: STORED.get(physical) ?? 'text' };
  throw new InternalError(`column ${physical} of ${relation.name} is not declared`);
}

export type { DirectKind, IndirectKind, Influence, Transformation } from './influence.js';

/** The sources of an answer, column by column, policy included. */
export interface ColumnLineage {
  /** By the plan's outputs, in their order. `name` is the caller's own word for it. */
  readonly outputs: readonly { readonly name: string; readonly inputs: readonly Influence[] }[];
  /** The columns that decide which rows there are, how many, and in which order. */
  readonly rows: readonly Influence[];
}

/**
 * The column lineage of a governed plan. A column that is not named has no part in the answer: whatever its values,
 * the answer is the same.
 */
export function columnLineage(plan: GovernedPlan): ColumnLineage {
  const sources = new Sources(plan.query);
  const gather = (follow: (trace: LineageTrace) => void): readonly Influence[] => {
    const found = new Influences();
    follow(new LineageTrace(plan, sources, found));
    return found.list();
  };
  const outputs = plan.outputs.map(({ name }, i) =>
    Object.freeze({ name, inputs: gather((trace) => trace.output(i)) }),
  );
  return Object.freeze({
    outputs: Object.freeze(outputs),
    rows: gather((trace) => trace.rows(plan.query)),
  });
}
