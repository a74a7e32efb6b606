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
import { templateOf, withPosition } from '../data/planning.js';
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

/** Literal values of a statement, in order; `original` means those of the statement that created the route. */
export type Literals = readonly string[] | 'original';

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
  static create(
    parts: AnswerParts,
    question: DataQuestion,
    answer: QueryAnswer,
    permits: Permits,
  ): Route | 'never' | 'not yet' {
    const { plan, caller } = answer;
    const { body, parameterOids } = question;
    if (body.kind === 'metrics') return 'never';
    const { rows, bytes } = parts.caps;
    if (plan.runtime.length > 0 || rows < MIN_ROWS || bytes < MIN_BYTES) return 'never';
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
    const source = { kind: body.kind, parameterOids };
    return new Route(source, permits.permit(plan), plan, statement, template, sources);
  }

  /**
   * True if the route was created for the same tenant, chain, rights, audit details and model. The chain matters
   * because a route contains attribute values, which may differ even if rights are equal.
   */
  isFor(other: Caller): boolean {
    const { caller } = this.permit;
    const { access, model, identity } = other;
    return (
      caller.model === model &&
      caller.identity.tenant === identity.tenant &&
      sameNames(caller.identity.chain, identity.chain) &&
      caller.access.signature === access.signature &&
      caller.access.attributesKey === access.attributesKey &&
      auditDetailOf(caller) === auditDetailOf(other)
    );
  }

  /** Returns the plan's slots with these literals as values; null if the plan may not fit them. */
  slotsWith(values: Literals): readonly Slot[] | null {
    if (values === 'original' || (values.length === 0 && this.#template === null)) return this.plan.slots;
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
    if (values === 'original' || (values.length === 0 && this.#template === null)) return this.plan;
    return this.#template?.fillWith(values) ?? null;
  }

  withPosition(error: unknown, text: string, values: Literals): unknown {
    const plan = this.planWith(values);
    if (plan === null) return error;
    const question = { body: { kind: this.kind, text }, parameterOids: this.parameterOids };
    return withPosition(error, question, this.permit.caller, plan);
  }
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, i) => name === b[i]);
}

type TextBody = Exclude<DataQuestion['body'], { readonly kind: 'metrics' }>;

/** Lowest caps under which routes exist: answers on the fast path are smaller, so it does not check caps. */
const MIN_ROWS = 1_000;
const MIN_BYTES = 65_536;

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

const MAX_CALLERS = 256;

interface CallerRoutes {
  readonly caller: Caller;
  readonly routes: TextRoutes;
}

/** Plans that cannot have a route, so that creating one is not tried again. */
const UNROUTED = new WeakSet<GovernedPlan['query']>();
/** Plans whose texts cannot be recognized by their bytes, so that only prepared statements get a route. */
const NAMED_ONLY = new WeakSet<GovernedPlan['query']>();

export class RouteBook {
  readonly #byCaller = new LRUCache<string, CallerRoutes>({ max: MAX_CALLERS });

  /** Returns the routes of `caller`, shared with callers of the same chain, rights, audit details and model object. */
  routesOf(caller: Caller): TextRoutes {
    const { identity, access, model } = caller;
    const key = JSON.stringify([
      identity.tenant,
      identity.chain,
      access.signature,
      access.attributesKey,
      auditDetailOf(caller),
    ]);
    const cached = this.#byCaller.get(key);
    if (cached?.caller.model === model) return cached.routes;
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
  findOrCreate(
    parts: AnswerParts,
    question: DataQuestion,
    text: { readonly bytes: Buffer },
    answer: QueryAnswer,
    isNamed: boolean,
  ): TextRoute | null {
    const { plan, caller, permits } = answer;
    if (permits === null || UNROUTED.has(plan.query) || (NAMED_ONLY.has(plan.query) && !isNamed)) return null;
    const { parameterOids } = question;
    const { bytes } = text;
    const routes = this.routesOf(caller);
    const existing = routes.find(bytes, parameterOids);
    if (existing !== null) return existing;
    const route = Route.create(parts, question, answer, permits);
    if (route === 'not yet') return null;
    if (route === 'never') {
      UNROUTED.add(plan.query);
      return null;
    }
    if (!storeByShape(route, bytes, parameterOids, routes)) NAMED_ONLY.add(plan.query);
    return { route, literals: 'original' };
  }
}

/** Stores `route` for texts of the same shape. Returns false if the shape cannot be recognized by its bytes. */
function storeByShape(
  route: Route,
  bytes: Buffer,
  parameterOids: readonly number[],
  routes: TextRoutes,
): boolean {
  const shaped = shapeOf(bytes.toString('utf8'));
  const shape = shaped === null ? null : TextShape.create(bytes, shaped);
  const values = shaped?.literals.map((l) => l.value) ?? [];
  if (shape === null || route.slotsWith(values) === null) return false;
  routes.store(shape, parameterOids, route);
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
const MAX_PER_HASH = 8;
const MAX_ROUTES = 64;

/** The routes of a caller under one model, found by the bytes of a text. */
export class TextRoutes {
  readonly #byHash = new Map<number, ShapeRoute[]>();
  readonly #scan = new LiteralScan();
  #count = 0;

  /**
   * Calls `accept` with each route that matches the statement in bytes [start, end) and the declared types, until
   * `accept` returns true. Returns false if it never does.
   */
  tryEach(
    bytes: Buffer,
    start: number,
    end: number,
    oids: readonly number[],
    accept: (route: Route, values: readonly string[]) => boolean,
  ): boolean {
    const scan = this.#scan;
    if (!scan.run(bytes, start, end)) return false;
    const sameHash = this.#byHash.get(scan.hash);
    if (sameHash === undefined) return false;
    for (const { shape, oids: declared, route } of sameHash) {
      if (!sameNumbers(declared, oids)) continue;
      const values = shape.valuesIn(bytes, start, end, scan);
      if (values !== null && accept(route, values)) return true;
    }
    return false;
  }

  find(bytes: Buffer, oids: readonly number[]): TextRoute | null {
    let match: TextRoute | null = null;
    this.tryEach(bytes, 0, bytes.length, oids, (route, literals) => {
      if (route.slotsWith(literals) === null) return false;
      match = { route, literals };
      return true;
    });
    return match;
  }

  store(shape: TextShape, oids: readonly number[], route: Route): void {
    if (this.#count >= MAX_ROUTES) {
      this.#byHash.clear();
      this.#count = 0;
    }
    const sameHash = this.#byHash.get(shape.hash) ?? [];
    // Evict the oldest route with this hash.
    const others = sameHash.length < MAX_PER_HASH ? sameHash : sameHash.slice(1);
    this.#byHash.set(shape.hash, [...others, { shape, oids, route }]);
    this.#count += 1 + others.length - sameHash.length;
  }
}

function sameNumbers(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((n, i) => n === b[i]);
}
