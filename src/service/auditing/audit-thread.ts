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
  type ChainPlace,
  type FoundRecords,
  type ProveTask,
  type RecordProof,
  type SearchTask,
  withChains,
} from './reader.js';

interface Head {
  readonly name: string;
  readonly steps: AsyncGenerator<SearchStep, void, void>;
  /** The newest matching record of the chain that has been read but not returned yet; null if there is none. */
  next: { readonly seq: number; readonly record: AuditRecord } | null;
  /** Sequence number; all records of the chain from this one on have been returned or do not match. */
  before: number;
  ended: boolean;
}

/** Finds the newest matching records of all chains, sorted by time, newest first. Stops after `ms`. */
async function newestOfChains(
  chains: readonly ChainPlace[],
  filter: AuditFilter,
  { from, most, ms, tenant }: Pick<SearchTask, 'from' | 'most' | 'ms' | 'tenant'>,
): Promise<FoundRecords> {
  const until = performance.now() + ms;
  const known = from?.kind === 'chains' ? from.before : {};
  const heads = chains.map(({ name, dir }): Head => {
    const before = known[name] ?? null;
    const steps = searchNewest(dir, filter, before);
    return { name, steps, next: null, before: before ?? Number.MAX_SAFE_INTEGER, ended: false };
  });
  const records: AuditRecord[] = [];
  let inTime = true;
  while (records.length < most && inTime) {
    for (const head of heads) inTime = (await advance(head, until)) && inTime;
    const first = inTime ? latest(heads) : null;
    if (first?.next == null) break;
    const { seq, record } = first.next;
    first.before = seq;
    first.next = null;
    if (record.tenant === tenant) records.push(record);
  }
  const done = heads.every((head) => head.ended && head.next === null);
  await Promise.all(heads.map(({ steps }) => steps.return()));
  const before = Object.fromEntries(
    heads.map(({ name, next, before: at }) => [name, next === null ? at : next.seq + 1]),
  );
  return { records, next: done ? null : { kind: 'chains', before } };
}

/** Advances a chain to its next match; returns false once the time is up. */
async function advance(head: Head, until: number): Promise<boolean> {
  while (!head.ended && head.next === null) {
    const step = await head.steps.next();
    if (step.done === true) head.ended = true;
    else if (step.value.record === null) head.before = step.value.seq;
    else head.next = { seq: step.value.seq, record: step.value.record };
    if (performance.now() > until) return false;
  }
  return true;
}

function latest(heads: readonly Head[]): Head | null {
  let first: Head | null = null;
  for (const head of heads)
    if (head.next !== null && (first?.next == null || head.next.record.ts > first.next.record.ts))
      first = head;
  return first;
}

/** Entry point of the thread that searches the audit log, one request at a time; started by reader.ts. */

if (parentPort === null) throw new Error('this is a thread, not a program');
const port = parentPort;
yieldToOthers();
port.on('message', (task: AuditTask) => {
  done(task).then(
    (reply) => port.postMessage(reply),
    (error: unknown) => port.postMessage({ kind: 'failed', reason: messageOf(error) } satisfies AuditReply),
  );
});

async function done(task: AuditTask): Promise<AuditReply> {
  switch (task.kind) {
    case 'search':
      return { kind: 'found', found: await found(task) };
    case 'prove':
      return { kind: 'proofs', proofs: await proofs(task) };
    default:
      return assertNever(task);
  }
}

async function found({ place, ...asked }: SearchTask): Promise<FoundRecords> {
  const filter = await filterOf({ place, query: asked.query });
  if (place.kind === 'files') return newestOfChains(place.chains, filter, asked);
  const { connectTable, newestInTable } = await import('../../../audit/table/index.js');
  const session = await connectTable(() => place.url, asked.ms);
  try {
    const from = asked.from?.kind === 'table' ? asked.from.place : null;
    const { records, next } = await newestInTable(session, filter, asked.tenant, {
      ...asked,
      from,
    });
    return { records, next: next === null ? null : { kind: 'table', place: next } };
  } finally {
    await session.end();
  }
}

async function filterOf({ place, query }: Pick<SearchTask, 'place' | 'query'>): Promise<AuditFilter> {
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
    const all: RecordProof[] = [];
    for (const { source } of chains) {
      const verifier_key = await source.verifierKey();
      if (verifier_key === null) continue; // an empty chain
      for (const { seq, text } of await prove(source, requestId))
        if (tenantIn(text) === tenant) all.push({ seq, text, verifier_key: verifier_key.trim() });
    }
    return all;
  });
}

/** Returns the tenant of the proved record, which is part of the proof. */
function tenantIn(proof: string): unknown {
  const record = Buffer.from(/^extra (\S+)$/m.exec(proof)?.[1] ?? '', 'base64').toString();
  const read: unknown = JSON.parse(record);
  return typeof read === 'object' && read !== null ? Reflect.get(read, 'tenant') : null;
}
