import { QueryError } from 'osl-compiler';
import type { LimitBucket } from '../../../policy/index.js';
import type { RequestCall } from './call.js';
import type { Caller } from './caller.js';
import type { RequestParts } from './parts.js';
import { ForeignFault } from './public-error.js';
import { recordBrokenConnection, refuseUnauthenticated } from './refusals.js';
import { respond } from './respond.js';

/** Handles a call that reads no data and is open to any authenticated caller. @throws QueryError */
export function admitCall(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  bucket: LimitBucket,
): Promise<Caller> {
  return respond<Caller, Caller>(parts, call, {
    action,
    bucket,
    decide: (caller) => caller,
    answer: (caller) => caller,
  });
}

/** Rate-limit buckets for malformed calls, by action. Other actions count as queries. */
const BUCKETS: ReadonlyMap<string, LimitBucket> = new Map([
  ['sample', 'sample'],
  ['schema', 'schema'],
  ['candidates', 'authoring'],
  ['suggest', 'authoring'],
  ['validate', 'authoring'],
  ['publish', 'authoring'],
  ['objects', 'authoring'],
  ['mcp', 'catalog'],
]);

/**
 * Callers that see the reason of a refusal. `identified`: unauthenticated callers get the authentication error instead.
 */
export type RefusalAudience = 'anyone' | 'identified';

/**
 * Refuses and records an unknown path or a malformed request. Returns the error for the caller. An invalid token is
 * always reported, never treated as absent.
 */
export async function refuseCall(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  reason: QueryError,
  audience: RefusalAudience,
): Promise<QueryError> {
  const { credentials } = call;
  const anonymous =
    credentials.kind === 'bearer' && credentials.token === null && credentials.certificate === undefined;
  if (anonymous && audience === 'anyone') return refuseUnauthenticated(parts, call, action, reason);
  const decide = (): never => {
    throw reason;
  };
  const bucket = BUCKETS.get(action) ?? 'query';
  try {
    return await respond<never, never>(parts, call, { action, bucket, decide, answer: decide });
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
}

/** Steps of a request that reads no rows and has no result. */
export const NO_ANSWER_STEPS = {
  readsNoRows: true,
  decide: () => undefined,
  answer: () => undefined,
} as const;

/**
 * Records and counts a statement that reads no data: SET, SHOW, BEGIN and the like, and catalog queries.
 *
 * @throws QueryError E4290, E5030
 */
export async function sessionCommand(
  parts: RequestParts,
  call: RequestCall,
  action = 'session',
): Promise<void> {
  await respond(parts, call, { action, bucket: 'catalog', ...NO_ANSWER_STEPS });
}

/**
 * Records and counts a statement that the surface itself refused with the SQLSTATE or error `refusal`.
 *
 * @throws QueryError E5030 if the refusal could not be recorded. If the caller has lost its access, that is recorded
 * instead.
 */
export async function refusedCommand(
  parts: RequestParts,
  call: RequestCall,
  refusal: string | QueryError,
): Promise<void> {
  const reason = typeof refusal === 'string' ? new SurfaceFault(refusal) : refusal;
  const decide = (): never => {
    throw reason;
  };
  try {
    await respond(parts, call, {
      ...NO_ANSWER_STEPS,
      action: 'session',
      bucket: 'catalog',
      decide,
    });
  } catch (error) {
    if (error === reason) return;
    if (!(error instanceof QueryError) || error.entry === 'auditUnavailable') throw error;
  }
}

/** Records a failure that occurred before there was a session, with the SQLSTATE for the client. */
export function refusedConnection(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  sqlstate: string,
): Promise<void> {
  return recordBrokenConnection(parts, call, action, new SurfaceFault(sqlstate));
}

/** A refusal already sent in the surface's own protocol. */
export class SurfaceFault extends ForeignFault {
  override readonly name = 'SurfaceFault';
  readonly code: string;
  override readonly sentSqlstate: string | null;

  constructor(code: string, sentSqlstate: string | null = null) {
    super(code);
    this.code = code;
    this.sentSqlstate = sentSqlstate;
  }
}

/**
 * A dashboard provided by the operator, listed for callers who have one of its roles. It contains queries but no data.
 */
export interface SharedDashboard {
  /** Data roles of the policy; a caller with one of them sees the dashboard. */
  readonly roles: readonly string[];
  /** Content of the dashboard's file, without the roles. */
  readonly content: Readonly<Record<string, unknown>>;
}

/** Dependencies for listing shared dashboards. */
export interface DashboardParts extends RequestParts {
  /** All shared dashboards, sorted by title. */
  readonly sharedDashboards: () => readonly SharedDashboard[];
}

/** Returns the shared dashboards for the caller's effective roles. @throws the errors of `respond` */
export function listDashboards(
  parts: DashboardParts,
  call: RequestCall,
): Promise<readonly SharedDashboard['content'][]> {
  return respond<readonly SharedDashboard[], readonly SharedDashboard['content'][]>(parts, call, {
    action: 'dashboards',
    bucket: 'schema',
    decide: ({ access: { dataRoles } }) =>
      parts.sharedDashboards().filter(({ roles }) => roles.some((role) => dataRoles.has(role))),
    answer: (decided) => decided.map(({ content }) => content),
  });
}
