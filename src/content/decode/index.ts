/** Decoder operators, loaded if a model is configured. */
export { DailyBudget } from './budget.js';
export { ChatModel } from './chat-model.js';
export { checkDecoder, runDecoder } from './run.js';
