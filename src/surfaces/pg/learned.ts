import type { Answer, Question } from '../../ask/index.js';
import { type FoundRoute, learn } from '../../ask/routes/index.js';
import type { SessionParts } from './session-parts.js';

/** What the runs of one statement teach the fast lane. */
export class Learned {
  /** Of this very text, with the caller's `$1 …`; null until a run has made one. */
  found: FoundRoute | null = null;
  readonly #session: SessionParts;
  readonly #text: string;
  #bytes: Buffer | null = null;
  #runs = 0;

  constructor(session: SessionParts, text: string) {
    this.#session = session;
    this.#text = text;
  }

  /** The UTF-8 of the statement's text: made once it is needed, since most statements run once. */
  get bytes(): Buffer {
    this.#bytes ??= Buffer.from(this.#text, 'utf8');
    return this.#bytes;
  }

  /** Learns of `question`, which has the statement's text and was answered so. */
  from(question: Question, answer: Answer): void {
    this.#runs += 1;
    if (this.found?.route.isOf(answer.caller) === true) return;
    const { service, routes } = this.#session;
    this.found = learn(service, routes, question, this, answer, this.#runs > 1);
  }
}
