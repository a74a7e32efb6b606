import { useEffect, useRef, useState } from 'react';
import type { SignedInCaller } from '../../../api/caller.js';

interface WaitingRequest {
  readonly begin: () => void;
  readonly signal: AbortSignal;
}

/** Runs requests in the order in which they arrive, at most `most` at a time. */
class RequestQueue {
  readonly #most: number;
  readonly #waiting: WaitingRequest[] = [];
  #running = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Runs `request` once its turn has come. A request that has begun is not aborted, since it is recorded anyway.
   *
   * @throws DOMException `AbortError` if `signal` aborts before the request has begun; whatever `request` throws
   */
  run<T>(request: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      const drop = (): void => reject(signal.reason);
      const begin = (): void => {
        signal.removeEventListener('abort', drop);
        this.#running += 1;
        request()
          .then(resolve, reject)
          .finally(() => {
            this.#running -= 1;
            this.#next();
          });
      };
      signal.addEventListener('abort', drop, { once: true });
      this.#waiting.push({ begin, signal });
      this.#next();
    });
  }

  #next(): void {
    while (this.#running < this.#most) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      if (!next.signal.aborted) next.begin();
    }
  }
}

/** Maximum number of queries that cards and panels run at the same time. */
const MOST_AT_ONCE = 3;

/** Answers of cards and panels for one caller, kept until they are refreshed or the page is left. */
interface SessionAnswers {
  readonly queue: RequestQueue;
  readonly known: Map<string, Promise<unknown>>;
}

const sessions = new WeakMap<SignedInCaller, SessionAnswers>();

function answersOf(caller: SignedInCaller): SessionAnswers {
  const known = sessions.get(caller);
  if (known !== undefined) return known;
  const begun = { queue: new RequestQueue(MOST_AT_ONCE), known: new Map<string, Promise<unknown>>() };
  sessions.set(caller, begun);
  return begun;
}

/** Drops all kept answers, so that cards and panels in view run their queries again. */
export function forgetAnswers(caller: SignedInCaller): void {
  sessions.get(caller)?.known.clear();
}

export type QueuedAnswer<T> =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'answered'; readonly answer: T }
  | { readonly kind: 'failed'; readonly error: unknown; readonly again: () => void };

interface QueuedQuestion<T> {
  /** Identifies the query among those of the caller. */
  readonly key: string;
  /** True if the card or panel is in view; its query is sent only then. */
  readonly isInView: boolean;
  /** A number that changes whenever the kept answers have been dropped. */
  readonly turn: number;
  readonly ask: () => Promise<T>;
}

/** Returns the answer to the query of a card or panel; a new query is queued when its element comes into view. */
export function useQueuedAnswer<T>(caller: SignedInCaller, question: QueuedQuestion<T>): QueuedAnswer<T> {
  const { key, isInView, turn } = question;
  const [state, setState] = useState<QueuedAnswer<T>>({ kind: 'waiting' });
  const [tries, setTries] = useState(0);
  const latest = useRef(question.ask);
  latest.current = question.ask;
  useEffect(() => {
    void [turn, tries];
    if (!isInView) return;
    const { queue, known } = answersOf(caller);
    const leaving = new AbortController();
    // Only this hook stores answers, each under the key of its query, so the type is right.
    const kept = known.get(key) as Promise<T> | undefined;
    let begun = kept !== undefined;
    const ask = (): Promise<T> => {
      begun = true;
      return latest.current();
    };
    const answer = kept ?? queue.run(ask, leaving.signal);
    known.set(key, answer);
    if (kept === undefined) setState({ kind: 'waiting' });
    answer.then(
      (value) => {
        if (!leaving.signal.aborted) setState({ kind: 'answered', answer: value });
      },
      (error: unknown) => {
        if (leaving.signal.aborted) return;
        const again = (): void => {
          known.delete(key);
          setTries((n) => n + 1);
        };
        setState({ kind: 'failed', error, again });
      },
    );
    return () => {
      leaving.abort();
      if (!begun && known.get(key) === answer) known.delete(key);
    };
  }, [caller, key, isInView, turn, tries]);
  return state;
}

/** Returns a ref for an element, and true while the element is on the screen or within 80 pixels of it. */
export function useInView<E extends Element>(): readonly [(element: E | null) => void, boolean] {
  const [element, setElement] = useState<E | null>(null);
  const [isInView, setInView] = useState(false);
  useEffect(() => {
    if (element === null) return;
    const observer = new IntersectionObserver(
      (entries) => setInView(entries.at(-1)?.isIntersecting === true),
      { rootMargin: '80px' },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [setElement, isInView];
}
