import type { DecoderName } from 'osl-compiler';
import { type ArgumentValues, checkArguments } from '../../model/facets/arguments.js';
import {
  answerOf,
  askChat,
  type ChatModel,
  type ChatQuestion,
  type ChatUsage,
  chatBody,
  DecoderFailure,
  type DecoderFault,
} from './chat.js';
import { type DecoderPassage, type DecoderTask, decoderTask } from './operators.js';

/** An entry of the response's `errors`. */
interface RowError {
  readonly operator: DecoderName;
  readonly chunkId: string;
  readonly fault: DecoderFault;
  /** One lower-case sentence that contains no text from the passage or the model. */
  readonly message: string;
}

export interface DecodedColumn {
  /** One value per passage, in order; null for a passage that failed. */
  readonly values: readonly unknown[];
  readonly errors: readonly RowError[];
}

/** Subject and deadline of a decoder call. */
export interface DecoderCaller {
  readonly subject: string;
  /** Deadline for the last answer, on the `performance.now()` clock; rows without an answer by then get an error. */
  readonly until: number;
  readonly signal: AbortSignal | null;
  /** Called once with the usage, even if the call is aborted. */
  readonly onUsage: (
    usage: Readonly<ChatUsage> & { readonly passages: number; readonly cached: number },
  ) => void;
}

/** Number of consecutive failures, after retries, at which the endpoint is considered down. */
const DOWN_AFTER = 3;

/**
 * Checks a decoder operator's arguments without sending a request, so that an invalid call fails before retrieval.
 *
 * @throws InvalidArgument
 */
export function checkDecoder(operator: DecoderName, values: ArgumentValues): void {
  decoderTask(operator, checkArguments(operator, values));
}

/**
 * Computes the column of a decoder operator, with one request per passage. A passage that fails, or has no answer by
 * the deadline, gets a null value and an error; answers received by then are returned.
 *
 * @throws InvalidArgument; the reason of `by.signal` if aborted
 */
export async function runDecoder(
  operator: DecoderName,
  passages: readonly DecoderPassage[],
  values: ArgumentValues,
  model: ChatModel,
  by: DecoderCaller,
): Promise<DecodedColumn> {
  const task = decoderTask(operator, checkArguments(operator, values));
  const late = new AbortController();
  const clock = setTimeout(
    () => late.abort(LATE),
    Math.max(0, Math.min(by.until - performance.now(), LONGEST_MS)),
  );
  const signal = by.signal === null ? late.signal : AbortSignal.any([by.signal, late.signal]);
  const run = new DecodeRun(task, passages, model, by.subject, signal);
  try {
    await run.all();
    const errors = passages.flatMap(({ chunkId }, i) =>
      (run.faults[i] ?? []).map(({ fault, message }): RowError => ({ operator, chunkId, fault, message })),
    );
    return { values: run.column, errors };
  } finally {
    by.onUsage({ ...run.spent, passages: run.sent, cached: run.known });
    clearTimeout(clock);
  }
}

const LATE = new DecoderFailure('late', 'the time of the question was up');
const LONGEST_MS = 2_147_483_647;

class DecodeRun {
  readonly column: unknown[];
  readonly faults: (readonly DecoderFailure[])[];
  readonly spent: ChatUsage = nothingSpent();
  known = 0;
  sent = 0;
  readonly #task: DecoderTask;
  readonly #passages: readonly DecoderPassage[];
  readonly #model: ChatModel;
  readonly #subject: string;
  readonly #signal: AbortSignal;
  #failedInRow = 0;

  constructor(
    task: DecoderTask,
    passages: readonly DecoderPassage[],
    model: ChatModel,
    subject: string,
    signal: AbortSignal,
  ) {
    this.#task = task;
    this.#passages = passages;
    this.#model = model;
    this.#subject = subject;
    this.#signal = signal;
    this.column = new Array(passages.length).fill(null);
    this.faults = passages.map(() => []);
  }

  async all(): Promise<void> {
    const asked = this.#unknown();
    const granted = await this.#granted(asked.length);
    for (const one of asked.slice(granted)) this.#failed(one.index, OVER_BUDGET);
    const queue = asked.slice(0, granted).values();
    const worker = async (): Promise<void> => {
      for (const one of queue) await this.#one(one);
    };
    const ends = await Promise.allSettled(
      Array.from({ length: Math.min(this.#model.places, granted) }, worker),
    );
    await this.#model.budget?.giveBack(this.#subject, granted - this.sent);
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  #unknown(): readonly PendingPassage[] {
    return this.#passages.flatMap((passage, index): readonly PendingPassage[] => {
      const question = this.#task.question(passage);
      const body = chatBody(this.#model, question);
      const key = this.#model.keyOf(body);
      const content = this.#model.cachedAnswer(key);
      if (content === null) return [{ index, passage, question, body, key }];
      this.known += 1;
      this.#take(index, answerOf(content, question), passage);
      return [];
    });
  }

  async #granted(wanted: number): Promise<number> {
    const { budget } = this.#model;
    return budget === null || wanted === 0 ? wanted : budget.take(this.#subject, wanted);
  }

  /** Queries the model about one passage. Throws the signal's reason if the call is aborted. */
  async #one({ index, passage, question, body, key }: PendingPassage): Promise<void> {
    if (this.#failedInRow >= DOWN_AFTER) return this.#failed(index, DOWN);
    const spent = nothingSpent();
    try {
      const content = await this.#model.turns.take(
        this.#subject,
        () => askChat(this.#model, body, question, spent, this.#signal),
        this.#signal,
      );
      this.#failedInRow = 0;
      this.#take(index, answerOf(content, question), passage);
      this.#model.cacheAnswer(key, content);
    } catch (error) {
      const fault: unknown = this.#signal.aborted ? this.#signal.reason : error;
      if (!(fault instanceof DecoderFailure)) throw fault;
      this.#failedInRow = fault.fault === 'endpoint' ? this.#failedInRow + 1 : 0;
      this.#failed(index, fault);
    } finally {
      this.#pay(spent);
    }
  }

  #pay({ requests, promptTokens, answerTokens, unreportedTokens }: ChatUsage): void {
    if (requests > 0) this.sent += 1;
    this.spent.requests += requests;
    this.spent.promptTokens += promptTokens;
    this.spent.answerTokens += answerTokens;
    this.spent.unreportedTokens += unreportedTokens;
  }

  /** Stores the value and the faults of an answer. @throws DecoderFailure */
  #take(index: number, answer: unknown, passage: DecoderPassage): void {
    const { value, faults } = this.#task.value(answer, passage);
    this.column[index] = value;
    this.faults[index] = faults;
  }

  #failed(index: number, fault: DecoderFailure): void {
    this.faults[index] = [fault];
  }
}

function nothingSpent(): ChatUsage {
  return { requests: 0, promptTokens: 0, answerTokens: 0, unreportedTokens: 0 };
}

interface PendingPassage {
  readonly index: number;
  readonly passage: DecoderPassage;
  readonly question: ChatQuestion;
  readonly body: ReturnType<typeof chatBody>;
  readonly key: string;
}

const DOWN = new DecoderFailure('endpoint', 'the endpoint failed for other rows');
const OVER_BUDGET = new DecoderFailure(
  'budget',
  'what this subject may send to the model today is sent; there is more after midnight, UTC',
);
