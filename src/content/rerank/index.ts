/** Rerankers, loaded only when a query uses one. */
export { DailyBudget } from '../decode/budget.js';
export { Reranker } from './reranker.js';
