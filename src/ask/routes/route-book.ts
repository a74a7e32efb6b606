import { LRUCache } from 'lru-cache';
import { type GovernedPlan, shapeOf } from 'osl-compiler';
import type { QueryAnswer } from '../data/ask.js';
import type { AnswerParts } from '../data/parts.js';
import type { DataQuestion } from '../data/question.js';
import { type Caller, saidOf } from '../request/caller.js';
import { type Literals, Route } from './route.js';
import { LiteralScan, TextShape } from './text-shape.js';

/** Number of callers whose routes are kept at a time; those that asked longest ago make room. */
const MOST_CALLERS = 256;

interface CallerRoutes {
  readonly caller: Caller;
  readonly routes: TextRoutes;
}

/** Queries of plans that make no route, so that it is not tried after each of their runs. */
const UNROUTED = new WeakSet<GovernedPlan['query']>();
/** Those whose texts cannot be told by their bytes: they make a route for a statement that is run again, by its name. */
const UNTOLD = new WeakSet<GovernedPlan['query']>();

/** Routes of all callers of one surface. */
export class RouteBook {
  readonly #byCaller = new LRUCache<string, CallerRoutes>({ max: MOST_CALLERS });

  /**
   * The routes of `caller`. Nobody has them who is recorded as another, has other rights, or asks under another manifest
   * or policy, be it one that reads the same.
   */
  of(caller: Caller): TextRoutes {
    const { identity, access, model } = caller;
    const key = JSON.stringify([
      identity.tenant,
      identity.chain,
      access.signature,
      access.claimed,
      saidOf(caller),
    ]);
    const known = this.#byCaller.get(key);
    if (known?.caller.model === model) return known.routes;
    const routes = new TextRoutes();
    this.#byCaller.set(key, { caller, routes });
    return routes;
  }

  /**
   * Learns of `answer` to `question`, whose text is `text.bytes` in UTF-8: gives the route that is known of it, or one
   * that is made and kept; null if there is none, or not yet.
   *
   * @param isNamed true if the statement can be run again without its text
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

/** Keeps `route` for texts of this one's shape; false if they cannot be told by their bytes. */
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
  /** The types that the client declared for `$1 …`. */
  readonly oids: readonly number[];
  readonly route: Route;
}

/** Route of one text, with the literals that it is taken with. */
export interface TextRoute {
  readonly route: Route;
  readonly literals: Literals;
}

/** Number of routes of one hash: shapes that have it in common, and the plans of one shape. */
const MOST_ALIKE = 8;
const MOST_ROUTES = 64;

/** Routes of one caller's texts under one version of everything, found by a look at the bytes. */
export class TextRoutes {
  readonly #byHash = new Map<number, ShapeRoute[]>();
  readonly #scan = new LiteralScan();
  #count = 0;

  /**
   * Calls `take` with the route of the text that is the UTF-8 of bytes [start, end), with these types declared for its
   * parameters, and the values of its literals; with the next one while it says false. False where none took it.
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

  /** The route of the text that is `bytes` in UTF-8, with these types declared, and the values of its literals. */
  find(bytes: Buffer, oids: readonly number[]): TextRoute | null {
    let found: TextRoute | null = null;
    this.offer(bytes, 0, bytes.length, oids, (route, literals) => {
      if (route.slotsWith(literals) === null) return false;
      found = { route, literals };
      return true;
    });
    return found;
  }

  /** Keeps `route` for texts of `shape`. */
  keep(shape: TextShape, oids: readonly number[], route: Route): void {
    if (this.#count >= MOST_ROUTES) {
      this.#byHash.clear();
      this.#count = 0;
    }
    const alike = this.#byHash.get(shape.hash) ?? [];
    // The oldest makes room: what is asked again comes back.
    const others = alike.length < MOST_ALIKE ? alike : alike.slice(1);
    this.#byHash.set(shape.hash, [...others, { shape, oids, route }]);
    this.#count += 1 + others.length - alike.length;
  }
}

function sameNumbers(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((n, i) => n === b[i]);
}
