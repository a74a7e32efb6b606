import { InternalError } from 'osl-compiler';

/** Checks the shape of a value. A message from another process is accepted only if this succeeds. */
export type Guard<T> = (value: unknown) => value is T;

export type GuardedBy<G> = G extends Guard<infer T> ? T : never;

export const text: Guard<string> = (value) => typeof value === 'string';
export const flag: Guard<boolean> = (value) => typeof value === 'boolean';
export const number: Guard<number> = (value): value is number =>
  typeof value === 'number' && !Number.isNaN(value);
export const bytes: Guard<Uint8Array> = (value) => value instanceof Uint8Array;
export const nothing: Guard<null> = (value): value is null => value === null;
/** The response to a request that has no result. */
export const done: Guard<void> = (value): value is undefined => value === undefined;

export function nullOr<T>(guard: Guard<T>): Guard<T | null> {
  return (value): value is T | null => value === null || guard(value);
}

export function oneOf<const T extends string>(...words: readonly T[]): Guard<T> {
  return (value): value is T => words.some((word) => word === value);
}

export function listOf<T>(guard: Guard<T>): Guard<readonly T[]> {
  return (value): value is readonly T[] => Array.isArray(value) && value.every((item) => guard(item));
}

/** An object with these members; others are ignored. */
export function record<const F extends Readonly<Record<string, Guard<unknown>>>>(
  fields: F,
): Guard<{ readonly [K in keyof F]: GuardedBy<F[K]> }> {
  const members = Object.entries(fields);
  return (value): value is { readonly [K in keyof F]: GuardedBy<F[K]> } =>
    typeof value === 'object' &&
    value !== null &&
    members.every(([name, guard]) => guard(Reflect.get(value, name)));
}

/** An object created by the same code in the other process, so its members are not checked. */
export function made<T extends object>(): Guard<T> {
  return (value): value is T => typeof value === 'object' && value !== null;
}

export interface Exchange<Q, A> {
  readonly ask: Guard<Q>;
  readonly answer: Guard<A>;
}

export type Protocol = Readonly<Record<string, Exchange<unknown, unknown>>>;

type ProtocolQuestion<P extends Protocol, K extends keyof P> =
  P[K] extends Exchange<infer Q, unknown> ? Q : never;
type ProtocolAnswer<P extends Protocol, K extends keyof P> =
  P[K] extends Exchange<unknown, infer A> ? A : never;

export type Handlers<P extends Protocol> = {
  readonly [K in keyof P]: (
    question: ProtocolQuestion<P, K>,
  ) => ProtocolAnswer<P, K> | Promise<ProtocolAnswer<P, K>>;
};

/** The other process has ended or sent an invalid message. */
export class PeerGone extends Error {
  override readonly name = 'PeerGone';
}

class PeerFault extends Error {
  override readonly name = 'PeerFault';
}

interface PendingQuestion {
  readonly guard: Guard<unknown>;
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

const ENVELOPE = record({ kind: oneOf('ask', 'answer', 'fault'), id: number });
const ASK = record({ about: text });
const FAULT = record({ message: text });

/** One end of the channel between supervisor and worker: requests in both directions, each with one response. */
export class Peer<Mine extends Protocol, Theirs extends Protocol> {
  readonly #theirs: Theirs;
  readonly #mine: Mine;
  readonly #handlers: Handlers<Mine>;
  readonly #post: (message: object) => void;
  readonly #pending = new Map<number, PendingQuestion>();
  #last = 0;
  #gone: PeerGone | null = null;

  /**
   * @param mine requests that this end accepts
   * @param theirs requests that this end sends
   */
  constructor(mine: Mine, handlers: Handlers<Mine>, theirs: Theirs, post: (message: object) => void) {
    this.#mine = mine;
    this.#handlers = handlers;
    this.#theirs = theirs;
    this.#post = post;
  }

  /**
   * @param heard called with the response before any later message is handled
   * @throws PeerGone, PeerFault
   */
  ask<K extends keyof Theirs & string>(
    about: K,
    question: ProtocolQuestion<Theirs, K>,
    heard: (answer: ProtocolAnswer<Theirs, K>) => void = () => undefined,
  ): Promise<ProtocolAnswer<Theirs, K>> {
    if (this.#gone !== null) return Promise.reject(this.#gone);
    const exchange = this.#theirs[about];
    if (exchange === undefined) throw new InternalError(`there is no question about ${about}`);
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      const take = (answer: ProtocolAnswer<Theirs, K>): void => {
        heard(answer);
        resolve(answer);
      };
      // The guard has checked the response.
      this.#pending.set(id, { guard: exchange.answer, resolve: take as (answer: unknown) => void, reject });
      this.#post({ kind: 'ask', id, about, body: question });
    });
  }

  /** Handles a message. @throws PeerGone if it is invalid, because the other end can no longer be trusted */
  heard(message: unknown): void {
    if (!ENVELOPE(message)) throw new PeerGone('it sent what is no message');
    const body: unknown = Reflect.get(message, 'body');
    switch (message.kind) {
      case 'ask':
        if (!ASK(message)) throw new PeerGone('it asked about nothing');
        this.#answer(message.id, message.about, body);
        return;
      case 'answer':
        this.#settle(message.id, ({ guard, resolve, reject }) => {
          if (guard(body)) resolve(body);
          else reject(new PeerFault('its answer has another shape'));
        });
        return;
      case 'fault':
        this.#settle(message.id, ({ reject }) =>
          reject(new PeerFault(FAULT(message) ? message.message : 'it failed')),
        );
        return;
      default: {
        const unknown: never = message.kind;
        throw new InternalError(`unknown message ${String(unknown)}`);
      }
    }
  }

  end(why: string): void {
    this.#gone ??= new PeerGone(why);
    for (const { reject } of this.#pending.values()) reject(this.#gone);
    this.#pending.clear();
  }

  #settle(id: number, by: (pending: PendingQuestion) => void): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (pending !== undefined) by(pending);
  }

  #answer(id: number, about: string, question: unknown): void {
    const exchange = Object.hasOwn(this.#mine, about) ? this.#mine[about] : undefined;
    if (exchange?.ask(question) !== true) throw new PeerGone(`it asked in no known way about ${about}`);
    const handler = this.#handlers[about as keyof Mine]; // one of its own keys, as checked above
    const failed = (error: unknown): void => {
      this.#reply({ kind: 'fault', id, message: error instanceof Error ? error.message : String(error) });
    };
    try {
      // The guard has checked the request.
      const answer = handler(question as ProtocolQuestion<Mine, keyof Mine>);
      if (answer instanceof Promise) answer.then((body) => this.#reply({ kind: 'answer', id, body }), failed);
      else this.#reply({ kind: 'answer', id, body: answer });
    } catch (error) {
      failed(error);
    }
  }

  #reply(message: object): void {
    if (this.#gone === null) this.#post(message);
  }
}
