import { emit, type GovernedPlan, literalText, type PlanTemplate, type Slot } from 'osl-compiler';
import type { BoundValue, SentValue, ShortStatement } from '../../engine/index.js';
import { cacheRulesOf } from '../data/answer-cache.js';
import type { QueryAnswer } from '../data/ask.js';
import type { AnswerParts } from '../data/parts.js';
import { placedError, templateOf } from '../data/planning.js';
import type { DataQuestion } from '../data/question.js';
import { engineOf, slotValues } from '../data/runtime/index.js';
import { settingsFor } from '../data/runtime/step.js';
import { type Caller, saidOf } from '../request/caller.js';
import type { Permit } from '../request/recorder.js';
import type { Permits } from '../request/respond.js';

/** Where one value of the statement comes from: it is always the same, a slot of the plan, or `$n` of the caller. */
type ParameterSource =
  | { readonly kind: 'fixed'; readonly value: BoundValue }
  | { readonly kind: 'slot'; readonly slot: number }
  | { readonly kind: 'client'; readonly index: number };

/** The values of a text's literals, in order, or those of the text that made the route. */
export type Literals = readonly string[] | 'its own';

/**
 * What the one way learned of a question: how it is decided and run for the same caller, under the same versions, with
 * other literals or parameters. Only an answer of the one way makes one.
 */
export class Route {
  readonly permit: Permit;
  /** The plan that was answered; those of other literals differ from it in the values of slots. */
  readonly plan: GovernedPlan;
  readonly statement: ShortStatement;
  readonly #template: PlanTemplate | null;
  readonly #sources: readonly ParameterSource[];
  readonly #kind: TextBody['kind'];
  readonly #parameterOids: readonly number[];

  private constructor(
    question: { readonly kind: TextBody['kind']; readonly parameterOids: readonly number[] },
    permit: Permit,
    plan: GovernedPlan,
    statement: ShortStatement,
    template: PlanTemplate | null,
    sources: readonly ParameterSource[],
  ) {
    this.permit = permit;
    this.plan = plan;
    this.statement = statement;
    this.#template = template;
    this.#sources = sources;
    this.#kind = question.kind;
    this.#parameterOids = question.parameterOids;
  }

  /** The route of `question`, which was answered so, or why there is none: its statement may still prove short. */
  static of(
    parts: AnswerParts,
    question: DataQuestion,
    answer: QueryAnswer,
    permits: Permits,
  ): Route | 'never' | 'not yet' {
    const { plan, caller } = answer;
    const { body, parameterOids } = question;
    if (body.kind === 'metrics') return 'never';
    const { rows, bytes } = parts.caps;
    if (plan.runtime.length > 0 || rows < LEAST_ROWS || bytes < LEAST_BYTES) return 'never';
    if (settingsFor(parts, caller, plan, undefined) !== undefined) return 'never';
    // What may be given again is looked for by the one way, and so is whether a rollup still holds.
    if (plan.rollup !== null || plan.passedRollups.length > 0) return 'never';
    if (parts.answers.isOn && cacheRulesOf(caller.manifest, plan) !== null) return 'never';
    const statement = engineOf(parts, plan).short(plan);
    if (statement === null) return 'never';
    if (!statement.isReady()) return 'not yet';
    const sources = sourcesOf(parts, answer);
    if (sources === null) return 'never';
    const template = templateOf(parts, caller, question);
    const asked = { kind: body.kind, parameterOids };
    return new Route(asked, permits.permit(plan), plan, statement, template, sources);
  }

  /**
   * True if it was learned of the same chain with these rights, which said the same, under what is served to this one:
   * values of attributes are part of a route, and equal rights do not mean equal values.
   */
  isOf(other: Caller): boolean {
    const { caller } = this.permit;
    const { access, model, identity } = other;
    return (
      caller.model === model &&
      caller.identity.tenant === identity.tenant &&
      sameNames(caller.identity.chain, identity.chain) &&
      caller.access.signature === access.signature &&
      caller.access.claimed === access.claimed &&
      saidOf(caller) === saidOf(other)
    );
  }

  /** Slots of the plan whose literals have these `values`; null where that is another plan, or is not known. */
  slotsWith(values: Literals): readonly Slot[] | null {
    if (values === 'its own' || (values.length === 0 && this.#template === null)) return this.plan.slots;
    return this.#template?.slotsWith(values) ?? null;
  }

  /** The values of the statement, in order. */
  valuesOf(slots: readonly Slot[], parameters: readonly BoundValue[]): readonly SentValue[] | null {
    const values: SentValue[] = [];
    for (const source of this.#sources) {
      const value = valueFrom(source, slots, parameters);
      if (value === null) return null;
      values.push(value);
    }
    return values;
  }

  /** The plan whose literals have these `values`. */
  planWith(values: Literals): GovernedPlan | null {
    if (values === 'its own' || (values.length === 0 && this.#template === null)) return this.plan;
    return this.#template?.fillWith(values) ?? null;
  }

  /** `error` of a run of `text`, whose literals have these `values`, with its place in the text. */
  placed(error: unknown, text: string, values: Literals): unknown {
    const plan = this.planWith(values);
    if (plan === null) return error;
    const question = { body: { kind: this.#kind, text }, parameterOids: this.#parameterOids };
    return placedError(error, question, this.permit.caller, plan);
  }
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, i) => name === b[i]);
}

type TextBody = Exclude<DataQuestion['body'], { readonly kind: 'metrics' }>;

/** Answers of the shared sessions are within these; with smaller caps each answer is looked at on the way. */
const LEAST_ROWS = 1_000;
const LEAST_BYTES = 65_536;

function valueFrom(
  source: ParameterSource,
  slots: readonly Slot[],
  parameters: readonly BoundValue[],
): SentValue | null {
  switch (source.kind) {
    case 'fixed':
      return source.value;
    case 'slot': {
      const slot = slots[source.slot];
      return slot?.kind === 'literal' ? literalText(slot.value) : null;
    }
    case 'client':
      return parameters[source.index] ?? null;
    default: {
      const unknown: never = source;
      return unknown;
    }
  }
}

/** Null where one of them is worked out for each run. */
function sourcesOf(parts: AnswerParts, { plan, caller }: QueryAnswer): readonly ParameterSource[] | null {
  const input = { parts, caller, parameters: [] };
  const sources: ParameterSource[] = [];
  for (const slot of emit(plan).slots) {
    switch (slot.kind) {
      case 'literal':
        sources.push({ kind: 'slot', slot: plan.slots.indexOf(slot) });
        break;
      case 'client':
        sources.push({ kind: 'client', index: slot.index });
        break;
      case 'attribute':
      case 'pad': {
        const [value] = slotValues([slot], new Map(), input);
        if (value === undefined) return null;
        sources.push({ kind: 'fixed', value });
        break;
      }
      case 'runtime':
      case 'keys':
      case 'given':
        return null;
      default: {
        const unknown: never = slot;
        return unknown;
      }
    }
  }
  return sources;
}
