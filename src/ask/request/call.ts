import type { AuditSurface } from '../../../audit/index.js';
import type { Circumstances, ClientCertificate, Emergency, Identity } from '../../../policy/index.js';

/** Credentials of a call. A session was identified once; its token's expiry is checked again for every question. */
export type Credentials =
  | {
      readonly kind: 'bearer';
      readonly token: string | null;
      readonly address: string;
      /** Certificate that the client presented: used if no token was sent. Absent: none was presented. */
      readonly certificate?: PresentedCertificate;
    }
  | { readonly kind: 'session'; readonly identity: Identity };

/** A client certificate; null if no trusted authority issued it. */
export type PresentedCertificate = ClientCertificate | null;

/** One call of one caller, from whatever surface. */
export interface RequestCall {
  /** Unique; joins the audit records, the answer and the log. */
  readonly requestId: string;
  readonly surface: AuditSurface;
  readonly credentials: Credentials;
  /** Absent: origin unknown, and no purpose or emergency stated. */
  readonly origin?: Origin;
  /** Validated W3C Trace Context; absent if the caller sent none. */
  readonly traceparent?: string;
}

/** Origin of a call, and what its caller states about it. */
export interface Origin {
  /** Address of the peer's socket, never from a header. Null if there is none. */
  readonly address: string | null;
  /** Purpose that the caller states. */
  readonly purpose: string | null;
  readonly emergency: Emergency | null;
}

/** In what circumstances `call` is decided now. */
export function circumstancesOf({ surface, credentials, origin }: RequestCall): Circumstances {
  return {
    now: Date.now(),
    surface,
    address: origin?.address ?? (credentials.kind === 'bearer' ? credentials.address : null),
    purpose: origin?.purpose ?? null,
    emergency: origin?.emergency ?? null,
  };
}
