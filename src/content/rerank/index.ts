/** What asks rerankers, loaded where a question wants one. */
export { DailyBudget } from '../decode/budget.js';
export { Reranker } from './reranker.js';
