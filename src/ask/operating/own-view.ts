import type { AuditStats } from '../../../audit/index.js';
import type { Identity } from '../../../policy/index.js';
import type { KeptPolicy } from '../../model/served-model.js';
import type { AnswerParts, RequestCall } from '../index.js';
import { toldShape } from '../request/told-shape.js';
import type { CacheView, PoolView, ProcessView, SessionView } from './views.js';

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
  /** Running statement; empty if none. */
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
  keptPolicy(): KeptPolicy | null;
  policyFault(): string | null;
}

/** State of a process outside its service. */
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
  const kept = parts.keptPolicy();
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

/** Null until the token is verified. */
function identityOf(
  { credentials }: RequestCall,
  { verifier }: Pick<ViewedParts, 'verifier'>,
): Identity | null {
  if (credentials.kind === 'session') return credentials.identity;
  return credentials.token === null ? null : verifier.known(credentials.token);
}

function shapeOf(
  text: string | null,
  { model }: Pick<ViewedParts, 'model'>,
): Pick<SessionView, 'shape' | 'fingerprint'> {
  return text === null ? { shape: null, fingerprint: null } : toldShape(text, model().manifest.catalog);
}

function cachesOf({ plans }: ViewedParts, { process, fastQuestions }: OwnState): readonly CacheView[] {
  const { entries, bytes, hits, shapeHits, misses } = plans.stats();
  return [
    { process, cache: 'plans', entries, bytes, hits: hits + shapeHits, misses },
    { process, cache: 'routes', entries: 0, bytes: 0, hits: fastQuestions, misses: 0 },
  ];
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}
