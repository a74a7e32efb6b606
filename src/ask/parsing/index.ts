import type { Worker } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { type Grammar, type ParsedText, prepareText, queryError } from 'osl-compiler';
import type { ServiceLog } from '../../base/log.js';
import { FairSlots } from '../../base/threads/fair-slots.js';
import { answerOf, startThread } from '../../base/threads/thread.js';

/** Error for a parser thread that ended without an answer, because of a timeout or a failure. */
class ParserEnded extends Error {
  override readonly name = 'ParserEnded';
  readonly timedOut: boolean;

  constructor(timedOut: boolean, detail: string) {
    super(`the parser's thread ended: ${detail}`);
    this.timedOut = timedOut;
  }
}

/**
 * Runs the Postgres grammar in a thread, since parsing can only be stopped by terminating its thread. Texts that
 * overflow the stack may leak memory, so the thread is replaced after a number of them.
 */
class ParserThread {
  readonly #deadlineMs: number;
  readonly #idleMs: number | null;
  #idle: NodeJS.Timeout | undefined;
  #worker: Worker | null = null;
  #ready: Promise<void> = Promise.resolve();
  #deepTexts = 0;

  /** @param idleMs idle time in ms after which the thread ends; null if it never ends */
  constructor(deadlineMs: number, idleMs: number | null = null) {
    this.#deadlineMs = deadlineMs;
    this.#idleMs = idleMs;
  }

  /** Parses a text; only one call may run at a time. Rejects with ParserEnded; the next call starts a new thread. */
  async apply(parsed: string): Promise<Grammar> {
    clearTimeout(this.#idle);
    const worker = this.#worker ?? this.#start();
    await this.#ready;
    const grammar = await this.#request(worker, parsed);
    if (grammar.kind === 'deep' && ++this.#deepTexts >= MAX_DEEP_TEXTS) await this.#end();
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
    this.#deepTexts = 0;
    this.#ready = parserAnswer(worker, this.#deadlineMs, (message) =>
      message.kind === 'ready' ? { value: undefined } : null,
    ).catch((error: unknown) => this.#endAndThrow(error));
    return worker;
  }

  #request(worker: Worker, parsed: string): Promise<Grammar> {
    const answer = parserAnswer(worker, this.#deadlineMs, (message): { value: Grammar } | null => {
      if (message.kind === 'failed') throw new ParserEnded(false, message.reason);
      return message.kind === 'parsed' ? { value: JSON.parse(message.grammar) as Grammar } : null; // sent by the worker
    });
    worker.postMessage({ parsed } satisfies ToParser);
    return answer.catch((error: unknown) => this.#endAndThrow(error));
  }

  async #endAndThrow(error: unknown): Promise<never> {
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

/** Number of too deeply nested texts after which the thread is replaced. */
const MAX_DEEP_TEXTS = 16;

/** Waits for an answer from the parser thread. Rejects with ParserEnded. */
function parserAnswer<T>(
  worker: Worker,
  deadlineMs: number,
  read: (message: FromParser) => { readonly value: T } | null,
): Promise<T> {
  return answerOf(worker, deadlineMs, read, (cause, detail) => new ParserEnded(cause === 'late', detail));
}

/** A message to the parser thread: a text prepared by `prepareText`. */
export interface ToParser {
  readonly parsed: string;
}

/** A message from the parser thread. `grammar` is JSON, which is cheaper to transfer than the tree. */
export type FromParser =
  | { readonly kind: 'ready' }
  | { readonly kind: 'parsed'; readonly grammar: string }
  | { readonly kind: 'failed'; readonly reason: string };

/** Longest text parsed in the main thread, in UTF-16 code units; it takes a few milliseconds at worst. */
export const SHORT_TEXT = 1_536;

/** Length in UTF-16 code units above which a text is parsed in the thread for large texts. */
const LARGE_TEXT = 16_384;

/** Parses texts that are too long for the main thread. */
export interface LongTextParser {
  /**
   * Parses `text`. There is one thread for large texts and one for the others. Each serves callers round robin, so a
   * caller waits for at most one text of similar size from each other caller.
   *
   * @throws QueryError E0511 if the text exceeds a limit or takes too long; E4290 if too many texts of the caller are
   * waiting
   */
  parse(text: string, caller: string): Promise<ParsedText>;
  close(): Promise<void>;
}

export interface ParsingOptions {
  readonly log: ServiceLog;
  readonly deadlineMs?: number;
}

/** Parse deadline in ms, far more than needed: the largest text that passes the first scan takes 0.1 s. */
const DEADLINE_MS = 5_000;

/** Number of cached parse trees; the same text is often parsed several times in a row. */
const MAX_TREES = 4;

/** Idle time after which the thread for large texts ends, since a thread takes about 30 MiB. */
const IDLE_MS = 60_000;

export function isShort(text: string): boolean {
  return text.length <= SHORT_TEXT;
}

export function createParsing({ log, deadlineMs = DEADLINE_MS }: ParsingOptions): LongTextParser {
  const regular = { thread: new ParserThread(deadlineMs), slots: new FairSlots() };
  const large = { thread: new ParserThread(deadlineMs, IDLE_MS), slots: new FairSlots() };
  const cache = new LRUCache<string, ParsedText>({ max: MAX_TREES });
  const parse = async (text: string, caller: string): Promise<ParsedText> => {
    const cached = cache.get(text);
    if (cached !== undefined) return cached;
    const prepared = prepareText(text);
    const { thread, slots } = text.length > LARGE_TEXT ? large : regular;
    if (slots.isFull(caller)) throw queryError('rateLimited', { retryAfterSeconds: 1 });
    try {
      const grammar = await slots.take(caller, () => thread.apply(prepared.parsed));
      const tree = { prepared, grammar };
      cache.set(text, tree);
      return tree;
    } catch (error) {
      if (!(error instanceof ParserEnded)) throw error;
      log.error('a text was not parsed', { caller, size: text.length, reason: error.message });
      if (!error.timedOut) throw queryError('tooDeep', {});
      throw queryError('tooComplex', { what: 'the milliseconds to read it', limit: deadlineMs });
    }
  };
  const close = async (): Promise<void> => {
    await Promise.all([regular.thread.close(), large.thread.close()]);
  };
  return { parse, close };
}
