import type { Worker } from 'node:worker_threads';
import type { Grammar } from 'osl-compiler';
import { answerOf } from '../../base/threads/answer.js';
import { startThread } from '../../base/threads/thread.js';

/** The thread ended before it had an answer: it took too long, or failed. */
export class ParserEnded extends Error {
  override readonly name = 'ParserEnded';
  readonly late: boolean;

  constructor(late: boolean, detail: string) {
    super(`the parser's thread ended: ${detail}`);
    this.late = late;
  }
}

/**
 * The grammar in a thread of its own, since nothing stops it but the end of its thread. After a text that unwinds its
 * stack it may hold memory that it does not give back: after some of these it is replaced.
 */
export class ParserThread {
  readonly #deadlineMs: number;
  readonly #idleMs: number | null;
  #idle: NodeJS.Timeout | undefined;
  #worker: Worker | null = null;
  #ready: Promise<void> = Promise.resolve();
  #deep = 0;

  /** @param idleMs after which it ends where it is given nothing; null: never */
  constructor(deadlineMs: number, idleMs: number | null = null) {
    this.#deadlineMs = deadlineMs;
    this.#idleMs = idleMs;
  }

  /** Applies the grammar to one text; one call at a time. Rejects with ParserEnded; the next call has a new thread. */
  async apply(parsed: string): Promise<Grammar> {
    clearTimeout(this.#idle);
    const worker = this.#worker ?? this.#start();
    await this.#ready;
    const grammar = await this.#asked(worker, parsed);
    if (grammar.kind === 'deep' && ++this.#deep >= MOST_DEEP) await this.#end();
    if (this.#idleMs !== null) this.#idle = setTimeout(() => void this.#end(), this.#idleMs).unref();
    return grammar;
  }

  async close(): Promise<void> {
    await this.#end();
  }

  #start(): Worker {
    const worker = startThread(new URL('./parser-worker.js', import.meta.url), {
      maxOldGenerationSizeMb: 256,
    });
    this.#worker = worker;
    this.#deep = 0;
    this.#ready = parserAnswer(worker, this.#deadlineMs, (message) =>
      message.kind === 'ready' ? { value: undefined } : null,
    ).catch((error: unknown) => this.#failed(error));
    return worker;
  }

  #asked(worker: Worker, parsed: string): Promise<Grammar> {
    const answer = parserAnswer(worker, this.#deadlineMs, (message): { value: Grammar } | null => {
      if (message.kind === 'failed') throw new ParserEnded(false, message.reason);
      return message.kind === 'parsed' ? { value: JSON.parse(message.grammar) as Grammar } : null; // as it was sent
    });
    worker.postMessage({ parsed } satisfies ToParser);
    return answer.catch((error: unknown) => this.#failed(error));
  }

  async #failed(error: unknown): Promise<never> {
    await this.#end();
    throw error;
  }

  async #end(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }
}

/** Texts too deep for the stack after which the thread is replaced. */
const MOST_DEEP = 16;

/** Result of `read` on a message of `worker`, within the time limit. Rejects with ParserEnded. */
function parserAnswer<T>(
  worker: Worker,
  deadlineMs: number,
  read: (message: FromParser) => { readonly value: T } | null,
): Promise<T> {
  return answerOf(worker, deadlineMs, read, (why, detail) => new ParserEnded(why === 'late', detail));
}

/** What the host asks the thread that parses: one text at a time, as `prepareText` made it. */
export interface ToParser {
  readonly parsed: string;
}

/** `grammar`: a `Grammar` as JSON, which crosses threads faster than the tree itself. */
export type FromParser =
  | { readonly kind: 'ready' }
  | { readonly kind: 'parsed'; readonly grammar: string }
  | { readonly kind: 'failed'; readonly reason: string };
