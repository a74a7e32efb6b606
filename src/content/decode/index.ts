/** Decoder operators, loaded only if a model is configured. */
export { DailyBudget } from './budget.js';
export { ChatModel } from './chat.js';
export { checkDecoder, runDecoder } from './run.js';
