import { InternalError } from 'osl-compiler';
import { LIMIT_COUNTERS, type RateLimits } from '../../policy/index.js';
import { type RingCopy, SPAN_NAMES } from '../../src/ask/operating/history/history.js';
import { JOBS } from '../../src/ask/operating/insight.js';
import type { ProcessStatement, ProcessView, ReloadView } from '../../src/ask/operating/process-status.js';
import type { ShadowCommand, ShadowReport, ShadowStart } from '../../src/ask/shadow/shadows.js';
import type { ThreadJobState } from '../../src/base/threads/job.js';
import type { Settings } from '../../src/service/settings.js';
import type {
  CatalogModelPart,
  CatalogSettings,
  RemoteCatalogReply,
  RemoteCatalogRequest,
  SessionActivity,
} from '../../src/surfaces/catalog/index.js';

/** Checks the shape of a value. A message from another process is accepted only if this succeeds. */
type Guard<T> = (value: unknown) => value is T;

type GuardedBy<G> = G extends Guard<infer T> ? T : never;

const text: Guard<string> = (value) => typeof value === 'string';
const flag: Guard<boolean> = (value) => typeof value === 'boolean';
const number: Guard<number> = (value): value is number => typeof value === 'number' && !Number.isNaN(value);
const bytes: Guard<Uint8Array> = (value) => value instanceof Uint8Array;
const nothing: Guard<null> = (value): value is null => value === null;
/** The response to a request that has no result. */
const done: Guard<void> = (value): value is undefined => value === undefined;

function nullOr<T>(guard: Guard<T>): Guard<T | null> {
  return (value): value is T | null => value === null || guard(value);
}

function oneOf<const T extends string>(...words: readonly T[]): Guard<T> {
  return (value): value is T => words.some((word) => word === value);
}

function listOf<T>(guard: Guard<T>): Guard<readonly T[]> {
  return (value): value is readonly T[] => Array.isArray(value) && value.every((item) => guard(item));
}

/** Returns a guard for objects with these members; other members are ignored. */
function record<const F extends Readonly<Record<string, Guard<unknown>>>>(
  fields: F,
): Guard<{ readonly [K in keyof F]: GuardedBy<F[K]> }> {
  const members = Object.entries(fields);
  return (value): value is { readonly [K in keyof F]: GuardedBy<F[K]> } =>
    typeof value === 'object' &&
    value !== null &&
    members.every(([name, guard]) => guard(Reflect.get(value, name)));
}

/** Returns a guard for objects created by the same code in the other process, so their members are not checked. */
function made<T extends object>(): Guard<T> {
  return (value): value is T => typeof value === 'object' && value !== null;
}

interface Exchange<Q, A> {
  readonly ask: Guard<Q>;
  readonly answer: Guard<A>;
}

type Protocol = Readonly<Record<string, Exchange<unknown, unknown>>>;

type ProtocolQuestion<P extends Protocol, K extends keyof P> =
  P[K] extends Exchange<infer Q, unknown> ? Q : never;
type ProtocolAnswer<P extends Protocol, K extends keyof P> =
  P[K] extends Exchange<unknown, infer A> ? A : never;

export type Handlers<P extends Protocol> = {
  readonly [K in keyof P]: (
    question: ProtocolQuestion<P, K>,
  ) => ProtocolAnswer<P, K> | Promise<ProtocolAnswer<P, K>>;
};

/** Thrown if the other process has ended or sent an invalid message. */
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
   * Sends a request and returns its response.
   *
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
    if (!ENVELOPE(message)) throw new PeerGone('it sent what is not a message');
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
    const handler = this.#handlers[about as keyof Mine]; // a key of `#mine`, as checked above
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

/** Protocol between the supervisor and its workers. Both sides reject unknown messages. */

/** Texts of the manifest and policy for all workers; null if unreadable. */
const texts = record({
  manifest: nullOr(text),
  policy: nullOr(text),
  /** Reason why the current policy cannot be determined; null if it was read, or if reading its file failed. */
  fault: nullOr(text),
  /** Number of the activation in the control database; null if the policy comes from the gateway's own file. */
  activation: nullOr(number),
  /** True if the control database has responded since the start, or if none is configured. */
  heard: flag,
});

export type Texts = GuardedBy<typeof texts>;

const start = record({ number, settings: made<Settings>(), texts });

const ports = record({
  httpPort: number,
  pgPort: number,
  adminPort: nullOr(number),
  adminPgPort: nullOr(number),
});

/**
 * A change to read and check: new texts of both files, a version published by another worker, or a new policy together
 * with publications of other gateways.
 */
const change = record({ kind: oneOf('reload', 'version', 'policy'), texts, brokenSince: nullOr(number) });

export type WorkerChangeRequest = GuardedBy<typeof change>;

/**
 * Reason why a change cannot be applied. `policy`: true if the newest policy is missing or invalid; `keptUntil`: RFC
 * 3339 time until which the last valid policy is served, null if no old policy is in use.
 */
const refusal = record({ exit: number, message: text, policy: flag, keptUntil: nullOr(text) });

export type ChangeRefusal = GuardedBy<typeof refusal>;

const bit: Guard<0 | 1> = (value): value is 0 | 1 => value === 0 || value === 1;

const catalogAsked = record({
  id: number,
  signature: text,
  subject: text,
  caller: record({ user: text, session: made<CatalogSettings>() }),
  text,
  parameterTypes: listOf(number),
  run: nullOr(
    record({
      values: listOf(record({ format: bit, bytes: nullOr(bytes) })),
      formats: listOf(bit),
      maxRows: number,
    }),
  ),
}) satisfies Guard<RemoteCatalogRequest>;

const catalogPart = record({
  id: number,
  signature: text,
  entities: number,
  columns: number,
  at: number,
  of: number,
  part: bytes,
}) satisfies Guard<CatalogModelPart>;

const addition = record({ key: text, windowMs: number, maxSize: number, members: listOf(text) });

const charge = record({ key: text, windowMs: number, amount: number });

const counter = oneOf(...LIMIT_COUNTERS);

const signal = record({ owner: text, pid: number, what: oneOf('cancel', 'terminate') });

const sessionCommand = record({ id: text, what: oneOf('cancel', 'end') });
const drained = record({ on: flag });
const span = record({ span: oneOf(...SPAN_NAMES) });
const minutes = record({ from: number, until: number });

/** Requests from the supervisor to a worker. */
export const WORKER_PROTOCOL = Object.freeze({
  /** Opens the service and listens. Errors are sent as `failed` before the worker ends. */
  start: exchange(start, ports),
  stop: exchange(record({ deadlineMs: number }), done),
  /** Reads and checks a change and keeps it ready; the response is null if it can be applied. */
  prepare: exchange(change, nullOr(refusal)),
  /** Reports that the current policy cannot be determined; `since` in ms since 1970. */
  losePolicy: exchange(record({ why: text, since: number }), done),
  take: exchange(nothing, record({ now: listOf(text), kept: listOf(text) })),
  drop: exchange(nothing, done),
  cancelled: exchange(record({ processId: number, key: bytes }), flag),
  ownSessions: exchange(record({ owner: text }), listOf(made<SessionActivity>())),
  signalled: exchange(signal, flag),
  figures: exchange(nothing, text),
  view: exchange(nothing, made<ProcessView>()),
  history: exchange(span, made<RingCopy>()),
  slowest: exchange(minutes, listOf(made<ProcessStatement>())),
  obey: exchange(sessionCommand, flag),
  drained: exchange(drained, done),
  shadow: exchange(made<ShadowCommand>(), nullOr(made<ShadowReport>())),
  /**
   * `steady` is false while the workers of a slot end one after another. `clockWrong` is true if this machine's clock
   * is wrong.
   */
  standing: exchange(record({ steady: flag, clockWrong: flag }), done),
  draft: exchange(record({ id: text }), done),
  /** More tokens were revoked; they are listed in the data directory. */
  revoked: exchange(nothing, done),
  reclaim: exchange(record({ counter, key: text, endsAt: number }), number),
}) satisfies Protocol;

/** Requests from a worker to its supervisor. */
export const SUPERVISOR_PROTOCOL = Object.freeze({
  /** The worker is ready for messages; any sent earlier are lost. */
  here: exchange(nothing, done),
  /** The worker cannot start; contains the exit status and message for the whole server. */
  failed: exchange(record({ exit: number, message: text }), done),
  over: exchange(record({ why: text }), done),
  /** The worker's service is open; resolves once it is up to date with the other workers. */
  admit: exchange(nothing, done),
  /** Resolves when the worker may publish; it must send `leave` afterwards. */
  enter: exchange(nothing, done),
  leave: exchange(nothing, done),
  /** The worker has published; resolves once each other worker serves that version or has ended. */
  published: exchange(nothing, done),
  draftChanged: exchange(record({ id: text }), done),
  /** The worker has revoked something; resolves once each other worker has loaded the revocation or has ended. */
  revoked: exchange(nothing, done),
  cancel: exchange(record({ worker: number, processId: number, key: bytes }), flag),
  sessionsOf: exchange(record({ owner: text }), listOf(made<SessionActivity>())),
  signal: exchange(signal, flag),
  gather: exchange(nothing, listOf(text)),
  views: exchange(nothing, listOf(made<ProcessView>())),
  histories: exchange(span, listOf(made<RingCopy>())),
  slowest: exchange(minutes, listOf(made<ProcessStatement>())),
  command: exchange(sessionCommand, flag),
  drain: exchange(drained, done),
  /** Passes a shadow policy command to all workers; a start command is also kept for workers that begin later. */
  shadow: exchange(made<ShadowCommand>(), listOf(nullOr(made<ShadowReport>()))),
  /** The shadow policy that a worker joins when it begins; null if there is none. */
  runningShadow: exchange(nothing, nullOr(made<ShadowStart>())),
  reloadAll: exchange(nothing, made<ReloadView>()),
  /** Returns the state of a job that runs once for all workers. If `by` names a caller, the job is started first. */
  job: exchange(record({ job: oneOf(...JOBS), by: nullOr(text) }), made<ThreadJobState>()),
  stopAll: exchange(nothing, done),
  /** True if a subject may open another wire session from this address. */
  session: exchange(record({ subject: text, address: text }), flag),
  sessionEnded: exchange(record({ subject: text, address: text }), done),
  /** Runs a catalog statement in the supervisor, where the catalog engines are. */
  catalog: exchange(catalogAsked, made<RemoteCatalogReply>()),
  catalogPart: exchange(catalogPart, done),
  stopCatalog: exchange(record({ id: number }), done),
  /** Leases tokens of a rate limit to the worker; `tokens` is 0 once the workers have used up the limit. */
  lease: exchange(record({ counter, key: text }), record({ tokens: number, endsAt: number })),
  charge: exchange(record({ charges: listOf(charge) }), listOf(record({ used: number, endsInMs: number }))),
  /** Adds entities to the sets behind limits on how many different entities a caller is shown. */
  addEntities: exchange(
    record({ additions: listOf(addition) }),
    record({ refused: nullOr(number), counts: listOf(record({ used: number, endsInMs: number })) }),
  ),
  handBack: exchange(record({ counter, key: text, tokens: number, endsAt: number }), done),
  limits: exchange(made<RateLimits>(), done),
  /** Private key of the token exchange as PEM; never written to disk. */
  exchangeKey: exchange(nothing, text),
  /** Records the use of a single-use token; true if it was not used before. */
  firstUse: exchange(record({ token: text, issuedAt: number, endsAt: number }), flag),
  wrongPassword: exchange(record({ account: text, address: text }), done),
  /** True if a correct password may open a session; false after too many wrong ones. */
  rightPassword: exchange(record({ account: text, address: text }), flag),
}) satisfies Protocol;

export type WorkerProtocol = typeof WORKER_PROTOCOL;
export type SupervisorProtocol = typeof SUPERVISOR_PROTOCOL;

function exchange<Q, A>(ask: Guard<Q>, answer: Guard<A>): Exchange<Q, A> {
  return Object.freeze({ ask, answer });
}
