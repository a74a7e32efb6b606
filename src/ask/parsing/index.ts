import type { Worker } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { type Grammar, type ParsedText, prepareText, queryError } from 'osl-compiler';
import type { ServiceLog } from '../../base/log.js';
import { answerOf } from '../../base/threads/answer.js';
import { startThread } from '../../base/threads/thread.js';
import { FairSlots } from '../../base/threads/turns.js';

/** The thread ended before it had an answer: it took too long, or failed. */
class ParserEnded extends Error {
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
class ParserThread {
  readonly #deadlineMs: number;
  readonly #idleMs: number | null;
  #idle: NodeJS.Timeout | undefined;
  #worker: Worker | null = null;
  #ready: Promise<void> = Promise.resolve();
  #deep = 0;

  /** @param idleMs idle time in ms after which it ends; null: never */
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

/** Message to the parser thread: one text at a time, as `prepareText` made it. */
export interface ToParser {
  readonly parsed: string;
}

/** `grammar`: a `Grammar` as JSON, which crosses threads faster than the tree itself. */
export type FromParser =
  | { readonly kind: 'ready' }
  | { readonly kind: 'parsed'; readonly grammar: string }
  | { readonly kind: 'failed'; readonly reason: string };

/** UTF-16 units of a text that is parsed in the serving thread: some milliseconds at worst. */
export const SHORT_TEXT = 2_048;

/** UTF-16 units up to which a text is parsed in the thread for usual texts; larger ones have a thread of their own. */
const LARGE_TEXT = 16_384;

/** The syntax trees of texts that are too long to be parsed in the thread that serves everybody. */
export interface LongTextParser {
  /**
   * Parses `text`. Callers take turns, those with large texts and those with others apart, in two threads: nobody
   * waits longer than for one text of about the size of its own for each other caller.
   *
   * @throws QueryError E0511 for a text beyond the limits of a statement, and for one that takes too long
   */
  parse(text: string, caller: string): Promise<ParsedText>;
  close(): Promise<void>;
}

export interface ParsingOptions {
  readonly log: ServiceLog;
  /** Time limit for one text, in ms. */
  readonly deadlineMs?: number;
}

/** Long enough for the largest text on a busy machine; what passes the first look takes a tenth of a second. */
const DEADLINE_MS = 5_000;

/** Trees that are kept: one text is asked for by several, each in its turn. */
const KEPT = 4;

/** After which the thread of large texts ends, which are rare: a thread holds some 30 MiB. */
const IDLE_MS = 60_000;

export function isShort(text: string): boolean {
  return text.length <= SHORT_TEXT;
}

export function createParsing({ log, deadlineMs = DEADLINE_MS }: ParsingOptions): LongTextParser {
  const usual = { thread: new ParserThread(deadlineMs), turns: new FairSlots() };
  const large = { thread: new ParserThread(deadlineMs, IDLE_MS), turns: new FairSlots() };
  const kept = new LRUCache<string, ParsedText>({ max: KEPT });
  const parse = async (text: string, caller: string): Promise<ParsedText> => {
    const known = kept.get(text);
    if (known !== undefined) return known;
    const prepared = prepareText(text);
    const { thread, turns } = text.length > LARGE_TEXT ? large : usual;
    if (turns.isFull(caller)) throw queryError('rateLimited', { retryAfterSeconds: 1 });
    try {
      const grammar = await turns.take(caller, () => thread.apply(prepared.parsed));
      const tree = { prepared, grammar };
      kept.set(text, tree);
      return tree;
    } catch (error) {
      if (!(error instanceof ParserEnded)) throw error;
      log.error('a text was not parsed', { caller, size: text.length, reason: error.message });
      if (!error.late) throw queryError('tooDeep', {});
      throw queryError('tooComplex', { what: 'the milliseconds to read it', limit: deadlineMs });
    }
  };
  const close = async (): Promise<void> => {
    await Promise.all([usual.thread.close(), large.thread.close()]);
  };
  return { parse, close };
}
