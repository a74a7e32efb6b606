import type { A_Indirection, Node, ResTarget, SubLink } from '@pgsql/types';
import { unqualifiedName } from '../../catalog/catalog.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { columnRef } from '../../plan/nodes.js';
import type { Expr, PlanOutput } from '../../plan/plan.js';
import { Positions } from '../../plan/select-nodes.js';
import { nearestIdentifier } from '../../text/text.js';
import { constantText, type Location, nameParts, stringOf } from '../ast.js';
import { STANDARD_JSON_NAMES } from '../expressions/standard-json.js';
import {
  type BindEnvironment,
  DUPLICATE_MARK,
  isNameable,
  mayReferTo,
  referenceOf,
  type ScopeColumn,
  type ScopeItem,
  type UsingJoin,
} from '../scope.js';

/** Returns the qualifier of `.*`, which is empty for a bare `*`; null if `target` is not a star. */
export function starOf(target: ResTarget): readonly string[] | null {
  const val = target.val;
  if (val !== undefined && 'A_Indirection' in val) return starOfRow(val.A_Indirection);
  if (val === undefined || !('ColumnRef' in val)) return null;
  const fields = val.ColumnRef.fields ?? [];
  const last = fields.at(-1);
  return last === undefined || !('A_Star' in last) ? null : fields.slice(0, -1).map(stringOf);
}

/** Returns the qualifier of `(c).*`, which means `c.*` if `c` is a FROM item; null for anything else. */
function starOfRow({ arg, indirection = [] }: A_Indirection): readonly string[] | null {
  const [star, ...more] = indirection;
  if (star === undefined || more.length > 0 || !('A_Star' in star)) return null;
  const fields = arg !== undefined && 'ColumnRef' in arg ? (arg.ColumnRef.fields ?? []) : [];
  return fields.length === 1 ? fields.map(stringOf) : null;
}

/** The type of `columnValue`, which is passed in to avoid an import cycle. */
type StarColumnValue = (
  found: { readonly ref: Expr; readonly item: ScopeItem; readonly column: ScopeColumn },
  ctx: BindEnvironment['ctx'],
  at: Location,
) => Expr;

/** Expands `*` to all columns that the caller may use, in declared order; see `UsingJoin` for merged ones. */
export function expandStar(
  qualifier: readonly string[],
  target: ResTarget,
  env: BindEnvironment,
  toValue: StarColumnValue,
): readonly PlanOutput[] {
  const { scope } = env;
  if (qualifier.length > 0) {
    const item = qualifiedItem(qualifier, target, env);
    return starredColumns(item).map(([shown, c]) => starOutput(item, shown, c, target, env, toValue));
  }
  if (scope.items.length === 0) {
    throw env.ctx.syntax('SELECT * with no FROM has nothing to list', target.location);
  }
  const all = scope.items.flatMap((item) =>
    starredColumns(item)
      .filter(([shown]) => item.joined?.has(shown) !== true)
      .map(([shown, c]): StarColumn => ({ item, shown, c })),
  );
  return (scope.using ?? [])
    .reduce(mergedFirst, all)
    .map(({ item, shown, c }) => starOutput(item, shown, c, target, env, toValue));
}

interface StarColumn {
  readonly item: ScopeItem;
  readonly shown: string;
  readonly c: ScopeColumn;
}

/** Moves the columns that `join` merged before all others of its sides, whose columns are adjacent in `all`. */
function mergedFirst(all: readonly StarColumn[], { sources, columns }: UsingJoin): readonly StarColumn[] {
  const byName = new Map(all.map((c) => [`${c.item.source} ${c.shown}`, c]));
  const merged = new Set(columns.flatMap(({ source, name }) => byName.get(`${source} ${name}`) ?? []));
  const start = all.findIndex((c) => sources.has(c.item.source));
  const others = all.filter((c) => !merged.has(c));
  return start < 0 ? all : [...others.slice(0, start), ...merged, ...others.slice(start)];
}

function starredColumns(item: ScopeItem): readonly (readonly [string, ScopeColumn])[] {
  return [...item.columns].filter(([, c]) => c.starred);
}

function qualifiedItem(qualifier: readonly string[], target: ResTarget, env: BindEnvironment): ScopeItem {
  const { ctx, scope } = env;
  const reference = referenceOf([...qualifier, ''], ctx.world);
  const item = reference === null ? undefined : scope.items.find((i) => mayReferTo(i, reference));
  if (item !== undefined) return item;
  const near = nearestIdentifier(qualifier.at(-1) ?? '', scope.items.map((i) => i.alias).filter(isNameable));
  throw ctx.error('unknownAlias', { alias: qualifier.join('.'), near }, target.location);
}

function starOutput(
  item: ScopeItem,
  shown: string,
  column: ScopeColumn,
  target: ResTarget,
  { ctx }: BindEnvironment,
  toValue: StarColumnValue,
): PlanOutput {
  const source = column.source ?? item.source;
  ctx.countValues(target.location);
  const ref = ctx.at(columnRef(source, column.name, column.type), target.location);
  if (column.computed === undefined && column.merged === undefined) ctx.use(source, column.name);
  const expr: Expr = toValue({ ref, item, column }, ctx, target.location);
  return { name: shown.split(DUPLICATE_MARK)[0] ?? shown, expr };
}

/** Returns the name of an output without an alias, as Postgres chooses it. */
export function defaultName(node: Node): string {
  return chosenName(node).name;
}

/** A default name. A weak one, such as the type of a cast, yields to the type of a cast around it. */
interface ChosenName {
  readonly name: string;
  readonly weak: boolean;
}

const UNNAMED: ChosenName = { name: '?column?', weak: true };

function chosenName(node: Node): ChosenName {
  if ('TypeCast' in node) {
    const inner = chosenNameOf(node.TypeCast.arg);
    if (!inner.weak) return inner;
    return { name: nameParts(node.TypeCast.typeName?.names).at(-1) ?? inner.name, weak: true };
  }
  if ('CaseExpr' in node) {
    const last = chosenNameOf(node.CaseExpr.defresult);
    return last.weak ? { name: 'case', weak: true } : last;
  }
  if ('CollateClause' in node) return chosenNameOf(node.CollateClause.arg);
  if ('A_Indirection' in node) return fieldName(node.A_Indirection);
  const name = ownName(node);
  return name === null ? UNNAMED : { name, weak: false };
}

function chosenNameOf(node: Node | undefined): ChosenName {
  return node === undefined ? UNNAMED : chosenName(node);
}

/** Returns the name that a column, a call or other syntax with a name of its own gives; null for other nodes. */
function ownName(node: Node): string | null {
  if ('ColumnRef' in node) return stringOf(node.ColumnRef.fields?.at(-1));
  if ('FuncCall' in node) {
    const name = nameParts(node.FuncCall.funcname).at(-1) ?? null;
    const arg = node.FuncCall.args?.[0];
    return name === 'measure' && arg !== undefined ? measureName(arg) : name;
  }
  if ('CoalesceExpr' in node) return 'coalesce';
  if ('GroupingFunc' in node) return 'grouping';
  if ('MinMaxExpr' in node) return node.MinMaxExpr.op === 'IS_LEAST' ? 'least' : 'greatest';
  if ('A_Expr' in node && node.A_Expr.kind === 'AEXPR_NULLIF') return 'nullif';
  if ('A_ArrayExpr' in node) return 'array';
  if ('RowExpr' in node) return 'row';
  if ('SQLValueFunction' in node)
    return (node.SQLValueFunction.op ?? '').replace(/^SVFOP_|_N$/g, '').toLowerCase();
  if ('SubLink' in node) return subqueryName(node.SubLink);
  return STANDARD_JSON_NAMES.get(Object.keys(node)[0] ?? '') ?? null;
}

/** Returns the name of the last field, or of the subscripted value if no field is named. */
function fieldName({ arg, indirection = [] }: A_Indirection): ChosenName {
  const field = indirection.findLast((i) => 'String' in i);
  return field === undefined ? chosenNameOf(arg) : { name: stringOf(field), weak: false };
}

/** The names of the columns of scalar subqueries that have been bound. */
const NAMES = new WeakMap<SubLink, string>();

export function nameSubquery(node: SubLink, name: string): void {
  NAMES.set(node, name);
}

function subqueryName(node: SubLink): string | null {
  if (node.subLinkType === 'EXISTS_SUBLINK') return 'exists';
  if (node.subLinkType === 'ARRAY_SUBLINK') return 'array';
  return NAMES.get(node) ?? null;
}

function measureName(arg: Node): string {
  if ('ColumnRef' in arg) return stringOf(arg.ColumnRef.fields?.at(-1));
  return unqualifiedName('metrics', constantText(arg) ?? 'measure');
}

/** The outputs of a SELECT, indexed for GROUP BY, ORDER BY and DISTINCT ON. */
export class SelectList {
  readonly #outputs: readonly PlanOutput[];
  #byName: ReadonlyMap<string, readonly PlanOutput[]> | null = null;
  #positions: Positions | null = null;
  readonly #several = new Map<string, boolean>();

  constructor(outputs: readonly PlanOutput[]) {
    this.#outputs = outputs;
  }

  get length(): number {
    return this.#outputs.length;
  }

  /** @param position counted from 1 */
  at(position: number): PlanOutput | undefined {
    return this.#outputs[position - 1];
  }

  named(name: string): readonly PlanOutput[] {
    this.#byName ??= groupByName(this.#outputs);
    return this.#byName.get(name) ?? [];
  }

  /** True if several different expressions among the outputs have this name. */
  meansSeveral(name: string): boolean {
    const known = this.#several.get(name);
    if (known !== undefined) return known;
    const several = new Set(this.named(name).map((o) => fingerprint(o.expr))).size > 1;
    this.#several.set(name, several);
    return several;
  }

  positionOf(expr: Expr): number | null {
    this.#positions ??= new Positions(this.#outputs);
    return this.#positions.of(expr);
  }
}

function groupByName(outputs: readonly PlanOutput[]): ReadonlyMap<string, readonly PlanOutput[]> {
  const names = new Map<string, PlanOutput[]>();
  for (const output of outputs) {
    const same = names.get(output.name);
    if (same === undefined) names.set(output.name, [output]);
    else same.push(output);
  }
  return names;
}
