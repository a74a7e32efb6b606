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
  /** `keys`: directories of this server's fingerprint keys; the database may also hold logs of other tenants. */
  | { readonly kind: 'table'; readonly url: string; readonly keys: readonly string[] };

export interface ChainPlace {
  readonly name: string;
  readonly dir: string;
}

/** A cursor: for each chain, continue before this seq; in a table, continue before this record. */
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
  /** Time limit in ms, after which the search returns what it has found. */
  readonly ms: number;
}

/** The records found, newest first; `next` is a cursor if there may be more. */
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

/** A proof as written by `osl audit prove`, and the key for checking it. */
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

/** The result of verifying one chain. */
export interface ChainVerdict extends AuditVerdict {
  /** `server` or e.g. `worker-2`; for a table, the writer. */
  readonly chain: string;
  /** The key that was used, which is stored beside the log. */
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
