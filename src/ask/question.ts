import type { GovernedPlan, MetricsRequest } from 'osl-compiler';
import type { AuditSurface } from '../../policy/audit/index.js';
import type { Identity } from '../../policy/index.js';
import type { BoundValue, RowSink, StatementSettings } from '../engine/index.js';
import type { Payment } from './payment.js';
import type { Snapshots } from './snapshots.js';

/** Who claims to ask. A session was identified once; its token's end is checked again for every question. */
export type Credentials =
  | { readonly kind: 'bearer'; readonly token: string | null; readonly address: string }
  | { readonly kind: 'session'; readonly identity: Identity };

/** The three shapes of the contract's query body, and a statement of the wire, which may be OSL-SQL or raw SQL. */
export type Body =
  | { readonly kind: 'osql'; readonly text: string }
  | { readonly kind: 'sql'; readonly text: string }
  | { readonly kind: 'wire'; readonly text: string }
  | { readonly kind: 'metrics'; readonly request: MetricsRequest };

/** One call of one caller, from whatever surface. */
export interface Call {
  /** Unique; joins the audit records, the answer and the log. */
  readonly requestId: string;
  readonly surface: AuditSurface;
  readonly credentials: Credentials;
}

/** A call that asks for data. */
export interface Question extends Call {
  readonly body: Body;
  /** OIDs that the client declared for `$1 …`; 0 leaves the choice to us. */
  readonly parameterOids: readonly number[];
  /** What `prepare` gave for the same question. It spares a look-up; rights are looked at all the same. */
  readonly prepared?: Prepared;
}

/** A question that was compiled under the rights of its time. */
export interface Prepared {
  readonly body: Body;
  readonly parameterOids: readonly number[];
  readonly plan: GovernedPlan;
  /** Compiling was counted against the limit; the first run, if it comes at once, is not counted again. */
  readonly payment: Payment;
  /** Puts on record that it was compiled, where no run does so. @throws QueryError E5030 */
  record(): Promise<void>;
}

/** What an answer rests on. */
export interface Versions {
  readonly manifest: string;
  readonly policy: string;
}

/** How an answer is to be delivered. */
export interface Delivery {
  /** Values of `$1 …`. */
  readonly parameters: readonly BoundValue[];
  /** None: all text; one: for all columns; otherwise one per column. */
  readonly resultFormats: readonly (0 | 1)[];
  /** Rows that the asker wants at most, below the service's own cap; 0 means the service's. */
  readonly maxRows: number;
  readonly signal: AbortSignal | null;
  /** Settings of the asker's session for its own statement; what policy and metrics say does not depend on them. */
  readonly settings?: StatementSettings;
  /** Of the transaction that the question is asked in, where that has one state of the data. */
  readonly snapshots?: Snapshots;
  /** The answer must be whole, because its reader cannot be told that rows are missing. */
  readonly whole?: boolean;
  /** Or what makes it, once the columns of the answer are known. */
  readonly sink: RowSink | ((plan: GovernedPlan, versions: Versions) => RowSink);
}
