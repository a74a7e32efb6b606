import { LRUCache } from 'lru-cache';
import { type ParsedText, prepareText, queryError } from 'osl-compiler';
import type { ServiceLog } from '../../base/log.js';
import { FairSlots } from '../../base/threads/turns.js';
import { ParserEnded, ParserThread } from './parser-thread.js';

/** UTF-16 units of a text that is parsed where it is asked: at worst some milliseconds. */
export const SHORT_TEXT = 2_048;

/** UTF-16 units of a text that takes the grammar as little time as those that it waits for; larger ones wait elsewhere. */
const LARGE_TEXT = 16_384;

/** The syntax trees of texts that are too long to be parsed in the thread that serves everybody. */
export interface LongTextParser {
  /**
   * What the grammar makes of `text`. Callers take turns, those with large texts and those with others apart, in two
   * threads: nobody waits for more than a text of about the size of its own for each other caller.
   *
   * @throws QueryError E0511 for a text beyond what a statement may have, and one that takes too long
   */
  parse(text: string, caller: string): Promise<ParsedText>;
  close(): Promise<void>;
}

export interface ParsingOptions {
  readonly log: ServiceLog;
  /** How long one text may take. */
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
