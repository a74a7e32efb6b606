import {
  type AuditFilter,
  type AuditLog,
  type AuditRecord,
  byTime,
  searchRecords,
} from '../../policy/audit/index.js';
import { aloneIn, workerChains } from './seat.js';
import type { Settings } from './settings.js';

/** Who asks a server for records of its log. */
export interface AuditReader {
  readonly requestId: string;
  readonly tenant: string;
  readonly subject: string;
  readonly chain: readonly string[];
}

/**
 * Records of the log of this server, of all its chains, the earliest first. That they were read, by whom and what for,
 * is on disk before the first is given. Whether the reader may is the caller's to have decided.
 *
 * @throws AuditUnavailable where the reading cannot be recorded
 */
export async function* searchAudit(
  { dataDir, audit: { sink } }: Pick<Settings, 'dataDir' | 'audit'>,
  audit: AuditLog,
  filter: AuditFilter,
  { requestId, tenant, subject, chain }: AuditReader,
): AsyncGenerator<AuditRecord, void, void> {
  const detail = JSON.stringify({ command: 'search', filter });
  const reading = { kind: 'event', action: 'audit.read', surface: 'rest', request_id: requestId } as const;
  await audit.append({ ...reading, tenant, subject, chain, detail });
  if (sink.url === null) {
    const { auditDir } = aloneIn(dataDir);
    const dirs = [auditDir, ...workerChains(auditDir).map(({ dir }) => dir)];
    yield* byTime(dirs.map((dir) => searchRecords(dir, filter)));
    return;
  }
  const { connectTable, searchTable } = await import('../audit-table/index.js');
  const session = await connectTable(sink.url, STATEMENT_MS);
  try {
    yield* searchTable(session, filter);
  } finally {
    await session.end();
  }
}

const STATEMENT_MS = 60_000;
