import type { ThreadMessage, ThreadQuestions, ThreadReply } from './queryable-thread.js';

/** Request handlers of a worker thread, by request name. */
export type ThreadAnswers<Q extends ThreadQuestions> = {
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
