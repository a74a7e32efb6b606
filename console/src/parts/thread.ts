/** Request and response types of a worker thread, by request name. */
export type ThreadQuestions = Readonly<Record<string, { readonly ask: unknown; readonly answer: unknown }>>;

interface ThreadMessage<Q extends ThreadQuestions> {
  readonly number: number;
  readonly name: keyof Q;
  readonly ask: Q[keyof Q]['ask'];
}

type ThreadReply =
  | { readonly number: number; readonly answer: unknown }
  | { readonly number: number; readonly fault: string };

interface WaitingCall {
  readonly resolve: (answer: never) => void;
  readonly reject: (fault: Error) => void;
}

/** The page's end of a worker thread. The thread does long work without blocking the page. */
export class QueryableThread<Q extends ThreadQuestions> {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, WaitingCall>();
  #last = 0;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<ThreadReply>) => this.#take(data);
    worker.onerror = () => this.#fail(new Error('a thread of this page has stopped: load the page again'));
  }

  /** Sends a request. Objects in `transfer` are moved, not copied. @throws Error with the thread's message */
  ask<Name extends keyof Q>(
    name: Name,
    ask: Q[Name]['ask'],
    transfer: readonly Transferable[] = [],
  ): Promise<Q[Name]['answer']> {
    const number = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      this.#worker.postMessage({ number, name, ask } satisfies ThreadMessage<Q>, [...transfer]);
    });
  }

  stop(): void {
    this.#worker.terminate();
    this.#fail(new Error('the thread was stopped'));
  }

  #take(reply: ThreadReply): void {
    const waiting = this.#waiting.get(reply.number);
    this.#waiting.delete(reply.number);
    if ('fault' in reply) waiting?.reject(new Error(reply.fault));
    // The response has the type that is declared for the name of the request.
    else waiting?.resolve(reply.answer as never);
  }

  #fail(fault: Error): void {
    for (const { reject } of this.#waiting.values()) reject(fault);
    this.#waiting.clear();
  }
}

/** Request handlers of a worker thread, by request name. */
type ThreadAnswers<Q extends ThreadQuestions> = {
  readonly [Name in keyof Q]: (ask: Q[Name]['ask']) => Q[Name]['answer'];
};

/** The worker's end of a thread: handles requests in order. */
export function answerWith<Q extends ThreadQuestions>(answers: ThreadAnswers<Q>): void {
  self.onmessage = ({ data }: MessageEvent<ThreadMessage<Q>>): void => {
    const { number, name, ask } = data;
    try {
      self.postMessage({ number, answer: answers[name](ask) } satisfies ThreadReply);
    } catch (error) {
      const fault = error instanceof Error ? error.message : String(error);
      self.postMessage({ number, fault } satisfies ThreadReply);
    }
  };
}
