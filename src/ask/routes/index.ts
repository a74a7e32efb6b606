/** What the one way learned of questions, and the fast way for those like them. */

export { askByRoute } from './ask-by-route.js';
export { type FastAsker, FastQuestion, type RoutedQuestion } from './fast-question.js';
export { learn } from './learn.js';
export type { Route } from './route.js';
export { RouteBook } from './route-book.js';
export type { FoundRoute, TextRoutes } from './text-routes.js';
