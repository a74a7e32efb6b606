import type { Access } from './access/access.js';
import { type BoundPlan, bind, bindMetrics } from './bind/index.js';
import type { Catalog, Joins } from './catalog/catalog.js';
import { ALL_FEATURES, type Features } from './catalog/features.js';
import type { MetricsRequest } from './catalog/grain.js';
import { emit } from './emit/emit.js';
import { queryError } from './errors/errors.js';
import { govern } from './govern/govern.js';
import type { GovernedPlan } from './govern/governed-plan.js';
import { PlanTemplate } from './govern/template.js';
import { type ParsedStatement, parse } from './text/parse.js';
import type { ShapedText } from './text/shape.js';
import { declaredType } from './types/declared-types.js';
import { type AskedWorld, worldOf } from './world.js';

export interface CompileOptions {
  /** Types that the client declares for `$1 …`, by Postgres OID; 0: inferred by the compiler. */
  readonly parameterOids?: readonly number[];
  /** Default: the features that the catalog's tenant allows. */
  readonly features?: Features;
  /** The join rule. Default: that of the catalog. */
  readonly joins?: Joins;
  /** True if decoder operators have a model to ask; without one they fail with E0521. Default: true. */
  readonly hasDecoder?: boolean;
  /** Meaning of names: entities or tables. Default: OSL-SQL. */
  readonly world?: AskedWorld;
  /** The parsed statement of the text, if the caller has it already. */
  readonly parsed?: ParsedStatement;
  /** Rollups that may answer the question: built, and not too old. Default: none. */
  readonly rollups?: ReadonlySet<string>;
}

/** Options for steps of a question, which the compiler writes itself. */
const OURS: CompileOptions = { features: ALL_FEATURES, joins: 'any' };

/**
 * OSL-SQL, or raw SQL over the allowlist, to a governed plan: parse, bind, govern. `emit` makes SQL of it.
 *
 * @throws QueryError for everything that the caller can mend
 */
export function compile(
  text: string,
  catalog: Catalog,
  access: Access,
  options: CompileOptions = {},
): GovernedPlan {
  return compileTemplate(text, null, catalog, access, options).plan;
}

/**
 * A metrics question to a governed plan: the query that it means, then as any other.
 *
 * @throws QueryError for everything that the caller can mend
 */
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

export interface CompiledStatement {
  readonly plan: GovernedPlan;
  /** Plan for all texts of the same shape; null if it holds for this text only. */
  readonly template: PlanTemplate | null;
}

/**
 * Compiles `text`, of which `shaped` is what `shapeOf` says, so that other texts of its shape need not be compiled.
 * A text without a shape has no template.
 *
 * @throws QueryError as `compile` does
 */
export function compileTemplate(
  text: string,
  shaped: ShapedText | null,
  catalog: Catalog,
  access: Access,
  options: CompileOptions = {},
): CompiledStatement {
  const steps = compiling(text, shaped, catalog, access, options);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Compiles in steps, between which the caller of `next` may do something else: for texts so long that all of them at
 * once would take too long.
 */
export function* compiling(
  text: string,
  shaped: ShapedText | null,
  catalog: Catalog,
  access: Access,
  options: CompileOptions = {},
): Generator<void, CompiledStatement> {
  try {
    const parsed = options.parsed ?? parse(text);
    yield;
    const bound = boundPlan(parsed, catalog, access, options);
    yield;
    const plan = requireSendable(
      govern(bound, access, catalog, (hop) => compile(hop, catalog, access, OURS), options.rollups),
    );
    yield;
    // If words were quoted for the parser, positions in its tree are not those of the text.
    const plain = shaped !== null && parsed.source.quoted.length === 0;
    return { plan, template: plain ? PlanTemplate.of(plan, bound, shaped.literals) : null };
  } catch (error) {
    throw error instanceof RangeError ? queryError('tooDeep', {}) : error;
  }
}

/** Maximum number of values in one statement of the protocol. */
const MAX_VALUES = 65_535;

/** Refuses a statement with more values before any of it is sent. */
function requireSendable(plan: GovernedPlan): GovernedPlan {
  if (emit(plan).slots.length > MAX_VALUES)
    throw queryError('tooLarge', { what: 'the number of values in the statement', limit: MAX_VALUES });
  return plan;
}

/** Binds a parsed statement. Exported for `place-of-fault.ts` only. */
export function boundPlan(
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
