import { readdirSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import { queryError } from 'osl-compiler';
import {
  type AuditLog,
  type AuditQuery,
  type AuditRecord,
  type AuditVerdict,
  directorySource,
  type LogSource,
  undeclaredObject,
} from '../../../audit/index.js';
import type { ServiceLog } from '../../base/log.js';
import { FairSlots } from '../../base/threads/fair-slots.js';
import { ThreadJob } from '../../base/threads/job.js';
import { answerOf, startThread } from '../../base/threads/thread.js';
import { messageOf } from '../../base/thrown.js';
import { endedChains, singleProcessFiles, workerChains } from '../process-files.js';
import { auditSinkUrl } from '../settings/groups.js';
import type { Settings } from '../settings.js';

interface AuditRequester {
  readonly requestId: string;
  readonly tenant: string;
  readonly subject: string;
  readonly chain: readonly string[];
}

interface SearchPage {
  readonly from: string | null;
  readonly most: number;
}

interface RecordPage {
  readonly records: readonly AuditRecord[];
  readonly next: string | null;
}

/** Time limit of a search in ms, after which it returns a partial page. */
const SEARCH_MS = 3_000;
/** Deadline in ms for the thread's reply. Longer, since the thread checks `SEARCH_MS` only between whole segments. */
const SEARCH_DEADLINE_MS = 30_000;
const PROVE_DEADLINE_MS = 120_000;
const IDLE_MS = 60_000;
const MEMORY_MB = 512;

type ReaderSettings = Pick<Settings, 'dataDir' | 'audit'>;

/**
 * Searches all chains of this server's log in a thread, one request at a time, round robin between subjects. Each
 * access is durably recorded before it begins. The caller must check authorization.
 */
export class AuditReader {
  readonly #settings: ReaderSettings;
  readonly #audit: Pick<AuditLog, 'append' | 'fingerprint'>;
  readonly #log: ServiceLog;
  readonly #slots = new FairSlots();
  #thread: Worker | null = null;
  #idleTimer: NodeJS.Timeout | null = null;

  constructor(settings: ReaderSettings, audit: Pick<AuditLog, 'append' | 'fingerprint'>, log: ServiceLog) {
    this.#settings = settings;
    this.#audit = audit;
    this.#log = log;
  }

  /**
   * Returns the newest matching records. @throws QueryError E5031, E5037; AuditUnavailable if the access cannot be
   * recorded
   */
  async search(
    requester: AuditRequester,
    query: AuditQuery,
    { from, most }: SearchPage,
  ): Promise<RecordPage> {
    const cursor = from === null ? null : decodeCursor(from);
    // Names are fingerprinted in the access record, as in the log itself.
    const name =
      query.name === undefined ? {} : { name: undeclaredObject(this.#audit.fingerprint(query.name)) };
    await this.#recordAccess(requester, 'search', { ...query, ...name });
    const task = { kind: 'search', query, from: cursor, most, ms: SEARCH_MS } as const;
    const { records, next } = await this.#runTask(requester, task, SEARCH_DEADLINE_MS, (reply) =>
      reply.kind === 'found' ? { value: reply.result } : null,
    );
    return { records, next: next === null ? null : encodeCursor(next) };
  }

  /** Returns proofs for all records of a request that the newest checkpoint covers. @throws the errors of `search` */
  async prove(requester: AuditRequester, requestId: string): Promise<readonly RecordProof[]> {
    await this.#recordAccess(requester, 'prove', { requestId });
    return this.#runTask(requester, { kind: 'prove', requestId }, PROVE_DEADLINE_MS, (reply) =>
      reply.kind === 'proofs' ? { value: reply.proofs } : null,
    );
  }

  async close(): Promise<void> {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    const thread = this.#thread;
    this.#thread = null;
    await thread?.terminate();
  }

  #recordAccess(requester: AuditRequester, command: string, filter: object): Promise<unknown> {
    const { requestId: request_id, tenant, subject, chain } = requester;
    const event = { kind: 'event', action: 'audit.read', surface: 'rest', request_id } as const;
    const detail = JSON.stringify({ command, filter });
    return this.#audit.append({ ...event, tenant, subject, chain, detail });
  }

  #runTask<T>(
    { subject, tenant }: AuditRequester,
    task: TaskInput<AuditTask>,
    deadlineMs: number,
    read: (reply: AuditReply) => { readonly value: T } | null,
  ): Promise<T> {
    if (this.#slots.isFull(subject)) throw queryError('overloaded', { retryAfterSeconds: 5 });
    return this.#slots.take(subject, async () => {
      if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
      try {
        const thread = (this.#thread ??= this.#startThread());
        const answer = answerOf<AuditReply, T>(
          thread,
          deadlineMs,
          (reply) => {
            if (reply.kind === 'failed') throw new Error(reply.reason);
            return read(reply);
          },
          (endReason, detail) => new Error(`the thread that reads it ended (${endReason}): ${detail}`),
        );
        thread.postMessage({ ...task, tenant, place: logLocation(this.#settings) });
        return await answer;
      } catch (error) {
        await this.close(); // the thread may still be busy
        this.#log.error('the audit log could not be read for who asked', { cause: messageOf(error) });
        throw queryError('auditUnreadable', {});
      } finally {
        this.#idleTimer = setTimeout(() => void this.close(), IDLE_MS).unref();
      }
    });
  }

  #startThread(): Worker {
    const file = new URL('./audit-thread.js', import.meta.url);
    return startThread(file, { maxOldGenerationSizeMb: MEMORY_MB });
  }
}

type TaskInput<T> = T extends AuditTask ? Omit<T, 'place' | 'tenant'> : never;

/** Deadline in ms, enough for several hundred million records. */
const DEADLINE_MS = 6 * 3_600_000;
const VERIFY_MEMORY_MB = 1_024;

/** Creates the job that verifies all chains of a server's log. */
export function verifyJob(settings: Pick<Settings, 'dataDir' | 'audit'>, log: ServiceLog): ThreadJob {
  return new ThreadJob({
    name: 'verifying the audit log',
    file: new URL('./verify-thread.js', import.meta.url),
    data: () => ({ place: logLocation(settings) }),
    deadlineMs: DEADLINE_MS,
    memoryMb: VERIFY_MEMORY_MB,
    log,
  });
}

/** Returns the current location of the log: a table, or the chains of the server, its workers and earlier restores. */
function logLocation({ dataDir, audit: { sink } }: Pick<Settings, 'dataDir' | 'audit'>): LogLocation {
  const url = auditSinkUrl(sink);
  const { auditDir } = singleProcessFiles(dataDir);
  const workers = workerChains(auditDir).map(({ number, dir }) => ({ name: `worker-${number}`, dir }));
  // A worker killed during its first start leaves an empty directory.
  const nonEmpty = workers.filter(({ dir }) => readdirSync(dir).length > 0);
  const restored = endedChains(auditDir).map((dir) => ({ name: dir.slice(auditDir.length + 1), dir }));
  const chains = [{ name: 'server', dir: auditDir }, ...nonEmpty, ...restored];
  return url === null
    ? { kind: 'files', chains }
    : { kind: 'table', url: url(), keys: chains.map(({ dir }) => dir) };
}

/** Encodes a cursor for clients. It grants no rights; it only says where to continue. */
function encodeCursor(cursor: LogSearchCursor): string {
  return Buffer.from(JSON.stringify(cursor)).toString('base64url');
}

const MAX_CURSOR_LENGTH = 8_192;
const MAX_CHAINS = 256;

/** Decodes a cursor from a client. @throws QueryError E0511 if it is malformed */
function decodeCursor(text: string): LogSearchCursor {
  const cursor = text.length > MAX_CURSOR_LENGTH ? null : validateCursor(parseBase64Json(text));
  if (cursor === null) throw queryError('malformedBody', { detail: '`from` is none that a page gave' });
  return cursor;
}

function parseBase64Json(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return null;
  }
}

function validateCursor(value: unknown): LogSearchCursor | null {
  if (typeof value !== 'object' || value === null) return null;
  const [before, place]: readonly unknown[] = [Reflect.get(value, 'before'), Reflect.get(value, 'place')];
  if (Reflect.get(value, 'kind') === 'chains' && typeof before === 'object' && before !== null) {
    const entries = Object.entries(before);
    const seqs = entries.filter((entry): entry is [string, number] => isSeq(entry[1]));
    return seqs.length < entries.length || seqs.length > MAX_CHAINS
      ? null
      : { kind: 'chains', before: Object.fromEntries(seqs) };
  }
  if (Reflect.get(value, 'kind') !== 'table' || !Array.isArray(place)) return null;
  const [ts, writer, seq] = place as readonly unknown[];
  if (typeof ts !== 'string' || typeof writer !== 'string' || typeof seq !== 'string') return null;
  return /^\d{1,18}$/.test(seq) && !/\0/.test(ts + writer)
    ? { kind: 'table', place: [ts, writer, seq] }
    : null;
}

function isSeq(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Location of the log, as plain data for a thread. */
export type LogLocation =
  | { readonly kind: 'files'; readonly chains: readonly ChainLocation[] }
  /** `keys`: directories of this server's fingerprint keys; the database may also hold logs of other tenants. */
  | { readonly kind: 'table'; readonly url: string; readonly keys: readonly string[] };

export interface ChainLocation {
  readonly name: string;
  readonly dir: string;
}

/** A cursor: the seq before which to continue in each chain, or the record before which to continue in a table. */
type LogSearchCursor =
  | { readonly kind: 'chains'; readonly before: Readonly<Record<string, number>> }
  | { readonly kind: 'table'; readonly place: readonly [ts: string, writer: string, seq: string] };

export interface SearchTask {
  readonly kind: 'search';
  readonly place: LogLocation;
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
  readonly place: LogLocation;
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
  | { readonly kind: 'found'; readonly result: FoundRecords }
  | { readonly kind: 'proofs'; readonly proofs: readonly RecordProof[] }
  | { readonly kind: 'failed'; readonly reason: string };

/** The result of verifying one chain. */
export interface ChainVerdict extends AuditVerdict {
  /** Name of the chain: `server` or, for example, `worker-2`; in a table, the name of its writer. */
  readonly chain: string;
  /** The key with which the chain was verified, which is stored next to the log; null if the chain has no key. */
  readonly verifier_key: string | null;
}

const STATEMENT_MS = 60_000;

interface NamedSource {
  readonly name: string;
  readonly source: LogSource;
}

/** Calls `work` with the chains of a log, in files or in a table. A table's session is closed when `work` ends. */
export async function withChains<T>(
  place: LogLocation,
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
