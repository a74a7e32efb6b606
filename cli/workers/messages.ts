import { LIMIT_COUNTERS, type RateLimits } from '../../policy/index.js';
import { JOBS } from '../../src/ask/operating/insight.js';
import type { ProcessView, ReloadView } from '../../src/ask/operating/views.js';
import type { JobState } from '../../src/base/threads/job.js';
import type { Settings } from '../../src/service/settings.js';
import type {
  CatalogAsked,
  CatalogPart,
  CatalogSession,
  CatalogSettings,
  CatalogTold,
} from '../../src/surfaces/catalog/index.js';
import {
  bytes,
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

/** Everything that a supervisor and its workers say to each other. Each end refuses what does not stand here. */

/** Manifest and policy as all workers serve them; null for one that cannot be read. */
const texts = record({
  manifest: nullOr(text),
  policy: nullOr(text),
  /** Why there is no policy, where that is not a file's fault. */
  fault: nullOr(text),
  /** Of the control database; null where each gateway has a policy of its own. */
  activation: nullOr(number),
  /** The control database was heard since the start, or there is none. */
  heard: flag,
});

export type Texts = GuardedBy<typeof texts>;

/** What a worker is told at its start. */
const start = record({ number, settings: made<Settings>(), texts });

/** Where it listens. */
const ports = record({
  httpPort: number,
  pgPort: number,
  adminPort: nullOr(number),
  adminPgPort: nullOr(number),
});

/**
 * A change to read and check: the files, whose texts come along, what another worker has published, or the policy and what
 * other gateways have published.
 */
const change = record({ kind: oneOf('reload', 'version', 'policy'), texts, brokenSince: nullOr(number) });

export type ChangeAsked = GuardedBy<typeof change>;

/**
 * Why a change cannot be taken up. `policy`: for the newest policy is missing or invalid; `keptUntil`: the last valid one
 * serves until then, RFC 3339.
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
}) satisfies Guard<CatalogAsked>;

const catalogPart = record({
  id: number,
  signature: text,
  entities: number,
  columns: number,
  at: number,
  of: number,
  part: bytes,
}) satisfies Guard<CatalogPart>;

const charge = record({ key: text, windowMs: number, amount: number });

const counter = oneOf(...LIMIT_COUNTERS);

/** Of a caller's own sessions, one that it cancels or ends. */
const signal = record({ owner: text, pid: number, what: oneOf('cancel', 'terminate') });

const sessionCommand = record({ id: text, what: oneOf('cancel', 'end') });
const drained = record({ on: flag });

/** What the supervisor asks a worker. */
export const OF_WORKER = Object.freeze({
  /** To open its service and listen. What keeps it from that it says itself, by `failed`, before it ends. */
  start: exchange(start, ports),
  /** To take nothing more, and to end once what runs has ended, or after so many ms. */
  stop: exchange(record({ deadlineMs: number }), nothing),
  /** What it has not used of a lease, which it gives up. */
  /** To read and check a change, which then waits: null where it can be taken up. */
  prepare: exchange(change, nullOr(refusal)),
  /** Since then, ms since 1970, it cannot be known what is to serve. */
  losePolicy: exchange(record({ why: text, since: number }), nothing),
  /** To take up what was prepared. */
  take: exchange(nothing, record({ now: listOf(text), kept: listOf(text) })),
  /** To forget it, for another worker could not. */
  drop: exchange(nothing, nothing),
  /** A cancel request for a session of its own that another worker was sent; whether the key was right. */
  cancelled: exchange(record({ processId: number, key: bytes }), flag),
  /** The sessions that a caller has with it. */
  ownSessions: exchange(record({ owner: text }), listOf(made<CatalogSession>())),
  signalled: exchange(signal, flag),
  /** What it counts, as JSON. */
  figures: exchange(nothing, text),
  /** What it tells who runs the server. */
  view: exchange(nothing, made<ProcessView>()),
  /** True if it has that session or request, which it cancels or ends. */
  obey: exchange(sessionCommand, flag),
  drained: exchange(drained, nothing),
  /** True while workers keep running; false if they end one after another. */
  standing: exchange(record({ steady: flag }), nothing),
  /** Another worker has changed a draft. */
  draft: exchange(record({ id: text }), nothing),
  /** More was revoked: it stands in the data directory. */
  revoked: exchange(nothing, nothing),
  reclaim: exchange(record({ counter, key: text, endsAt: number }), number),
}) satisfies Protocol;

/** What a worker asks its supervisor. */
export const OF_SUPERVISOR = Object.freeze({
  /** It listens to its supervisor: what was said before is lost. */
  here: exchange(nothing, nothing),
  /** It cannot start: the exit status and the words that one process would end with. */
  failed: exchange(record({ exit: number, message: text }), nothing),
  /** Nothing can be answered any more, and the whole server should end. */
  over: exchange(record({ why: text }), nothing),
  /** It is open, and about to listen: resolves once it has taken up what the others have meanwhile. */
  admit: exchange(nothing, nothing),
  /** Resolves when it may change what all serve, which it ends by `leave`. */
  enter: exchange(nothing, nothing),
  leave: exchange(nothing, nothing),
  /** It has published: resolves once all others serve that, or are gone. */
  published: exchange(nothing, nothing),
  draftChanged: exchange(record({ id: text }), nothing),
  /** It has revoked something: resolves once all others have read that, or are gone. */
  revoked: exchange(nothing, nothing),
  /** A cancel request for a session of another worker; whether the key was right. */
  cancel: exchange(record({ worker: number, processId: number, key: bytes }), flag),
  /** The sessions that a caller has with any worker. */
  sessionsOf: exchange(record({ owner: text }), listOf(made<CatalogSession>())),
  /** True if there is such a session of the caller's. */
  signal: exchange(signal, flag),
  /** What each process of the server counts, as JSON. */
  gather: exchange(nothing, listOf(text)),
  /** What each process tells who runs the server, and does for them. */
  views: exchange(nothing, listOf(made<ProcessView>())),
  command: exchange(sessionCommand, flag),
  drain: exchange(drained, nothing),
  reloadAll: exchange(nothing, made<ReloadView>()),
  /** How a job stands that is done once for all; begun before by whoever is named. */
  job: exchange(record({ job: oneOf(...JOBS), by: nullOr(text) }), made<JobState>()),
  stopAll: exchange(nothing, nothing),
  /** True if a subject may have one more session of the wire, from this address. */
  session: exchange(record({ subject: text, address: text }), flag),
  sessionEnded: exchange(record({ subject: text, address: text }), nothing),
  /** A statement about the catalog: the engines are the supervisor's. */
  catalog: exchange(catalogAsked, made<CatalogTold>()),
  /** A part of the model of such a statement, whose engine is not there yet. */
  catalogPart: exchange(catalogPart, nothing),
  /** Nobody waits for it any more. */
  stopCatalog: exchange(record({ id: number }), nothing),
  /** Some uses of a limit; none, where none are left in any worker. */
  lease: exchange(record({ counter, key: text }), record({ tokens: number, endsAt: number })),
  /** What is added to counts that are held for all; how each stands. */
  charge: exchange(record({ charges: listOf(charge) }), listOf(record({ used: number, endsInMs: number }))),
  handBack: exchange(record({ counter, key: text, tokens: number, endsAt: number }), nothing),
  /** The limits of the policy that serves from now on. */
  limits: exchange(made<RateLimits>(), nothing),
  /** The key of the exchange, as PEM: it is on no disk. */
  exchangeKey: exchange(nothing, text),
  /** True if a token that is good for one use is used for the first time; it is used then. */
  firstUse: exchange(record({ token: text, issuedAt: number, endsAt: number }), flag),
  wrongPassword: exchange(record({ account: text, address: text }), nothing),
  /** True if a right one opens a session. */
  rightPassword: exchange(record({ account: text, address: text }), flag),
}) satisfies Protocol;

export type OfWorker = typeof OF_WORKER;
export type OfSupervisor = typeof OF_SUPERVISOR;

function exchange<Q, A>(ask: Guard<Q>, answer: Guard<A>): Exchange<Q, A> {
  return Object.freeze({ ask, answer });
}
