import {
  type AuditQuery,
  type AuditRecord,
  type AuditVerdict,
  directorySource,
  type LogSource,
} from '../../../audit/index.js';

/** Location of the log, as plain data for a thread. */
export type LogPlace =
  | { readonly kind: 'files'; readonly chains: readonly ChainPlace[] }
  /** `keys`: directories with keys of this server's fingerprints; the database may also hold logs of other tenants. */
  | { readonly kind: 'table'; readonly url: string; readonly keys: readonly string[] };

export interface ChainPlace {
  readonly name: string;
  readonly dir: string;
}

/** Cursor: per chain, records before this seq; in a table, records before this one. */
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
  /** Time limit, ms; returns what was found until then. */
  readonly ms: number;
}

/** Newest first; `next`: cursor if there may be more. */
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

/** Proof as written by `osl audit prove`, and the key to check it with. */
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

/** Result of verifying one chain. */
export interface ChainVerdict extends AuditVerdict {
  /** `server`, `worker-2`; for a table, the writer. */
  readonly chain: string;
  /** Key that was used: the one stored beside the log. */
  readonly verifier_key: string | null;
}

const STATEMENT_MS = 60_000;

export interface NamedSource {
  readonly name: string;
  readonly source: LogSource;
}

/** Opens the chains of a log, in files or a table, for `work`. */
export async function withChains<T>(
  place: LogPlace,
  work: (chains: readonly NamedSource[]) => Promise<T>,
): Promise<T> {
  if (place.kind === 'files')
    return work(place.chains.map(({ name, dir }) => ({ name, source: directorySource(dir) })));
  const { connectTable, tableSource, writersIn } = await import('../../../audit/table/index.js');
  const session = await connectTable(() => place.url, STATEMENT_MS);
  try {
    const writers = await writersIn(session);
    return await work(writers.map((name) => ({ name, source: tableSource(session, name) })));
  } finally {
    await session.end();
  }
}
