import type { AuditSurface } from '../../../audit/index.js';
import type { Circumstances, ClientCertificate, Emergency, Identity } from '../../../policy/index.js';

/** Who claims to ask. A session was identified once; its token's end is checked again for every question. */
export type Credentials =
  | {
      readonly kind: 'bearer';
      readonly token: string | null;
      readonly address: string;
      /** What the client showed: it stands in for a token that was not sent. Absent: it showed none. */
      readonly certificate?: PresentedCertificate;
    }
  | { readonly kind: 'session'; readonly identity: Identity };

/** A client certificate; null: it is of no authority that is trusted here. */
export type PresentedCertificate = ClientCertificate | null;

/** One call of one caller, from whatever surface. */
export interface RequestCall {
  /** Unique; joins the audit records, the answer and the log. */
  readonly requestId: string;
  readonly surface: AuditSurface;
  readonly credentials: Credentials;
  /** Absent: nobody knows where it comes from, and its caller says nothing of it. */
  readonly origin?: Origin;
  /** Of the trace that it belongs to, checked (W3C Trace Context); absent where its caller said nothing of one. */
  readonly traceparent?: string;
}

/** Where a call comes from, and what its caller says of it. */
export interface Origin {
  /** Of the peer's socket: no header tells it. Null where there is none. */
  readonly address: string | null;
  /** What the caller says that it is for. */
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
