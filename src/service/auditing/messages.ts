import type { AuditQuery, AuditRecord, AuditVerdict } from '../../../audit/index.js';

/** Where the log stands, as it can be told to a thread. */
export type LogPlace =
  | { readonly kind: 'files'; readonly chains: readonly ChainPlace[] }
  /** A database may have the logs of other tenants too. `keys`: directories with the keys of this server's fingerprints. */
  | { readonly kind: 'table'; readonly url: string; readonly keys: readonly string[] };

export interface ChainPlace {
  /** `server`, or `worker-2`. */
  readonly name: string;
  readonly dir: string;
}

/** Where a search goes on. Of chains: the records before these seqs; of a table: those before this one. */
export type LogSearchCursor =
  | { readonly kind: 'chains'; readonly before: Readonly<Record<string, number>> }
  | { readonly kind: 'table'; readonly place: readonly [ts: string, writer: string, seq: string] };

export interface SearchTask {
  readonly kind: 'search';
  readonly place: LogPlace;
  readonly tenant: string;
  readonly query: AuditQuery;
  readonly from: LogSearchCursor | null;
  readonly most: number;
  /** It ends where it stands after so long. */
  readonly ms: number;
}

/** Records, the newest first; `next` where there may be more. */
export interface FoundRecords {
  readonly records: readonly AuditRecord[];
  readonly next: LogSearchCursor | null;
}

export interface ProveTask {
  readonly kind: 'prove';
  readonly place: LogPlace;
  readonly tenant: string;
  readonly requestId: string;
}

/** What `osl audit prove` writes of one record, and the key that it is checked against. */
export interface RecordProof {
  readonly seq: number;
  readonly text: string;
  readonly verifier_key: string;
}

export type AuditTask = SearchTask | ProveTask;

export type AuditReply =
  | { readonly kind: 'found'; readonly found: FoundRecords }
  | { readonly kind: 'proofs'; readonly proofs: readonly RecordProof[] }
  | { readonly kind: 'failed'; readonly reason: string };

/** What is said of one chain that was verified. */
export interface ChainVerdict extends AuditVerdict {
  /** `server`, `worker-2`; of a table the writer. */
  readonly chain: string;
  /** The key that it was held against: the one that lies beside it. */
  readonly verifier_key: string | null;
}
