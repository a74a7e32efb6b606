import { parentPort } from 'node:worker_threads';
import { assertNever } from 'osl-compiler/errors';
import {
  type AuditFilter,
  type AuditRecord,
  fingerprintsOf,
  prove,
  type SearchStep,
  searchNewest,
} from '../../../audit/index.js';
import { yieldToOthers } from '../../base/threads/thread.js';
import { messageOf } from '../../base/thrown.js';
import {
  type AuditReply,
  type AuditTask,
  type ChainLocation,
  type FoundRecords,
  type ProveTask,
  type RecordProof,
  type SearchTask,
  withChains,
} from './reader.js';

interface ChainCursor {
  readonly name: string;
  readonly steps: AsyncGenerator<SearchStep, void, void>;
  /** The newest matching record of the chain that has been read but not returned yet; null if there is none. */
  next: { readonly seq: number; readonly record: AuditRecord } | null;
  /** Sequence number; all records of the chain from this one on have been returned or do not match. */
  before: number;
  isExhausted: boolean;
}

/** Finds the newest matching records of all chains, sorted by time, newest first. Stops after `ms`. */
async function newestOfChains(
  chains: readonly ChainLocation[],
  filter: AuditFilter,
  { from, most, ms, tenant }: Pick<SearchTask, 'from' | 'most' | 'ms' | 'tenant'>,
): Promise<FoundRecords> {
  const until = performance.now() + ms;
  const startSequences = from?.kind === 'chains' ? from.before : {};
  const cursors = chains.map(({ name, dir }): ChainCursor => {
    const before = startSequences[name] ?? null;
    const steps = searchNewest(dir, filter, before);
    return { name, steps, next: null, before: before ?? Number.MAX_SAFE_INTEGER, isExhausted: false };
  });
  const records: AuditRecord[] = [];
  let inTime = true;
  while (records.length < most && inTime) {
    for (const cursor of cursors) inTime = (await advance(cursor, until)) && inTime;
    const newest = inTime ? newestCursor(cursors) : null;
    if (newest?.next == null) break;
    const { seq, record } = newest.next;
    newest.before = seq;
    newest.next = null;
    if (record.tenant === tenant) records.push(record);
  }
  const isComplete = cursors.every((cursor) => cursor.isExhausted && cursor.next === null);
  await Promise.all(cursors.map(({ steps }) => steps.return()));
  const before = Object.fromEntries(
    cursors.map(({ name, next, before: at }) => [name, next === null ? at : next.seq + 1]),
  );
  return { records, next: isComplete ? null : { kind: 'chains', before } };
}

/** Advances a chain to its next match; returns false once the time is up. */
async function advance(cursor: ChainCursor, until: number): Promise<boolean> {
  while (!cursor.isExhausted && cursor.next === null) {
    const step = await cursor.steps.next();
    if (step.done === true) cursor.isExhausted = true;
    else if (step.value.record === null) cursor.before = step.value.seq;
    else cursor.next = { seq: step.value.seq, record: step.value.record };
    if (performance.now() > until) return false;
  }
  return true;
}

function newestCursor(cursors: readonly ChainCursor[]): ChainCursor | null {
  let newest: ChainCursor | null = null;
  for (const cursor of cursors)
    if (cursor.next !== null && (newest?.next == null || cursor.next.record.ts > newest.next.record.ts))
      newest = cursor;
  return newest;
}

/** Entry point of the thread that searches the audit log, one request at a time; started by reader.ts. */

if (parentPort === null) throw new Error('this is a thread, not a program');
const port = parentPort;
yieldToOthers();
port.on('message', (task: AuditTask) => {
  runTask(task).then(
    (reply) => port.postMessage(reply),
    (error: unknown) => port.postMessage({ kind: 'failed', reason: messageOf(error) } satisfies AuditReply),
  );
});

async function runTask(task: AuditTask): Promise<AuditReply> {
  switch (task.kind) {
    case 'search':
      return { kind: 'found', result: await search(task) };
    case 'prove':
      return { kind: 'proofs', proofs: await proofs(task) };
    default:
      return assertNever(task);
  }
}

async function search({ place, ...request }: SearchTask): Promise<FoundRecords> {
  const filter = await buildFilter({ place, query: request.query });
  if (place.kind === 'files') return newestOfChains(place.chains, filter, request);
  const { connectTable, newestInTable } = await import('../../../audit/table/index.js');
  const session = await connectTable(() => place.url, request.ms);
  try {
    const from = request.from?.kind === 'table' ? request.from.place : null;
    const { records, next } = await newestInTable(session, filter, request.tenant, {
      ...request,
      from,
    });
    return { records, next: next === null ? null : { kind: 'table', place: next } };
  } finally {
    await session.end();
  }
}

async function buildFilter({ place, query }: Pick<SearchTask, 'place' | 'query'>): Promise<AuditFilter> {
  const { name, ...filter } = query;
  if (name === undefined) return filter;
  const dirs = place.kind === 'files' ? place.chains.map(({ dir }) => dir) : place.keys;
  return {
    ...filter,
    fingerprints: (await Promise.all(dirs.map((dir) => fingerprintsOf(dir, name)))).flat(),
  };
}

function proofs({ place, requestId, tenant }: ProveTask): Promise<readonly RecordProof[]> {
  return withChains(place, async (chains) => {
    const proofsFound: RecordProof[] = [];
    for (const { source } of chains) {
      const verifier_key = await source.verifierKey();
      if (verifier_key === null) continue; // an empty chain
      for (const { seq, text } of await prove(source, requestId))
        if (tenantIn(text) === tenant) proofsFound.push({ seq, text, verifier_key: verifier_key.trim() });
    }
    return proofsFound;
  });
}

/** Returns the tenant of the proved record, which is part of the proof. */
function tenantIn(proof: string): unknown {
  const record = Buffer.from(/^extra (\S+)$/m.exec(proof)?.[1] ?? '', 'base64').toString();
  const value: unknown = JSON.parse(record);
  return typeof value === 'object' && value !== null ? Reflect.get(value, 'tenant') : null;
}
