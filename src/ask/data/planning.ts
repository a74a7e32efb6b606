import { setImmediate } from 'node:timers/promises';
import {
  assertNever,
  type CompiledStatement,
  type CompileOptions,
  compileInSteps,
  compileMetrics,
  compileTemplate,
  emit,
  GovernedPlan,
  type MetricsRequest,
  oneStatement,
  type PlanTemplate,
  parse,
  QueryError,
  queryError,
  type RequestedWorld,
  type ShapedText,
  withErrorPosition,
} from 'osl-compiler';
import { isEmpty } from '../../../policy/index.js';
import { inTurns } from '../../base/in-turns.js';
import { compileTurns } from '../../base/threads/main-thread-time.js';
import { ValueError } from '../../engine/index.js';
import { isShort } from '../parsing/index.js';
import type { Caller } from '../request/caller.js';
import type { DecisionRecord } from '../request/ledger.js';
import type { RecordingParts } from '../request/parts.js';
import type { QuestionBody } from '../request/request-target.js';
import type { PlanningCaller, PlanningParts, Rollups } from './parts.js';
import { withinDeadline } from './query-limits.js';
import type { DataQuestion, PlannedQuestion } from './question.js';

export type CompilingParts = PlanningParts & Pick<RecordingParts, 'log'>;

/** Returns the governed plan of a query: the prepared one, a cached one or a newly compiled one. */
export function planOf(
  parts: CompilingParts,
  caller: PlanningCaller,
  question: PlannedQuestion,
  record: Pick<DecisionRecord, 'mark'>,
): GovernedPlan | Promise<GovernedPlan> {
  const { access, manifest } = caller;
  const usable = question.mayBeOld === true ? parts.rollups.usable(manifest) : NO_ROLLUPS;
  if (question.body.kind === 'metrics') return metricsPlan(parts, caller, question.body.request, usable);
  const prepared = preparedPlan(question);
  // INVARIANT: a plan is reused only under equal versions and an equal access signature.
  if (
    prepared?.catalogVersion === manifest.catalog.version &&
    prepared.accessSignature === access.signature &&
    (prepared.rollup === null || usable.builtAt.has(prepared.rollup))
  )
    return prepared;
  const { text, world } = statementOf(question.body);
  const { parameterOids } = question;
  const rights = rightsKey(caller, world, parameterOids, usable);
  const rollups: ReadonlySet<string> = new Set(usable.builtAt.keys());
  const options = { parameterOids, world, hasDecoder: parts.content.hasDecoder, rollups };
  if (!isShort(text))
    return longPlan(parts, caller, rights, text, options, record).catch((error: unknown) => {
      throw asEmptySql(error, question.body);
    });
  const compileShaped = (shaped: ShapedText | null): CompiledTemplate => {
    try {
      const parsed = parse(text);
      const compile = (): CompiledTemplate =>
        compileTemplate(text, shaped, manifest.catalog, access, { ...options, parsed });
      const compileInTime = (): CompiledTemplate => withinDeadline(parts, caller, text.length, compile);
      return isEmpty(access) ? facetsOnly(compileInTime) : compileInTime();
    } catch (error) {
      throw asEmptySql(error, question.body);
    }
  };
  return cachedOrCompiled(parts, caller, rights, text, compileShaped);
}

/** Returns the cached plan of a text, or compiles the text when it is the caller's turn. */
function cachedOrCompiled(
  { plans }: CompilingParts,
  { identity }: PlanningCaller,
  rights: string,
  text: string,
  compile: (shaped: ShapedText | null) => CompiledStatement,
): GovernedPlan | Promise<GovernedPlan> {
  const first = plans.find(rights, text);
  if (first instanceof GovernedPlan) return first;
  return compileTurns.run(identity.subject, (hasWaited) => {
    // Another text of the same shape may have been compiled meanwhile.
    const cached = hasWaited ? plans.find(rights, text) : first;
    if (cached instanceof GovernedPlan) return cached;
    const compiled = compile(cached.shaped);
    plans.add(rights, text, cached.shaped, compiled);
    return compiled.plan;
  });
}

function rightsKey(
  { access, manifest }: PlanningCaller,
  world: RequestedWorld,
  parameterOids: readonly number[],
  { key }: UsableRollups,
): string {
  return `${manifest.catalog.version} ${access.signature} ${world} ${parameterOids.join(',')} ${key}`;
}

type UsableRollups = ReturnType<Rollups['usable']>;

const NO_ROLLUPS: UsableRollups = Object.freeze({ builtAt: new Map(), key: '' });

/** Returns the plan template of a query planned just before; null for a metrics query or if no cached one fits. */
export function templateOf(
  { plans }: Pick<PlanningParts, 'plans'>,
  caller: Caller,
  { body, parameterOids }: Pick<DataQuestion, 'body' | 'parameterOids'>,
): PlanTemplate | null {
  if (body.kind === 'metrics') return null;
  const { text, world } = statementOf(body);
  // Fast-path routes never use rollups.
  return plans.templateOf(rightsKey(caller, world, parameterOids, NO_ROLLUPS), text);
}

/**
 * Plans a long text, which is parsed in another thread and compiled in steps. Meanwhile, a mark on disk identifies the
 * text, so that the cause of a crash can be found.
 */
async function longPlan(
  parts: CompilingParts,
  caller: PlanningCaller,
  rights: string,
  text: string,
  options: CompileOptions,
  record: Pick<DecisionRecord, 'mark'>,
): Promise<GovernedPlan> {
  const cached = parts.plans.find(rights, text);
  if (cached instanceof GovernedPlan) return cached;
  const { access, manifest, identity } = caller;
  return parts.marks.during(record.mark(text), async () => {
    const parsed = oneStatement(await parts.parsing.parse(text, identity.subject));
    const steps = compileInSteps(text, cached.shaped, manifest.catalog, access, { ...options, parsed });
    const compiled = await inTurns(steps, (next) => withinDeadline(parts, caller, text.length, next)).catch(
      (error: unknown) => {
        throw isEmpty(access) ? withoutAccess(error) : error;
      },
    );
    if (isEmpty(access)) requireFacetsOnly(compiled);
    await setImmediate();
    parts.plans.add(rights, text, cached.shaped, compiled);
    return compiled.plan;
  });
}

type CompiledTemplate = ReturnType<typeof compileTemplate>;

/**
 * Compiles for a caller without grants. As the contract requires, RETRIEVE on a declared facet returns no passages;
 * anything else fails with E2102, even if it has other errors.
 *
 * @throws QueryError E0241, E0521, E2102
 */
function facetsOnly(compile: () => CompiledTemplate): CompiledTemplate {
  try {
    return requireFacetsOnly(compile());
  } catch (error) {
    throw withoutAccess(error);
  }
}

function withoutAccess(error: unknown): unknown {
  const isReported =
    error instanceof QueryError && (error.entry === 'unknownFacet' || error.entry === 'noDecoder');
  return error instanceof QueryError && !isReported ? queryError('noAccess', {}) : error;
}

/** Requires that a plan only retrieves from facets. @throws QueryError E2102 */
function requireFacetsOnly(compiled: CompiledTemplate): CompiledTemplate {
  const { runtime, form } = compiled.plan;
  if (form !== 'retrieve' || !runtime.every((r) => r.kind === 'retrieval')) throw queryError('noAccess', {});
  return compiled;
}

/** Converts `noStatement` to E0246 for a `sql` body, as the contract requires; other errors are returned unchanged. */
function asEmptySql(error: unknown, body: QuestionBody): unknown {
  const isEmptySql = body.kind === 'sql' && error instanceof QueryError && error.entry === 'noStatement';
  return isEmptySql ? queryError('emptySql', {}) : error;
}

function preparedPlan({ prepared, body, parameterOids }: PlannedQuestion): GovernedPlan | null {
  return prepared?.body === body && prepared.parameterOids === parameterOids ? prepared.plan : null;
}

/** Returns the plan of a metrics query. Its cache key contains `metrics` to keep it apart from statements. */
function metricsPlan(
  parts: CompilingParts,
  caller: PlanningCaller,
  request: MetricsRequest,
  usable: UsableRollups,
): GovernedPlan | Promise<GovernedPlan> {
  const { access, manifest } = caller;
  const rights = `${manifest.catalog.version} ${access.signature} metrics ${usable.key}`;
  const rollups: ReadonlySet<string> = new Set(usable.builtAt.keys());
  const text = JSON.stringify(request);
  return cachedOrCompiled(parts, caller, rights, text, () => {
    if (isEmpty(access)) throw queryError('noAccess', {});
    const compile = (): GovernedPlan => compileMetrics(request, manifest.catalog, access, { rollups });
    return { plan: withinDeadline(parts, caller, text.length, compile), template: null };
  });
}

export function statementOf(body: Exclude<QuestionBody, { kind: 'metrics' }>): {
  readonly text: string;
  readonly world: RequestedWorld;
} {
  switch (body.kind) {
    case 'osql':
      return { text: body.text, world: 'semantic' };
    case 'sql':
      return { text: body.text, world: 'physical' };
    case 'wire':
      return { text: body.text, world: 'either' };
    default:
      return assertNever(body);
  }
}

/** Adds the position in the query text to a value error, unless the text was parsed in another thread. */
export function withPosition(
  error: unknown,
  { body, parameterOids }: Pick<DataQuestion, 'body' | 'parameterOids'>,
  { manifest, access }: Pick<Caller, 'manifest' | 'access'>,
  plan: GovernedPlan,
): unknown {
  if (!(error instanceof ValueError) || body.kind === 'metrics' || !isShort(body.text)) return error;
  const { text, world } = statementOf(body);
  const slot = error.parameter === null ? null : (emit(plan).slots[error.parameter] ?? null);
  return withErrorPosition(error, slot, text, manifest.catalog, access, { parameterOids, world });
}

/** Rethrows the error of a step without its parameter number, which refers to a statement the caller did not write. */
export function throwStepError(error: unknown): never {
  throw error instanceof ValueError ? error.withoutParameter() : error;
}
