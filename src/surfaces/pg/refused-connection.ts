import type { RefusedEvent } from '../../../wire/index.js';
import { type Call, type RequestParts, refusedConnection } from '../../ask/index.js';

/** Records what failed before there was a session of the wire. */
export function recordRefusedConnection(
  parts: RequestParts,
  call: Call,
  { kind, sqlstate }: RefusedEvent,
): Promise<void> {
  return refusedConnection(parts, call, `wire ${kind}`, sqlstate ?? UNTOLD[kind]);
}

/** SQLSTATE of the reason, for a client that was told nothing. */
const UNTOLD: Readonly<Record<RefusedEvent['kind'], string>> = {
  startup: '08P01',
  tls: '08P01',
  password: '28P01',
  timeout: '57014',
  capacity: '53300',
  cancel: '28000',
  abandoned: '08006',
};
