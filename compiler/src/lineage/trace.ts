import type { Relation, Rollup } from '../catalog/catalog.js';
import { assertNever, InternalError } from '../errors/errors.js';
import type { FunctionDefinition } from '../functions/define.js';
import type { GovernedPlan, GovernedRuntime } from '../govern/governed-plan.js';
import { valuesAt } from '../govern/lineage.js';
import { ROLLUP_ROWS, ROLLUP_TIME } from '../govern/rollup/rollup.js';
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
import { stepValues } from '../plan/properties.js';
import { boundExprs, childrenOf, conditionsOf, leavesOf, sortExprs } from '../plan/walk.js';
import {
  atLeast,
  deciding,
  type IndirectKind,
  type Influence,
  Influences,
  indirect,
  keyOf,
  rowsOfRuntime,
  Sources,
  type StepTrace,
  type Transformation,
  valueOfRuntime,
  widthOf,
} from './sources.js';

const IDENTITY: Transformation = Object.freeze({ type: 'DIRECT', subtype: 'IDENTITY', masking: false });

/** Suffix of the auxiliary columns that a governed scan has for visibility and joins: `<name>#…`. */
const SUFFIX = /#\w+$/;

/** Traces values and rows of one statement back to base columns. */
class LineageTrace implements StepTrace {
  readonly #plan: GovernedPlan;
  readonly #sources: Sources;
  readonly #found: Influences;
  /** Columns that have been followed, so that shared tables are traced only once. */
  readonly #seen = new Set<string>();
  readonly #walked = new Set<Query>();
  readonly #wholes = new Map<Query, Set<IndirectKind>>();

  constructor(plan: GovernedPlan, sources: Sources, found: Influences) {
    this.#plan = plan;
    this.#sources = sources;
    this.#found = found;
  }

  step(plan: GovernedPlan): LineageTrace {
    return new LineageTrace(plan, new Sources(plan.query), this.#found);
  }

  output(index: number, as: Transformation = IDENTITY): void {
    for (const expr of valuesAt(this.#plan.query, index)) this.value(expr, as);
  }

  named(name: string, as: Transformation): void {
    const { query } = this.#plan;
    const index = query.kind === 'select' ? query.outputs.findIndex((o) => o.name === name) : -1;
    if (index !== -1) this.output(index, as);
  }

  field(object: string, column: string, as: Transformation): void {
    this.#found.add(object, column, as);
  }

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
    // An ordered-set aggregate aggregates its sort keys.
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

  /**
   * Follows all values of a query, since each of them affects which rows it returns. Each query is followed once per
   * subtype.
   */
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
        // A spine has one row for each period between its bounds.
        if (leaf.kind === 'spine') whole(origin.query, 'FILTER');
        return;
      case 'rows':
        for (const arg of origin.made.args) this.value(arg, indirect('FILTER'));
        return;
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
    // Only policy uses SHOWN, for the row filter.
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
    // Even a constant mask depends on the column it replaces.
    const own = scan.relation.columns.find((c) => c.name === name.replace(SUFFIX, ''));
    if (own !== undefined) this.#base(own.physical, masked, scan);
  }

  #base(physical: string, as: Transformation, scan: GovernedScan | null): void {
    if (scan === null) throw new InternalError(`column ${physical} stands outside a scan`);
    const field = fieldOf(scan.relation, physical);
    if (field !== null) this.#found.add(field.object, field.column, as);
  }

  #runtimeAt(slot: number): GovernedRuntime | null {
    const from = this.#plan.slots[slot];
    return from?.kind === 'runtime' ? (this.#plan.runtime[from.index] ?? null) : null;
  }
}

const POLICY_FILTER = indirect('FILTER', true);

/** Marks conditions inside a scan as policy, since they determine which rows are masked. */
function policyIn(transformation: Transformation, scan: GovernedScan | null): Transformation {
  return scan === null || transformation.type === 'DIRECT'
    ? transformation
    : { ...transformation, policy: true };
}

/** Marks COUNT as masking, as OpenLineage does, because it reveals little about its argument. */
function aggregateTransformation(as: Transformation, { name }: FunctionDefinition): Transformation {
  return atLeast(as, 'AGGREGATION', name === 'count');
}

interface GraphColumn {
  readonly object: string;
  readonly column: string;
}

/** The public column of each store column with document fields. All other store columns are derived from the text. */
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

/** Returns the public column for upstream column `physical`; null for the number of rows behind a row of a rollup. */
function fieldOf(relation: Relation, physical: string): GraphColumn | null {
  const object = objectOf(relation);
  const declared = relation.columns.find((c) => c.physical === physical && !c.name.startsWith('#'));
  if (declared !== undefined) return { object, column: declared.name };
  if (relation.kind === 'facet') return { object, column: STORED.get(physical) ?? 'text' };
  if (relation.rollup !== undefined && physical === ROLLUP_ROWS) return null;
  const column = relation.rollup === undefined ? null : aggregatedColumn(relation.rollup, physical);
  if (column !== null) return { object, column };
  throw new InternalError(`column ${physical} of ${relation.name} is not declared`);
}

/** Returns the column of the entity from which column `name` of a rollup is computed; null for other columns. */
function aggregatedColumn({ time, measures }: Rollup, name: string): string | null {
  if (name === ROLLUP_TIME) return time?.column ?? null;
  const found = measures.find((m) => [m.count, m.sum, m.min, m.max].some((kept) => kept?.name === name));
  return found?.column ?? null;
}

export type { DirectKind, IndirectKind, Influence, Transformation } from './sources.js';

/** The sources of each result column, including those used by policy. */
export interface ColumnLineage {
  /** In the order of the plan's outputs. `name` is the output's name. */
  readonly outputs: readonly { readonly name: string; readonly inputs: readonly Influence[] }[];
  /** Columns that determine which rows are returned, how many, and in which order. */
  readonly rows: readonly Influence[];
}

/** Returns the column lineage of a governed plan. Columns that are not listed cannot affect the result. */
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
