import { type GovernedPlan, shapeOf } from 'osl-compiler';
import type { Answer } from '../data/ask.js';
import type { AnswerParts } from '../data/parts.js';
import type { Question } from '../data/question.js';
import { Route } from './route.js';
import type { RouteBook } from './route-book.js';
import type { FoundRoute, TextRoutes } from './text-routes.js';
import { TextShape } from './text-shape.js';

/** Queries of plans that make no route, so that it is not tried after each of their runs. */
const UNROUTED = new WeakSet<GovernedPlan['query']>();
/** Those whose texts cannot be told by their bytes: they make a route for a statement that is run again, by its name. */
const UNTOLD = new WeakSet<GovernedPlan['query']>();

/**
 * What `answer` to `question`, whose text is `text.bytes` in UTF-8, teaches: the route that is known of it, or one that is made
 * and kept; null where there is none, or not yet.
 *
 * @param isNamed whether the statement can be run again without its text
 */
export function learn(
  parts: AnswerParts,
  book: RouteBook,
  question: Question,
  text: { readonly bytes: Buffer },
  answer: Answer,
  isNamed: boolean,
): FoundRoute | null {
  const { plan, caller, permits } = answer;
  if (permits === null || UNROUTED.has(plan.query) || (UNTOLD.has(plan.query) && !isNamed)) return null;
  const { parameterOids } = question;
  const { bytes } = text;
  const routes = book.of(caller);
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

/** Keeps `route` for texts of this one's shape; false where they cannot be told by their bytes. */
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
