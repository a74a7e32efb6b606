import type { AuditRecord } from '../record.js';

/** Records of several chains, each in its own order, the earliest first. */
export async function* byTime(
  chains: readonly AsyncGenerator<AuditRecord, void, void>[],
): AsyncGenerator<AuditRecord, void, void> {
  const heads = await Promise.all(chains.map(async (chain) => ({ chain, next: await chain.next() })));
  for (;;) {
    let first: (typeof heads)[number] | null = null;
    let earliest: AuditRecord | null = null;
    for (const head of heads) {
      if (head.next.done) continue;
      if (earliest === null || head.next.value.ts < earliest.ts) [first, earliest] = [head, head.next.value];
    }
    if (first === null || earliest === null) return;
    yield earliest;
    first.next = await first.chain.next();
  }
}
