import { parentPort } from 'node:worker_threads';
import { type AuditFilter, fingerprintsOf, prove } from '../../../audit/index.js';
import { yieldToOthers } from '../../base/threads/thread.js';
import { messageOf } from '../../base/thrown.js';
import { withChains } from './chains.js';
import type { AuditReply, AuditTask, FoundRecords, ProveTask, RecordProof, SearchTask } from './messages.js';
import { newestOfChains } from './newest.js';

/** Run by reader.ts: reads the audit log for one question at a time. */

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
    default: {
      const unknown: never = task;
      return unknown;
    }
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
      if (verifier_key === null) continue; // a chain that has not begun
      for (const { seq, text } of await prove(source, requestId))
        if (tenantIn(text) === tenant) all.push({ seq, text, verifier_key: verifier_key.trim() });
    }
    return all;
  });
}

/** Of the record that a proof is of, which stands in it. */
function tenantIn(proof: string): unknown {
  const record = Buffer.from(/^extra (\S+)$/m.exec(proof)?.[1] ?? '', 'base64').toString();
  const read: unknown = JSON.parse(record);
  return typeof read === 'object' && read !== null ? Reflect.get(read, 'tenant') : null;
}
