import { type AuditFilter, type AuditRecord, type SearchStep, searchNewest } from '../../../audit/index.js';
import type { ChainPlace, FoundRecords, SearchTask } from './messages.js';

/** The place of one chain in a search. */
interface Head {
  readonly name: string;
  readonly steps: AsyncGenerator<SearchStep, void, void>;
  /** Its newest record that was not given yet. */
  next: { readonly seq: number; readonly record: AuditRecord } | null;
  /** Records of this seq and after were given, or do not match. */
  before: number;
  ended: boolean;
}

/** The newest records of all chains that match, each chain in its own order. */
export async function newestOfChains(
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

/** To the next record of a chain that was not given; false once the time is over. */
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
