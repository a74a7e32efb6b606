import { LRUCache } from 'lru-cache';
import {
  assertNever,
  emit,
  type GovernedPlan,
  literalText,
  type PlanTemplate,
  type Slot,
  shapeOf,
} from 'osl-compiler';
import type { BoundValue, SentValue, ShortStatement } from '../../engine/index.js';
import { cacheRulesOf } from '../data/answer-cache.js';
import { needsFullPath } from '../data/entity-counts.js';
import type { AnswerParts } from '../data/parts.js';
import { placedError, templateOf } from '../data/planning.js';
import type { QueryAnswer } from '../data/query-answer.js';
import type { DataQuestion } from '../data/question.js';
import { engineOf, slotValues } from '../data/runtime/index.js';
import { settingsFor } from '../data/runtime/step.js';
import { auditDetailOf, type Caller } from '../request/caller.js';
import type { Permit } from '../request/recorder.js';
import type { Permits } from '../request/respond.js';
import { LiteralScan, TextShape } from './text-shape.js';

type ParameterSource =
  | { readonly kind: 'fixed'; readonly value: BoundValue }
  | { readonly kind: 'slot'; readonly slot: number }
  | { readonly kind: 'client'; readonly index: number };

/** Literal values of a statement, in order; `its own` means those of the statement that created the route. */
export type Literals = readonly string[] | 'its own';

/** Everything needed to run an answered query again, with other literals, for the same caller and versions. */
export class Route {
  readonly permit: Permit;
  /** The plan. For other literals, only the values of its slots differ. */
  readonly plan: GovernedPlan;
  readonly statement: ShortStatement;
  readonly #template: PlanTemplate | null;
  readonly #sources: readonly ParameterSource[];
  readonly kind: TextBody['kind'];
  readonly parameterOids: readonly number[];

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
    this.kind = question.kind;
    this.parameterOids = question.parameterOids;
  }

  /** Creates a route from an answered query. `never`: impossible for this plan; `not yet`: retry after its next run. */
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
    // Only the full path estimates costs, counts entities, and uses the answer cache and rollups.
    if (needsFullPath(caller) || plan.rollup !== null || plan.passedRollups.length > 0) return 'never';
    if (parts.answers.isOn && cacheRulesOf(caller.manifest, plan) !== null) return 'never';
    const statement = engineOf(parts, plan).short(plan);
    if (statement === null) return 'never';
    if (!statement.isReadySomewhere()) return 'not yet';
    const sources = sourcesOf(parts, answer);
    if (sources === null) return 'never';
    const template = templateOf(parts, caller, question);
    const asked = { kind: body.kind, parameterOids };
    return new Route(asked, permits.permit(plan), plan, statement, template, sources);
  }

  /**
   * True if the route was created for the same tenant, chain, rights, audit details and model. The chain matters
   * because a route contains attribute values, which may differ even if rights are equal.
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
      auditDetailOf(caller) === auditDetailOf(other)
    );
  }

  /** Returns the plan's slots with these literals as values; null if the plan may not fit them. */
  slotsWith(values: Literals): readonly Slot[] | null {
    if (values === 'its own' || (values.length === 0 && this.#template === null)) return this.plan.slots;
    return this.#template?.slotsWith(values) ?? null;
  }

  valuesOf(slots: readonly Slot[], parameters: readonly BoundValue[]): readonly SentValue[] | null {
    const values: SentValue[] = [];
    for (const source of this.#sources) {
      const value = valueFrom(source, slots, parameters);
      if (value === null) return null;
      values.push(value);
    }
    return values;
  }

  planWith(values: Literals): GovernedPlan | null {
    if (values === 'its own' || (values.length === 0 && this.#template === null)) return this.plan;
    return this.#template?.fillWith(values) ?? null;
  }

  placed(error: unknown, text: string, values: Literals): unknown {
    const plan = this.planWith(values);
    if (plan === null) return error;
    const question = { body: { kind: this.kind, text }, parameterOids: this.parameterOids };
    return placedError(error, question, this.permit.caller, plan);
  }
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, i) => name === b[i]);
}

type TextBody = Exclude<DataQuestion['body'], { readonly kind: 'metrics' }>;

/** Lowest caps under which routes exist: answers on the fast path are smaller, so it does not check caps. */
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
    default:
      return assertNever(source);
  }
}

/** Returns the source of each parameter value; null if a value must be computed for each run. */
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
      default:
        return assertNever(slot);
    }
  }
  return sources;
}

const MOST_CALLERS = 256;

interface CallerRoutes {
  readonly caller: Caller;
  readonly routes: TextRoutes;
}

/** Plans that cannot have a route, so that creating one is not tried again. */
const UNROUTED = new WeakSet<GovernedPlan['query']>();
/** Plans whose texts cannot be recognized by their bytes, so that only prepared statements get a route. */
const UNTOLD = new WeakSet<GovernedPlan['query']>();

export class RouteBook {
  readonly #byCaller = new LRUCache<string, CallerRoutes>({ max: MOST_CALLERS });

  /** Returns the routes of `caller`, shared with callers of the same chain, rights, audit details and model object. */
  of(caller: Caller): TextRoutes {
    const { identity, access, model } = caller;
    const key = JSON.stringify([
      identity.tenant,
      identity.chain,
      access.signature,
      access.claimed,
      auditDetailOf(caller),
    ]);
    const known = this.#byCaller.get(key);
    if (known?.caller.model === model) return known.routes;
    const routes = new TextRoutes();
    this.#byCaller.set(key, { caller, routes });
    return routes;
  }

  /**
   * Returns the known route of an answered query, or creates one. Returns null if the query cannot have a route, or
   * cannot have one yet.
   *
   * @param isNamed true if the statement can run again without its text
   */
  learn(
    parts: AnswerParts,
    question: DataQuestion,
    text: { readonly bytes: Buffer },
    answer: QueryAnswer,
    isNamed: boolean,
  ): TextRoute | null {
    const { plan, caller, permits } = answer;
    if (permits === null || UNROUTED.has(plan.query) || (UNTOLD.has(plan.query) && !isNamed)) return null;
    const { parameterOids } = question;
    const { bytes } = text;
    const routes = this.of(caller);
    const known = routes.find(bytes, parameterOids);
    if (known !== null) return known;
    const route = Route.of(parts, question, answer, permits);
    if (route === 'not yet') return null;
    if (route === 'never') {
      UNROUTED.add(plan.query);
      return null;
    }
    if (!keepForTexts(route, bytes, parameterOids, routes)) UNTOLD.add(plan.query);
    return { route, literals: 'its own' };
  }
}

/** Stores `route` for texts of the same shape. Returns false if the shape cannot be recognized by its bytes. */
function keepForTexts(
  route: Route,
  bytes: Buffer,
  parameterOids: readonly number[],
  routes: TextRoutes,
): boolean {
  const shaped = shapeOf(bytes.toString('utf8'));
  const shape = shaped === null ? null : TextShape.of(bytes, shaped);
  const values = shaped?.literals.map((l) => l.value) ?? [];
  if (shape === null || route.slotsWith(values) === null) return false;
  routes.keep(shape, parameterOids, route);
  return true;
}

interface ShapeRoute {
  readonly shape: TextShape;
  readonly oids: readonly number[];
  readonly route: Route;
}

/** A route, with the literals of one text. */
export interface TextRoute {
  readonly route: Route;
  readonly literals: Literals;
}

/** Maximum number of routes with the same hash: colliding shapes, and plans of the same shape. */
const MOST_ALIKE = 8;
const MOST_ROUTES = 64;

/** The routes of a caller under one model, found by the bytes of a text. */
export class TextRoutes {
  readonly #byHash = new Map<number, ShapeRoute[]>();
  readonly #scan = new LiteralScan();
  #count = 0;

  /**
   * Calls `take` with each route that matches the statement in bytes [start, end) and the declared types, until `take`
   * returns true. Returns false if it never does.
   */
  offer(
    bytes: Buffer,
    start: number,
    end: number,
    oids: readonly number[],
    take: (route: Route, values: readonly string[]) => boolean,
  ): boolean {
    const scan = this.#scan;
    if (!scan.run(bytes, start, end)) return false;
    const alike = this.#byHash.get(scan.hash);
    if (alike === undefined) return false;
    for (const { shape, oids: declared, route } of alike) {
      if (!sameNumbers(declared, oids)) continue;
      const values = shape.valuesIn(bytes, start, end, scan);
      if (values !== null && take(route, values)) return true;
    }
    return false;
  }

  find(bytes: Buffer, oids: readonly number[]): TextRoute | null {
    let found: TextRoute | null = null;
    this.offer(bytes, 0, bytes.length, oids, (route, literals) => {
      if (route.slotsWith(literals) === null) return false;
      found = { route, literals };
      return true;
    });
    return found;
  }

  keep(shape: TextShape, oids: readonly number[], route: Route): void {
    if (this.#count >= MOST_ROUTES) {
      this.#byHash.clear();
      this.#count = 0;
    }
    const alike = this.#byHash.get(shape.hash) ?? [];
    // Evict the oldest route with this hash.
    const others = alike.length < MOST_ALIKE ? alike : alike.slice(1);
    this.#byHash.set(shape.hash, [...others, { shape, oids, route }]);
    this.#count += 1 + others.length - alike.length;
  }
}

function sameNumbers(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((n, i) => n === b[i]);
}
