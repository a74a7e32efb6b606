/** What decoder operators take, loaded where there is a model to ask. */
export { DailyBudget } from './budget.js';
export { ChatModel } from './chat-model.js';
export { checkDecoder, runDecoder } from './run.js';
