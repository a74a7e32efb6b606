import { assertNever, InternalError } from '../errors/errors.js';
import { callNode } from '../plan/nodes.js';
import type {
  ColumnRef,
  EntityScan,
  Expr,
  FromItem,
  GovernedScan,
  Query,
  RecursionRef,
  RowSource,
  SourceId,
} from '../plan/plan.js';
import { recursionIn, stepValues } from '../plan/properties.js';
import { allQueries, childrenOf, leavesOf, visitExpr } from '../plan/walk.js';

/** Traces the columns of every FROM item of a statement to their sources. */
export class StatementLineage {
  readonly #scans = new Map<SourceId, EntityScan | GovernedScan>();
  readonly #queries = new Map<SourceId, Query>();
  readonly #runtime = new Set<SourceId>();
  readonly #made = new Map<SourceId, RowSource>();
  readonly #steps = new Map<SourceId, { readonly recursion: RecursionRef; readonly query: Query }>();
  readonly #known = new Map<Expr, ScannedColumns>();
  readonly #columns = new Map<string, ScannedColumns>();

  constructor(root: Query) {
    const tables = new Map<number, Query>();
    const refs: { readonly id: SourceId; readonly table: number }[] = [];
    for (const query of allQueries(root)) {
      if (query.kind === 'values') continue;
      for (const t of query.with) {
        tables.set(t.id, t.query);
        const recursion = t.recursive === true ? recursionIn(t.query, t.id) : null;
        if (recursion !== null) this.#steps.set(recursion.id, { recursion, query: t.query });
      }
      if (query.kind !== 'select') continue;
      for (const leaf of leavesOf(query.from)) this.#add(leaf, refs);
    }
    for (const { id, table } of refs) {
      const query = tables.get(table);
      if (query !== undefined) this.#queries.set(id, query);
    }
  }

  #add(
    leaf: Exclude<FromItem, { kind: 'join' }>,
    refs: { readonly id: SourceId; readonly table: number }[],
  ): void {
    if (leaf.kind === 'entity' || leaf.kind === 'governed') this.#scans.set(leaf.id, leaf);
    else if (leaf.kind === 'derived') this.#queries.set(leaf.id, leaf.query);
    else if (leaf.kind === 'spine') this.#queries.set(leaf.id, leaf.bounds);
    else if (leaf.kind === 'rows') this.#made.set(leaf.id, leaf);
    else if (leaf.kind === 'cte') refs.push({ id: leaf.id, table: leaf.table });
    else if (leaf.kind === 'runtime') this.#runtime.add(leaf.id);
  }

  scanOf(source: SourceId): EntityScan | GovernedScan | null {
    return this.#scans.get(source) ?? null;
  }

  /**
   * Returns the expressions that define a derived column: one, or one for each operand of a set operation. Empty for a
   * column of a runtime relation, whose rows contain only what the caller may see.
   */
  definitionsOf(ref: ColumnRef): readonly Expr[] {
    if (this.#runtime.has(ref.source)) return [];
    const made = this.#made.get(ref.source);
    if (made !== undefined) return [callOf(made)];
    const step = this.#steps.get(ref.source);
    if (step !== undefined)
      return stepValues(step.query, step.recursion, Number(ref.name.slice(1)) - 1, outputsAt);
    const query = this.#queries.get(ref.source);
    if (query === undefined) throw new InternalError(`column ${ref.name} refers to no FROM item`);
    return outputsAt(query, Number(ref.name.slice(1)) - 1);
  }

  /** Like `definitionsOf`, but keeps a recursive table's references to its previous step instead of resolving them. */
  armsOf(ref: ColumnRef): readonly Expr[] {
    const step = this.#steps.get(ref.source);
    return step === undefined
      ? this.definitionsOf(ref)
      : outputsAt(step.query, Number(ref.name.slice(1)) - 1);
  }

  /** Returns the runtime relation columns that `expr` is computed from, also through derived tables and subqueries. */
  runtimeColumnsUnder(expr: Expr): readonly ColumnRef[] {
    const found: ColumnRef[] = [];
    if (this.#runtime.size === 0) return found;
    const seen = new Set<string>();
    const collect = (root: Expr): void =>
      visitExpr(root, (e) => {
        if (e.kind === 'scalar_query') this.outputsOf(e.query).forEach(collect);
        if (e.kind !== 'column' || isKnown(seen, e)) return;
        if (this.#runtime.has(e.source)) found.push(e);
        else if (this.scanOf(e.source) === null) this.definitionsOf(e).forEach(collect);
      });
    collect(expr);
    return found;
  }

  /** Returns the expressions of a query's first output. */
  outputsOf(query: Query): readonly Expr[] {
    return outputsAt(query, 0);
  }

  /** Returns each scanned column that `expr` is computed from, once. Filters of subqueries are ignored. */
  columnsUnder(expr: Expr): readonly ScannedColumn[] {
    return [...this.#under(expr).values()];
  }

  #under(expr: Expr): ScannedColumns {
    if (expr.kind === 'column') return this.#underColumn(expr);
    const known = this.#known.get(expr);
    if (known !== undefined) return known;
    const under = this.#underParts(expr);
    this.#known.set(expr, under);
    return under;
  }

  #underColumn(ref: ColumnRef): ScannedColumns {
    const id = idOf(ref);
    const known = this.#columns.get(id);
    if (known !== undefined) return known;
    const scan = this.scanOf(ref.source);
    const under =
      scan === null
        ? union(this.definitionsOf(ref).map((e) => this.#under(e)))
        : new Map([[id, { scan, name: ref.name }]]);
    this.#columns.set(id, under);
    return under;
  }

  #underParts(expr: Expr): ScannedColumns {
    // `grouping` tells which grouping keys a row has, not their values.
    if (expr.kind === 'grouping') return NOTHING;
    const parts = expr.kind === 'scalar_query' ? this.outputsOf(expr.query) : childrenOf(expr);
    if (parts.length === 0) return NOTHING;
    return union(parts.map((e) => this.#under(e)));
  }
}

/** Returns the call of a row function. Each of its columns is computed from all arguments. */
function callOf({ definition, args, columns }: RowSource): Expr {
  return callNode(definition, args, columns[0] ?? 'text');
}

/** A scanned column that a value is computed from. */
export interface ScannedColumn {
  readonly scan: EntityScan | GovernedScan;
  readonly name: string;
}

type ScannedColumns = ReadonlyMap<string, ScannedColumn>;

const NOTHING: ScannedColumns = new Map();

/** Returns the union of `parts`, without a copy if the first already contains the others. */
function union(parts: readonly ScannedColumns[]): ScannedColumns {
  let whole = NOTHING;
  let own: Map<string, ScannedColumn> | null = null;
  for (const part of parts) {
    if (part.size === 0 || part === whole) continue;
    if (whole.size === 0) whole = part;
    else {
      for (const [id, scanned] of part) {
        if (whole.has(id)) continue;
        own ??= new Map(whole);
        own.set(id, scanned);
        whole = own;
      }
    }
  }
  return whole;
}

function idOf({ source, name }: ColumnRef): string {
  return `${source} ${name}`;
}

/** True if `ref` is in `seen`; adds it if not. */
function isKnown(seen: Set<string>, ref: ColumnRef): boolean {
  const { size } = seen;
  return seen.add(idOf(ref)).size === size;
}

/** Returns the expressions of output `index`: one, or one for each operand or VALUES row. */
export function outputsAt(query: Query, index: number): readonly Expr[] {
  const found: Expr[] = [];
  collectOutputs(query, index, found, true);
  return found;
}

/** Like `outputsAt`, without the right operands of EXCEPT, which contribute no values. */
export function valuesAt(query: Query, index: number): readonly Expr[] {
  const found: Expr[] = [];
  collectOutputs(query, index, found, false);
  return found;
}

function collectOutputs(query: Query, index: number, into: Expr[], withSubtrahends: boolean): void {
  switch (query.kind) {
    case 'select': {
      const output = query.outputs[index];
      if (output !== undefined) into.push(output.expr);
      return;
    }
    case 'set_operation':
      collectOutputs(query.left, index, into, withSubtrahends);
      if (withSubtrahends || query.operator !== 'except')
        collectOutputs(query.right, index, into, withSubtrahends);
      return;
    case 'values':
      for (const { [index]: value } of query.rows) if (value !== undefined) into.push(value);
      return;
    default:
      assertNever(query);
  }
}
