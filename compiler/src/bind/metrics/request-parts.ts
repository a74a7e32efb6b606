import type { Node } from '@pgsql/types';
import { type Grain, type MetricsRequest, parseGrain } from '../../catalog/grain.js';
import { assertNever, InternalError, QueryError, queryError } from '../../errors/errors.js';
import { resolveFunction } from '../../functions/resolve.js';
import { inType, isNotNull, nullOf } from '../../plan/nodes.js';
import type { Expr, Query, Select } from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import { queryOf, someExpr } from '../../plan/walk.js';
import { isArray } from '../../types/types.js';
import { conjunctsOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { bindPredicateNode } from '../expressions/expression.js';
import { parseExpression } from '../manifest/expression.js';
import { innerScope, plainEnvironment } from '../scope.js';
import { aggregate, allRowsOf, derivedRows, unnamedOutputs } from './build.js';
import { type DimensionKey, dimensionNamed, keyOf, timeOf, valueOfKey } from './dimensions.js';
import { EntityRows } from './entity-rows.js';
import { aggregating, type LeafFigure, unknownMetric } from './metric-access.js';
import { aggregateOverItem, namesIn } from './metric-value.js';
import { notAfter, notBefore } from './time.js';

/** The parts of a metrics request that all its subqueries share. */
export interface SharedMetricParts {
  readonly keys: readonly DimensionKey[];
  readonly conditions: readonly Condition[];
  readonly timeConstraint: MetricsRequest['timeConstraint'];
}

/** Computes the simple metrics of one entity in a single pass over its rows. */
export function simplePart(
  leaves: readonly LeafFigure[],
  asked: SharedMetricParts,
  ctx: BindContext,
): FigureQuery {
  const [first] = leaves;
  const name = first?.asked ?? '';
  const source = sourceOf(first?.metric.entity ?? '', name, ctx);
  const values = new Map(leaves.map((leaf) => [leaf.key, simpleValue(leaf, source, ctx)]));
  const keys = asked.keys.map((key) => valueOfKey(key, source, name, ctx));
  const where = [...rowConditions(asked, source, name, ctx), ...withinTime(asked, source, name, ctx)];
  return {
    keys,
    values,
    query: (more) =>
      selectOf({ from: source.from, where: Object.freeze(where), grouped: true, groupBy: keys, ...more }),
  };
}

/** Returns the rows of an entity. If the caller may not read it, the metric is reported as unknown. */
export function sourceOf(entity: string, asked: string, ctx: BindContext): EntityRows {
  return hideAsUnknown(asked, ctx, () => new EntityRows(entity, ctx));
}

function simpleValue(leaf: LeafFigure, source: EntityRows, ctx: BindContext): Expr {
  const { metric, filters, asked } = leaf;
  if (metric.type !== 'simple') throw unknownMetric(asked, ctx);
  const env = aggregating([source.root], ctx);
  return hideAsUnknown(asked, ctx, () =>
    ctx.withoutPositions(() => aggregateOverItem(metric, filters, source.root, env)),
  );
}

/**
 * Reports hidden columns as an unknown metric, because a metric only exists for callers who may read all its columns.
 */
export function hideAsUnknown<T>(metric: string, ctx: BindContext, f: () => T): T {
  try {
    return f();
  } catch (error) {
    if (error instanceof QueryError && HIDDEN.has(error.entry)) throw unknownMetric(metric, ctx);
    throw error;
  }
}

const HIDDEN: ReadonlySet<string> = new Set(['unknownColumn', 'unknownRelation', 'denied']);

export function rowConditions(
  asked: SharedMetricParts,
  source: EntityRows,
  metric: string,
  ctx: BindContext,
): readonly Expr[] {
  return asked.conditions.map((condition) =>
    predicateOf(
      condition,
      (term) => {
        if (term.kind === 'metric') throw unknownMetric(term.name, ctx);
        return valueOfKey(term.key, source, metric, ctx);
      },
      ctx,
    ),
  );
}

export function withinTime(
  asked: SharedMetricParts,
  source: EntityRows,
  metric: string,
  ctx: BindContext,
): readonly Expr[] {
  if (asked.timeConstraint === null) return [];
  const { start, end } = asked.timeConstraint;
  const time = timeOf(source, metric, ctx);
  return [
    ...(start === null ? [] : [notBefore(time, start, ctx)]),
    ...(end === null ? [] : [notAfter(time, end, ctx)]),
  ];
}

type Outermost = Pick<Select, 'outputs'> & Partial<Pick<Select, 'having' | 'orderBy' | 'limit'>>;

/** The keys and leaf metric values of a SELECT, as expressions, and a function that completes the SELECT. */
export interface FigureQuery {
  readonly keys: readonly Expr[];
  readonly values: ReadonlyMap<string, Expr>;
  query(more: Outermost): Query;
}

/**
 * Combines the parts by UNION ALL and groups by the keys again, so that each group has one row with the values of all
 * parts. NULL keys are grouped like any other value.
 */
export function combineParts(parts: readonly [FigureQuery, ...FigureQuery[]], ctx: BindContext): FigureQuery {
  const [first, ...rest] = parts;
  if (rest.length === 0) return first;
  const leaves = parts.flatMap((p) => [...p.values].map(([key, { type }]) => ({ key, type })));
  const queries = parts.map((part) => {
    const values = leaves.map(({ key, type }) => part.values.get(key) ?? nullOf(type));
    return part.query({ outputs: unnamedOutputs([...part.keys, ...values]) });
  });
  const [query, ...others] = queries;
  if (query === undefined) throw new InternalError('an answer has a part');
  const rows = derivedRows(allRowsOf([query, ...others]), ctx);
  const width = first.keys.length;
  const keys = rows.columns.slice(0, width);
  const values = leaves.map(({ key }, i): [string, Expr] => [key, onlyOne(rows.columns[width + i], ctx)]);
  return {
    keys,
    values: new Map(values),
    query: (more) => selectOf({ from: rows.item, grouped: true, groupBy: keys, ...more }),
  };
}

/** Returns the only non-NULL value of `column` in a group. */
function onlyOne(column: Expr | undefined, ctx: BindContext): Expr {
  if (column === undefined) throw new InternalError('a figure has a column');
  if (typeof resolveFunction('max', [column.type]) !== 'string')
    return inType(aggregate('max', [column], null, ctx), column.type);
  if (column.type === 'bool') return aggregate('bool_or', [column], null, ctx);
  const all = aggregate('array_agg', [column], isNotNull(column), ctx);
  const indices = Object.freeze([ctx.constant('1', 'int4')]);
  if (isArray(column.type)) throw new InternalError(`a figure of type ${column.type}`);
  return Object.freeze({ kind: 'subscript', arg: all, indices, type: column.type });
}

type ResolvedBuilder =
  | { readonly kind: 'key'; readonly key: DimensionKey }
  | { readonly kind: 'metric'; readonly name: string };

/** A conjunct of a `where`. `terms` maps `n` to the meaning of the name `"{{n}}"`, if it occurs in `node`. */
export interface Condition {
  readonly node: Node;
  readonly template: Template;
  readonly terms: ReadonlyMap<number, ResolvedBuilder>;
}

/** Parses conditions and resolves the names in them. @throws QueryError E0511, E0512 */
export function conditionsOf(
  texts: readonly string[],
  fallback: Grain,
  ctx: BindContext,
): readonly Condition[] {
  return texts.flatMap((text) => {
    const template = parseTemplate(text);
    const node = parsedTemplate(template);
    const conditions = conjunctsOf(node).map((conjunct) => conditionOf(conjunct, template, fallback, ctx));
    const used = new Set(conditions.flatMap((c) => [...c.terms.keys()]));
    if (template.builders.some((_, i) => !used.has(i)))
      throw ctx.unsupported('a builder inside a quoted text', undefined);
    return conditions;
  });
}

/** Parses the template. Errors have no position, because the parsed text differs from the caller's text. */
function parsedTemplate({ sql }: Template): Node {
  try {
    return parseExpression(sql);
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw new QueryError(error.entry, error.message, { ...error, position: null });
  }
}

function conditionOf(node: Node, template: Template, fallback: Grain, ctx: BindContext): Condition {
  const terms = new Map<number, ResolvedBuilder>();
  for (const name of namesIn(node)) {
    const index = builderAt(name, template);
    const builder = index === null ? undefined : template.builders[index];
    if (index === null || builder === undefined) throw bareName(name, ctx);
    terms.set(index, termOf(builder, fallback, ctx));
  }
  return { node, template, terms };
}

function termOf(builder: NameBuilder, fallback: Grain, ctx: BindContext): ResolvedBuilder {
  switch (builder.kind) {
    case 'metric':
      return { kind: 'metric', name: builder.name };
    case 'time': {
      const named = dimensionNamed(builder.name, ctx);
      return { kind: 'key', key: keyOf(named, builder.grain ?? named.grain ?? fallback, fallback, ctx) };
    }
    case 'dimension':
    case 'entity': {
      const { dimension, grain } = dimensionNamed(builder.name, ctx);
      if (grain !== null) return { kind: 'key', key: keyOf({ dimension, grain }, null, fallback, ctx) };
      return { kind: 'key', key: { name: dimension.shown, dimension, grain: null } };
    }
    default:
      return assertNever(builder);
  }
}

function bareName(name: string, ctx: BindContext) {
  const shown = name.replaceAll(/[^\w.]/g, '').slice(0, 64);
  const hint = "write {{ Dimension('entity__column') }}";
  return ctx.unsupported(`name \`${shown}\` outside of a builder`, undefined, hint);
}

/** Binds a condition. @param meaning returns the value of a term @throws QueryError E0511 */
export function predicateOf(
  condition: Condition,
  meaning: (term: ResolvedBuilder) => Expr,
  ctx: BindContext,
): Expr {
  const { node, template, terms } = condition;
  const bind = (): Expr =>
    bindPredicateNode(node, {
      ...plainEnvironment(ctx, innerScope(null, [], new Map()), '`where`'),
      nameOf: (parts) => {
        const term = parts.length === 1 ? terms.get(builderAt(parts[0] ?? '', template) ?? -1) : undefined;
        if (term === undefined) throw bareName(parts.join('.'), ctx);
        return meaning(term);
      },
    });
  const predicate = ctx.withoutPositions(bind, 'caller');
  if (someExpr(predicate, (e) => queryOf(e) !== null))
    throw ctx.unsupported('a subquery in `where`', undefined);
  return predicate;
}

type NameBuilder =
  | { readonly kind: 'dimension' | 'entity' | 'metric'; readonly name: string }
  | { readonly kind: 'time'; readonly name: string; readonly grain: Grain | null };

/** A predicate with placeholders for names: `"{{n}}"` is `builders[n]`. Callers cannot write such a name. */
interface Template {
  readonly sql: string;
  readonly builders: readonly NameBuilder[];
}

const NAME = `(?:'([A-Za-z0-9_]{1,200})'|"([A-Za-z0-9_]{1,200})")`;
const BUILDER = new RegExp(
  `\\{\\{\\s*(Dimension|TimeDimension|Entity|Metric)\\s*\\(\\s*${NAME}\\s*(?:,\\s*${NAME}\\s*)?\\)\\s*\\}\\}`,
  'y',
);

const KINDS = { Dimension: 'dimension', Entity: 'entity', Metric: 'metric' } as const;

/**
 * Extracts the names from `text`: `{{ Dimension('customer__region') }}`, `{{ TimeDimension('metric_time', 'day') }}`,
 * `{{ Entity('customer') }}`, `{{ Metric('revenue') }}`.
 *
 * @throws QueryError E0511 for anything else between double braces
 */
function parseTemplate(text: string): Template {
  const builders: NameBuilder[] = [];
  let sql = '';
  let at = 0;
  for (let open = text.indexOf('{{'); open >= 0; open = text.indexOf('{{', at)) {
    BUILDER.lastIndex = open;
    const match = BUILDER.exec(text);
    const builder = match === null ? null : builderOf(match);
    if (builder === null) throw malformedTemplate();
    sql += `${text.slice(at, open)}"{{${builders.length}}}"`;
    builders.push(builder);
    at = BUILDER.lastIndex;
  }
  return { sql: sql + text.slice(at), builders };
}

/** Returns the index of the builder that a name `{{n}}` refers to; null for any other name. */
function builderAt(name: string, { builders }: Template): number | null {
  const [, digits] = /^\{\{(\d+)\}\}$/.exec(name) ?? [];
  const index = Number(digits);
  return builders[index] === undefined ? null : index;
}

function builderOf(match: RegExpExecArray): NameBuilder | null {
  const [, word, single, double, singleGrain, doubleGrain] = match;
  const name = single ?? double ?? '';
  const written = singleGrain ?? doubleGrain ?? null;
  if (word === 'TimeDimension') {
    const grain = written === null ? null : parseGrain(written);
    return written !== null && grain === null ? null : { kind: 'time', name, grain };
  }
  if (written !== null || (word !== 'Dimension' && word !== 'Entity' && word !== 'Metric')) return null;
  return { kind: KINDS[word], name };
}

function malformedTemplate() {
  return queryError('unsupported', {
    construct: 'what stands between `{{` and `}}`',
    hint: "write {{ Dimension('…') }}, {{ TimeDimension('…', 'day') }}, {{ Entity('…') }} or {{ Metric('…') }}",
  });
}
