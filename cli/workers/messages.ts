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
import {
  bytes,
  done,
  type Exchange,
  flag,
  type Guard,
  type GuardedBy,
  listOf,
  made,
  nothing,
  nullOr,
  number,
  oneOf,
  type Protocol,
  record,
  text,
} from './peer.js';

/** Protocol between the supervisor and its workers. Both sides reject unknown messages. */

/** Manifest and policy for all workers; null if unreadable. */
const texts = record({
  manifest: nullOr(text),
  policy: nullOr(text),
  /** Reason why the policy is missing, unless the file itself has an error. */
  fault: nullOr(text),
  /** Activation in the control database; null if the gateway has its own policy file. */
  activation: nullOr(number),
  /** True if the control database has responded since the start, or if there is none. */
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
 * Reason why a change cannot be applied. `policy`: the newest policy is missing or invalid; `keptUntil`: time at which
 * the last valid one stops being served, RFC 3339.
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

const addition = record({ key: text, windowMs: number, most: number, members: listOf(text) });

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
  /** The current policy cannot be determined; `since` in ms since 1970. */
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
   * `steady` is true while workers keep running, and false if they end one after another. `clockWrong`: this machine's
   * clock is.
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
  /** The worker has revoked something; resolves once each other worker knows or has ended. */
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
  /** Passes a command to all workers; a start is also kept for workers that begin later. */
  shadow: exchange(made<ShadowCommand>(), listOf(nullOr(made<ShadowReport>()))),
  /** The shadow policy that a worker joins when it begins; null if there is none. */
  runningShadow: exchange(nothing, nullOr(made<ShadowStart>())),
  reloadAll: exchange(nothing, made<ReloadView>()),
  /** State of a job that runs once for all workers; the job is started if `by` names a caller. */
  job: exchange(record({ job: oneOf(...JOBS), by: nullOr(text) }), made<ThreadJobState>()),
  stopAll: exchange(nothing, done),
  /** True if a subject may open another wire session from this address. */
  session: exchange(record({ subject: text, address: text }), flag),
  sessionEnded: exchange(record({ subject: text, address: text }), done),
  /** Runs a catalog statement in the supervisor, where the catalog engines are. */
  catalog: exchange(catalogAsked, made<RemoteCatalogReply>()),
  catalogPart: exchange(catalogPart, done),
  stopCatalog: exchange(record({ id: number }), done),
  /** Leases a batch of quota; nothing is granted once the workers have used it all. */
  lease: exchange(record({ counter, key: text }), record({ tokens: number, endsAt: number })),
  charge: exchange(record({ charges: listOf(charge) }), listOf(record({ used: number, endsInMs: number }))),
  /** Adds entities to the sets of those that callers were shown. */
  addEntities: exchange(
    record({ additions: listOf(addition) }),
    record({ refused: nullOr(number), counts: listOf(record({ used: number, endsInMs: number })) }),
  ),
  handBack: exchange(record({ counter, key: text, tokens: number, endsAt: number }), done),
  limits: exchange(made<RateLimits>(), done),
  /** Private key of the token exchange as PEM; never written to disk. */
  exchangeKey: exchange(nothing, text),
  /** True if a single-use token is being used for the first time. */
  firstUse: exchange(record({ token: text, issuedAt: number, endsAt: number }), flag),
  wrongPassword: exchange(record({ account: text, address: text }), done),
  /** True if a correct password may open a session. */
  rightPassword: exchange(record({ account: text, address: text }), flag),
}) satisfies Protocol;

export type WorkerProtocol = typeof WORKER_PROTOCOL;
export type SupervisorProtocol = typeof SUPERVISOR_PROTOCOL;

function exchange<Q, A>(ask: Guard<Q>, answer: Guard<A>): Exchange<Q, A> {
  return Object.freeze({ ask, answer });
}
