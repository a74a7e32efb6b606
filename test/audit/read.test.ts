import { readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { openAuditLog, readRecords } from '../../audit/index.js';
import { entry, segmentPaths, tempDir, writtenLog } from './fixture.js';

async function seqs(dir: string, from?: number): Promise<number[]> {
  const found = [];
  for await (const { seq } of readRecords(dir, from === undefined ? {} : { from })) found.push(seq);
  return found;
}

t.test('records come in order across segments, from any seq', async (t) => {
  const dir = await writtenLog(98, { segmentBytes: 4096 });
  t.ok(segmentPaths(dir).length > 3);
  const all = Array.from({ length: 100 }, (_, seq) => seq);
  t.same(await seqs(dir), all);
  for (const from of [1, 37, 99, 100]) t.same(await seqs(dir, from), all.slice(from), `from ${from}`);
});

t.test('a follow sees each record once, through rotations and a restart, until its signal', async (t) => {
  const dir = tempDir();
  const abort = new AbortController();
  const seen: number[] = [];
  const following = (async () => {
    for await (const record of readRecords(dir, { follow: true, pollMs: 5, signal: abort.signal }))
      seen.push(record.seq);
  })();
  for (let opening = 0; opening < 2; opening += 1) {
    const log = await openAuditLog({ dir, segmentBytes: 4096 });
    for (let n = 0; n < 60; n += 1) await log.append(entry(n));
    await log.close();
  }
  while (seen.length < 124) await new Promise((resolve) => setTimeout(resolve, 5));
  abort.abort();
  await following;
  t.same(
    seen,
    Array.from({ length: 124 }, (_, seq) => seq),
  );
});

t.test('reading stops with an error where an earlier segment is damaged', async (t) => {
  const dir = await writtenLog(60, { segmentBytes: 4096 });
  const [first = ''] = segmentPaths(dir);
  const bytes = readFileSync(first);
  bytes.writeUInt8(0, bytes.length - 1);
  writeFileSync(first, bytes);
  await t.rejects(seqs(dir), { name: 'AuditDamaged' });
});

t.test('an empty directory has no records', async (t) => {
  t.same(await seqs(tempDir()), []);
});
