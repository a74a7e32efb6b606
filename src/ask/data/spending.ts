import type { Spent } from './content-plane.js';

/** What one question sent to a language model, for the record of its outcome. */
export class Spending {
  #all: Spent | null = null;

  add(spent: Spent): void {
    const { passages = 0, requests = 0, promptTokens = 0, answerTokens = 0, known = 0 } = this.#all ?? {};
    this.#all = {
      passages: passages + spent.passages,
      requests: requests + spent.requests,
      promptTokens: promptTokens + spent.promptTokens,
      answerTokens: answerTokens + spent.answerTokens,
      known: known + spent.known,
    };
  }

  /** Null where no model was to be asked. */
  detail(): string | null {
    if (this.#all === null) return null;
    const { passages, requests, promptTokens, answerTokens, known } = this.#all;
    const tokens = { prompt_tokens: promptTokens, answer_tokens: answerTokens };
    return JSON.stringify({ decoded: { passages, known, requests, ...tokens } });
  }
}
