import type { AuditSurface } from '../../../policy/audit/index.js';
import type { Identity } from '../../../policy/index.js';

/** Who claims to ask. A session was identified once; its token's end is checked again for every question. */
export type Credentials =
  | { readonly kind: 'bearer'; readonly token: string | null; readonly address: string }
  | { readonly kind: 'session'; readonly identity: Identity };

/** One call of one caller, from whatever surface. */
export interface Call {
  /** Unique; joins the audit records, the answer and the log. */
  readonly requestId: string;
  readonly surface: AuditSurface;
  readonly credentials: Credentials;
}
