import type { AuditStats } from '../../../audit/index.js';
import type { Identity, RevocationKey, RevocationResult, RevokedTokens } from '../../../policy/index.js';
import { instant } from '../../base/instant.js';
import type { EnginePool } from '../../engine/index.js';
import type { FallbackPolicy } from '../../model/served-model.js';
import type { AnswerParts, RequestCall } from '../index.js';
import type { SlowStatement } from '../request/meters.js';
import { redactStatement } from '../request/redacted-statement.js';
import type { RingCopy, SpanName } from './history/history.js';

/** A Postgres session. Times are ms since the epoch. */
interface OpenWireSession {
  readonly pid: number;
  readonly user: string;
  readonly chain: readonly string[];
  readonly token_id: string;
  readonly application_name: string;
  readonly backend_start: number;
  readonly state_change: number;
  readonly state: string;
  /** The running statement; empty if there is none. */
  readonly query: string;
  readonly objects: readonly string[] | null;
}

/** A running HTTP request. */
interface HttpExecution {
  readonly call: RequestCall;
  readonly action: string;
  readonly text: string | null;
  readonly since: number;
}

export interface ViewedParts extends Pick<AnswerParts, 'model' | 'engines' | 'plans' | 'verifier'> {
  readonly audit: { stats(): AuditStats };
  fallbackPolicy(): FallbackPolicy | null;
  policyFault(): string | null;
}

/** State of a process outside of its service, such as open sessions. */
export interface OwnState {
  readonly process: string;
  readonly draining: boolean;
  readonly sessions: readonly OpenWireSession[];
  readonly executions: readonly HttpExecution[];
  readonly fastQuestions: number;
}

export function ownView(parts: ViewedParts, own: OwnState): ProcessView {
  const { manifest, snapshot } = parts.model();
  const { process: name } = own;
  const kept = parts.fallbackPolicy();
  const engines = [...parts.engines];
  return {
    process: name,
    pid: process.pid,
    since: instant(Date.now() - 1_000 * process.uptime()),
    draining: own.draining,
    manifest: manifest.version,
    policy: snapshot?.version ?? null,
    policy_kept_until: kept === null ? null : instant(kept.until),
    policy_fault: parts.policyFault(),
    audit: auditView(parts.audit.stats()),
    sessions: [
      ...own.sessions.map((session) => wireView(session, name, parts)),
      ...own.executions.map((execution) => httpView(execution, name, parts)),
    ],
    pools: engines.flatMap(([connector, engine]) =>
      engine.pools().map((pool): PoolView => ({ process: name, connector, ...pool })),
    ),
    caches: cachesOf(parts, own),
    out_of_service: engines.flatMap(([, engine]) => [...engine.outOfService.keys()]),
  };
}

function auditView({ records, durable, anchored, failure }: AuditStats): ProcessView['audit'] {
  return {
    records,
    waiting: records - durable,
    unanchored: records - anchored,
    failing: failure === null ? null : failure.reason,
  };
}

function wireView(session: OpenWireSession, process: string, parts: Pick<ViewedParts, 'model'>): SessionView {
  const { pid, user, chain, query, objects } = session;
  return {
    id: String(pid),
    process,
    surface: 'wire',
    user,
    subject: chain.at(-1) ?? null,
    chain,
    token_id: session.token_id,
    application: session.application_name === '' ? null : session.application_name.slice(0, 64),
    since: instant(session.backend_start),
    state: session.state,
    state_since: instant(session.state_change),
    ...shapeOf(query === '' ? null : query, parts),
    objects: objects ?? [],
  };
}

function httpView(
  { call, text, since }: HttpExecution,
  process: string,
  parts: Pick<ViewedParts, 'model' | 'verifier'>,
): SessionView {
  const identity = identityOf(call, parts);
  return {
    id: call.requestId,
    process,
    surface: call.surface === 'mcp' ? 'mcp' : 'rest',
    user: null,
    subject: identity?.subject ?? null,
    chain: identity?.chain ?? [],
    token_id: identity?.tokenId ?? null,
    application: null,
    since: instant(since),
    state: 'active',
    state_since: instant(since),
    ...shapeOf(text, parts),
    objects: [],
  };
}

/** Returns the caller of an execution; null until its token is verified, and for a request without a token. */
function identityOf(
  { credentials }: RequestCall,
  { verifier }: Pick<ViewedParts, 'verifier'>,
): Identity | null {
  if (credentials.kind === 'session') return credentials.identity;
  return credentials.token === null ? null : verifier.cached(credentials.token);
}

function shapeOf(
  text: string | null,
  { model }: Pick<ViewedParts, 'model'>,
): Pick<SessionView, 'shape' | 'fingerprint'> {
  return text === null ? { shape: null, fingerprint: null } : redactStatement(text, model().manifest.catalog);
}

function cachesOf({ plans }: ViewedParts, { process, fastQuestions }: OwnState): readonly CacheView[] {
  const { entries, bytes, hits, shapeHits, misses } = plans.stats();
  return [
    { process, cache: 'plans', entries, bytes, hits: hits + shapeHits, misses },
    { process, cache: 'routes', entries: 0, bytes: 0, hits: fastQuestions, misses: 0 },
  ];
}

/** The status of one process. Times are in RFC 3339. Contains no literals of queries. */
export interface ProcessView {
  /** Name of the process: `server`, or for example `worker 2`. */
  readonly process: string;
  readonly pid: number;
  readonly since: string;
  /** True while the process accepts no new sessions and reports that it is not ready. */
  readonly draining: boolean;
  readonly manifest: string;
  /** Version of the policy in force; null if there is none, so that every request is refused. */
  readonly policy: string | null;
  /** Expiry of the last valid policy, if it is kept because a newer one is invalid. */
  readonly policy_kept_until: string | null;
  /** Error in the newest policy, with its position; null if that policy is in force. */
  readonly policy_fault: string | null;
  readonly audit: AuditView;
  readonly sessions: readonly SessionView[];
  readonly pools: readonly PoolView[];
  readonly caches: readonly CacheView[];
  /** Entities and bridges with a missing table or column. */
  readonly out_of_service: readonly string[];
}

/** A Postgres session, or a running HTTP request. */
export interface SessionView {
  /** Process id of the session, or request id. */
  readonly id: string;
  readonly process: string;
  readonly surface: 'wire' | 'rest' | 'mcp';
  /** Postgres user; null for HTTP. */
  readonly user: string | null;
  readonly subject: string | null;
  readonly chain: readonly string[];
  readonly token_id: string | null;
  readonly application: string | null;
  readonly since: string;
  /** The state, with the values used by `pg_stat_activity`. */
  readonly state: string;
  readonly state_since: string;
  /** Redacted text of the running statement; null if none. */
  readonly shape: string | null;
  readonly fingerprint: string | null;
  /** Names of the objects read by a query on the fast path, where the text is not available. */
  readonly objects: readonly string[];
}

interface PoolView extends EnginePool {
  readonly process: string;
  readonly connector: string;
}

interface CacheView {
  readonly process: string;
  readonly cache: string;
  readonly entries: number;
  readonly bytes: number;
  readonly hits: number;
  readonly misses: number;
}

interface AuditView {
  readonly records: number;
  readonly waiting: number;
  /** Number of records not yet covered by a signed checkpoint. */
  readonly unanchored: number;
  /** The reason why the log refuses records; null if it works. */
  readonly failing: string | null;
}

export type SessionCommand = 'cancel' | 'end';

/** Result of a reload: what is in force and which changes need a restart, or the reason why nothing changed. */
export type ReloadView =
  | { readonly reloaded: true; readonly now: readonly string[]; readonly kept: readonly string[] }
  | { readonly reloaded: false; readonly why: string };

/** Operations that affect all processes of the server. */
export interface ServerOperations {
  views(): Promise<readonly ProcessView[]>;
  command(id: string, what: SessionCommand): Promise<boolean>;
  drain(on: boolean): Promise<void>;
  reload(): Promise<ReloadView>;
  stop(): void;
  /** Returns the figures of each process for the period `span`. */
  histories(span: SpanName): Promise<readonly RingCopy[]>;
  /** Returns the slowest statements of the minutes between two times, in ms since 1970. */
  slowest(from: number, until: number): Promise<readonly ProcessStatement[]>;
}

/** A statement among the slowest of its minute in one process. */
export interface ProcessStatement extends SlowStatement {
  readonly process: string;
}

/** Dependencies for revoking tokens on all gateways. */
export interface RevokingParts {
  readonly revocations: {
    readonly revoked: Pick<RevokedTokens, 'all'>;
    revoke(what: RevocationKey): Promise<RevocationResult>;
  };
}
