import { cpSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { type AuditLogOptions, openAuditLog, prove, readRecords, verifyAuditLog } from '../../audit/index.js';
import { entry, lastSegment, makeFrame, readSegmentFile, tempDir, writtenLog } from './fixture.js';

/** As a killed process leaves it: five records under a checkpoint (an opening, four of ours), then three under none. */
async function killed(options: Partial<AuditLogOptions> = {}): Promise<string> {
  const dir = tempDir();
  const log = await openAuditLog({ dir, segmentBytes: 64 * 1024, renewMs: 20, ...options });
  for (let n = 0; n < 4; n += 1) await log.append(entry(n));
  while (log.stats().anchored < 5) await sleep(5);
  const copy = tempDir();
  cpSync(dir, copy, { recursive: true, filter: (path) => !path.includes('lock.') });
  await log.close();
  const path = lastSegment(copy);
  const { frames } = readSegmentFile(path);
  const bytes = readFileSync(path);
  let at = frames.at(-1)?.next ?? 0;
  let chain = frames.at(-1)?.chain ?? Buffer.alloc(0);
  for (const seq of [5, 6, 7]) {
    const model = JSON.parse(frames[1]?.record.toString() ?? '{}') as object;
    const made = makeFrame(JSON.stringify({ ...model, request_id: `late-${seq}`, seq }), chain);
    made.bytes.copy(bytes, at);
    at += made.bytes.length;
    chain = made.chain;
  }
  writeFileSync(path, bytes);
  return copy;
}

async function restarted(dir: string): Promise<void> {
  await (await openAuditLog({ dir })).close();
}

t.test('what no checkpoint covered at an unclean stop is marked for good', async (t) => {
  const dir = await killed();
  t.match(await verifyAuditLog(dir), { integrity: 'intact', records: 8, unanchored: 3, recovered: [] });
  await restarted(dir);
  const found = [{ epoch: 2, from: 5, to: 8 }];
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', recovered: found });
  await restarted(dir);
  t.same(
    (await verifyAuditLog(dir)).recovered,
    found,
    'a start after a stop in order adds nothing, and takes nothing away',
  );
});

t.test('a tail that was forged with a chain of its own is in the mark', async (t) => {
  const dir = await killed();
  const path = lastSegment(dir);
  const { frames } = readSegmentFile(path);
  const bytes = readFileSync(path);
  const [, , , , , first] = frames;
  const model = JSON.parse(first?.record.toString() ?? '{}') as object;
  const forged = makeFrame(JSON.stringify({ ...model, subject: 'user:innocent' }), frames[4]?.chain ?? bytes);
  // And one that pretends a stop in order.
  const close = { ...model, action: 'audit.close', kind: 'event', decision: null, seq: 6 };
  const last = makeFrame(JSON.stringify(close), forged.chain);
  writeFileSync(path, Buffer.concat([bytes.subarray(0, first?.at), forged.bytes, last.bytes]));
  await restarted(dir);
  t.match(await verifyAuditLog(dir), { problem: null, recovered: [{ epoch: 2, from: 5, to: 7 }] });
});

t.test('a tail that was cut back to the checkpoint is a mark without records', async (t) => {
  const dir = await killed();
  const path = lastSegment(dir);
  const { frames } = readSegmentFile(path);
  writeFileSync(path, readFileSync(path).subarray(0, frames[4]?.next));
  await restarted(dir);
  t.match(await verifyAuditLog(dir), { problem: null, recovered: [{ epoch: 2, from: 5, to: 5 }] });
});

t.test('a tail cut below the newest checkpoint is damage', async (t) => {
  const dir = await killed();
  const path = lastSegment(dir);
  const { frames } = readSegmentFile(path);
  writeFileSync(path, readFileSync(path).subarray(0, frames[3]?.next));
  t.match(await verifyAuditLog(dir), { completeness: 'incomplete', problem: { kind: 'cut' } });
  await t.rejects(restarted(dir), { name: 'AuditDamaged', message: /the tail was cut/ });
});

t.test('a newest checkpoint that is not signed is damage', async (t) => {
  const dir = await killed();
  const path = join(dir, 'checkpoint.latest');
  writeFileSync(path, readFileSync(path, 'utf8').replace('\n5\n', '\n4\n'));
  t.match(await verifyAuditLog(dir), { integrity: 'damaged', problem: { kind: 'checkpoint' } });
  await t.rejects(restarted(dir), { name: 'AuditDamaged' });
});

t.test('each second is signed while records come, in one file that does not grow', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir });
  const lasting = statSync(join(dir, 'checkpoints')).size;
  const until = performance.now() + 2_500;
  let [oldest, longest] = [0, 0];
  for (let began = performance.now(); began < until; ) {
    await log.append(entry(0));
    await sleep(20);
    const { anchor } = await verifyAuditLog(dir);
    oldest = Math.max(oldest, anchor?.ageMs ?? Number.POSITIVE_INFINITY);
    const now = performance.now();
    longest = Math.max(longest, now - began); // while the process stands still nothing is signed
    began = now;
  }
  t.ok(oldest < 4_000 + 2 * longest, `the newest checkpoint was ${oldest} ms old at most`);
  t.equal(statSync(join(dir, 'checkpoints')).size, lasting);
  t.ok(statSync(join(dir, 'checkpoint.latest')).size < 1_000);
  while (log.stats().anchored < log.stats().records) await sleep(20);
  t.equal(
    (await prove(dir, 'req-0')).length,
    log.stats().records - 1,
    'what it covers can be proved at once',
  );
  await log.close();
});

t.test('a log that was closed in order has no mark', async (t) => {
  const dir = await writtenLog(4);
  await restarted(dir);
  t.same((await verifyAuditLog(dir)).recovered, []);
  for await (const { action } of readRecords(dir)) t.not(action, 'audit.recover');
});
