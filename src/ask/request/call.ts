import type { AuditSurface } from '../../../audit/index.js';
import type { Circumstances, ClientCertificate, Emergency, Identity } from '../../../policy/index.js';

/** Credentials of a call. A session is authenticated once, but its expiry is checked for every request. */
export type Credentials =
  | {
      readonly kind: 'bearer';
      readonly token: string | null;
      readonly address: string;
      /** Client certificate, used if there is no token. Absent if none was presented. */
      readonly certificate?: PresentedCertificate;
    }
  | { readonly kind: 'session'; readonly identity: Identity };

/** A client certificate; null if no trusted authority issued it. */
export type PresentedCertificate = ClientCertificate | null;

/** A single call, from any surface. */
export interface RequestCall {
  /** Unique id that links the audit records, the answer and the log. */
  readonly requestId: string;
  readonly surface: AuditSurface;
  readonly credentials: Credentials;
  /** Address, purpose, emergency and task of the call; absent if none of them is known. */
  readonly origin?: Origin;
  /** Validated W3C Trace Context; absent if none was sent. */
  readonly traceparent?: string;
}

export interface Origin {
  /** The peer's address, taken from the socket and never from a header; null if there is none. */
  readonly address: string | null;
  readonly purpose: string | null;
  readonly emergency: Emergency | null;
  /** The task that the client names; absent or null if none. */
  readonly task?: string | null;
  /** Reason for the approval request that is made if the query needs one; absent or null if the client gave none. */
  readonly approvalReason?: string | null;
}

export function circumstancesOf({
  surface,
  credentials,
  origin,
}: RequestCall): Omit<Circumstances, 'approved'> {
  return {
    now: Date.now(),
    surface,
    address: origin?.address ?? (credentials.kind === 'bearer' ? credentials.address : null),
    purpose: origin?.purpose ?? null,
    emergency: origin?.emergency ?? null,
  };
}
