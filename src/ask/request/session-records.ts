import { QueryError } from 'osl-compiler';
import type { RequestCall } from './call.js';
import type { RequestParts } from './parts.js';
import { ForeignFault } from './public-error.js';
import { recordBrokenConnection } from './refusals.js';
import { respond } from './respond.js';

/** The part of a request that reads and answers nothing. */
export const NOTHING_TO_ANSWER = {
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
  await respond(parts, call, { action, bucket: 'catalog', ...NOTHING_TO_ANSWER });
}

/**
 * Records and counts a statement that the surface itself refused with this SQLSTATE or error.
 *
 * @throws QueryError E5030 if it could not be recorded. If the caller has lost its access, that is recorded instead.
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
      ...NOTHING_TO_ANSWER,
      action: 'session',
      bucket: 'catalog',
      decide,
    });
  } catch (error) {
    if (error === reason) return;
    if (!(error instanceof QueryError) || error.entry === 'auditUnavailable') throw error;
  }
}

/** Records a failure before a session existed, with the SQLSTATE for the client. */
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
  override readonly heard: string | null;

  constructor(code: string, heard: string | null = null) {
    super(code);
    this.code = code;
    this.heard = heard;
  }
}
