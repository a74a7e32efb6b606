import type { Access } from './access/access.js';
import { type BoundPlan, bind, bindMetrics } from './bind/index.js';
import type { Catalog, Joins } from './catalog/catalog.js';
import { ALL_FEATURES, type Features } from './catalog/features.js';
import type { MetricsRequest } from './catalog/grain.js';
import { emit } from './emit/emit.js';
import { queryError } from './errors/errors.js';
import { applyPolicy, govern } from './govern/govern.js';
import { type GovernedPlan, mint } from './govern/governed-plan.js';
import { type Population, populationsOf } from './govern/population.js';
import { PlanTemplate } from './govern/template.js';
import { type ParsedStatement, parse } from './text/parse.js';
import type { ShapedText } from './text/shape.js';
import { declaredType } from './types/declared-types.js';
import { type RequestedWorld, worldOf } from './world.js';

export interface CompileOptions {
  /** Postgres OIDs that the client declares for `$1 …`; 0 lets the compiler infer the type. */
  readonly parameterOids?: readonly number[];
  /** Default: the features that the catalog's tenant allows. */
  readonly features?: Features;
  /** Default: the join rule of the catalog. */
  readonly joins?: Joins;
  /** False if no model serves decoder operators, which then fail with E0521. Default: true. */
  readonly hasDecoder?: boolean;
  /** Kind of objects that names refer to. Default: entities. */
  readonly world?: RequestedWorld;
  /** The parse result of the text, if the caller already has it. */
  readonly parsed?: ParsedStatement;
  /** Names of the rollups that are built and fresh enough to use. Default: none. */
  readonly rollups?: ReadonlySet<string>;
}

/** Options for queries that the compiler generates. */
const OURS: CompileOptions = { features: ALL_FEATURES, joins: 'any' };

/**
 * Compiles OSL-SQL or raw SQL into a governed plan: parse, bind, apply policy, prove. `emit` turns the plan into SQL.
 *
 * @throws QueryError if the query is invalid or not allowed
 */
export function compile(
  text: string,
  catalog: Catalog,
  access: Access,
  options: CompileOptions = {},
): GovernedPlan {
  return compileTemplate(text, null, catalog, access, options).plan;
}

/** Compiles a metrics request into a governed plan. @throws QueryError if it is invalid or not allowed */
export function compileMetrics(
  request: MetricsRequest,
  catalog: Catalog,
  access: Access,
  { rollups }: Pick<CompileOptions, 'rollups'> = {},
): GovernedPlan {
  try {
    const bound = bindMetrics(request, catalog, access);
    const hop = (text: string): GovernedPlan => compile(text, catalog, access, OURS);
    return requireSendable(govern(bound, access, catalog, hop, rollups));
  } catch (error) {
    throw error instanceof RangeError ? queryError('tooDeep', {}) : error;
  }
}

/**
 * Compiles the populations of a query (the rows behind its aggregates). `compile` must accept the query, and
 * `comparesOverlaps` must be true for its plan.
 *
 * @param query a parsed text, or a metrics request
 * @throws QueryError E0537 if its rows cannot be compared with those of other queries
 */
export function compilePopulations(
  query: ParsedStatement | MetricsRequest,
  catalog: Catalog,
  access: Access,
  options: CompileOptions = {},
): readonly Population[] {
  const bound =
    'node' in query ? bindStatement(query, catalog, access, options) : bindMetrics(query, catalog, access);
  return populationsOf(bound, access, catalog);
}

export interface CompiledStatement {
  readonly plan: GovernedPlan;
  /** Template for all texts of the same shape; null if the plan is only valid for this text. */
  readonly template: PlanTemplate | null;
}

/**
 * Compiles `text`, and builds a template that lets other texts of the same shape skip compilation.
 *
 * @param shaped the result of `shapeOf(text)`; without it, no template is built
 * @throws QueryError as `compile` does
 */
export function compileTemplate(
  text: string,
  shaped: ShapedText | null,
  catalog: Catalog,
  access: Access,
  options: CompileOptions = {},
): CompiledStatement {
  const steps = compileInSteps(text, shaped, catalog, access, options);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** `compileTemplate` as a generator that yields between steps, so that a long text does not block the event loop. */
export function* compileInSteps(
  text: string,
  shaped: ShapedText | null,
  catalog: Catalog,
  access: Access,
  options: CompileOptions = {},
): Generator<void, CompiledStatement> {
  try {
    const parsed = options.parsed ?? parse(text);
    yield;
    const bound = bindStatement(parsed, catalog, access, options);
    yield;
    const compileHop = (hop: string): GovernedPlan => compile(hop, catalog, access, OURS);
    const { fields, proof } = applyPolicy(bound, access, catalog, compileHop, options.rollups);
    yield;
    const plan = requireSendable(mint(fields, proof));
    yield;
    // No template if words were quoted for the parser: positions in the tree have then shifted.
    const plain = shaped !== null && parsed.source.quoted.length === 0;
    return { plan, template: plain ? PlanTemplate.of(plan, bound, shaped.literals) : null };
  } catch (error) {
    throw error instanceof RangeError ? queryError('tooDeep', {}) : error;
  }
}

/** Limit of the Postgres protocol, whose parameter count is a uint16. */
const MAX_VALUES = 65_535;

function requireSendable(plan: GovernedPlan): GovernedPlan {
  if (emit(plan).slots.length > MAX_VALUES)
    throw queryError('tooLarge', { what: 'the number of values in the statement', limit: MAX_VALUES });
  return plan;
}

/** Binds a parsed statement, without applying policy. Exported only for `error-position.ts`. */
export function bindStatement(
  parsed: ParsedStatement,
  catalog: Catalog,
  access: Access,
  options: CompileOptions,
): BoundPlan {
  return bind(
    parsed,
    catalog,
    access,
    options.features ?? catalog.features ?? ALL_FEATURES,
    (options.parameterOids ?? []).map(declaredType),
    worldOf(parsed, options.world ?? 'semantic', catalog),
    options.hasDecoder,
    options.joins,
  );
}
