import { cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { putFrameHead } from '../../audit/format.js';
import { openAuditLog, readRecords, verifyAuditLog } from '../../audit/index.js';
import { partOf, range } from '../support/part.js';
import {
  entry,
  lastSegment,
  makeFrame,
  readSegmentFile,
  segmentPaths,
  tempDir,
  writtenLog,
} from './fixture.js';

/**
 * A log as a killed process leaves it: `anchored` records that a checkpoint covers, then one group commit of two
 * that none covers, then preallocated zeros.
 */
async function killedLog(): Promise<{ dir: string; path: string; bytes: Buffer; ends: number[] }> {
  const dir = await writtenLog(4);
  const path = lastSegment(dir);
  const { frames } = readSegmentFile(path);
  const first = makeFrame(record(dir, 6, 4), frames.at(-1)?.chain ?? Buffer.alloc(0));
  const second = makeFrame(record(dir, 7, 5), first.chain, first.bytes.length);
  const start = readFileSync(path).length;
  const bytes = Buffer.concat([readFileSync(path), first.bytes, second.bytes, Buffer.alloc(2048)]);
  writeFileSync(path, bytes);
  const middle = start + first.bytes.length;
  return { dir, path, bytes, ends: [start, middle, middle + second.bytes.length] };
}

function record(dir: string, seq: number, n: number): string {
  const { frames } = readSegmentFile(lastSegment(dir));
  const model = JSON.parse(frames[1 + (n % 2)]?.record.toString() ?? '{}');
  return JSON.stringify({ ...model, request_id: `req-${Math.floor(n / 2)}`, seq });
}

/** Copies a log without its indexes, which a slow machine has had time to build: a start reads on from the newest. */
function copyOf(dir: string): string {
  const copy = tempDir();
  cpSync(dir, copy, { recursive: true, filter: (path) => !path.endsWith('.index') });
  return copy;
}

async function reopened(dir: string): Promise<number> {
  const log = await openAuditLog({ dir, segmentBytes: 16 * 1024 });
  await log.close();
  let found = 0;
  for await (const { request_id, kind } of readRecords(dir)) {
    if (request_id === 'req-2' && kind === 'decision') found += 1;
    if (request_id === 'req-2' && kind === 'outcome') found += 2;
  }
  return found;
}

/** Bytes beside the ends of frames that are tried in each run. */
const NEAR = 20;

t.test('a tail torn at any byte of the last frame is cut there, as a short file or as zeros', async (t) => {
  const { dir, path, bytes, ends } = await killedLog();
  const [start = 0, middle = 0, end = 0] = ends;
  const nearEnd = (at: number): boolean => Math.min(at - start, Math.abs(at - middle), end - at) <= NEAR;
  const work = tempDir();
  for (const cut of partOf('torn tails', range(start, end), 3, (at) => nearEnd(at))) {
    for (const missing of ['short', 'zeros'] as const) {
      rmSync(work, { recursive: true });
      cpSync(dir, work, { recursive: true });
      const torn = Buffer.from(bytes);
      torn.fill(0, cut);
      writeFileSync(lastSegment(work), missing === 'short' ? torn.subarray(0, cut) : torn);
      const before = await verifyAuditLog(work);
      const whole = cut < middle ? 6 : 7;
      if (before.problem || before.records !== whole || before.tornBytes < 0)
        t.same(before, { cut, missing });
      // Opening syncs many times; every byte near the ends of the frames, every eleventh elsewhere.
      if (!nearEnd(cut) && cut % 11 !== 0) continue;
      const found = await reopened(work);
      if (found !== (cut < middle ? 0 : 3)) t.fail(`cut at ${cut} (${missing}): found ${found}`);
    }
  }
  t.ok(path);
  t.match(await verifyAuditLog(work), { integrity: 'intact', completeness: 'complete' });
});

t.test('what was cut is on record', async (t) => {
  const { dir, path, bytes, ends } = await killedLog();
  const cut = (ends[1] ?? 0) + 20;
  writeFileSync(path, bytes.subarray(0, cut));
  await reopened(dir);
  const records = [];
  for await (const record of readRecords(dir)) records.push(record);
  const recover = records.find((record) => record.action === 'audit.recover');
  t.same(recover?.objects, [`segment-00000001.log:${ends[1]}+20`]);
});

t.test('a group of which a disk sector was lost is torn, also before frames that are whole', async (t) => {
  const dir = await writtenLog(1);
  const path = lastSegment(dir);
  const { frames } = readSegmentFile(path);
  const start = readFileSync(path).length;
  const long = makeFrame(
    record(dir, 3, 2).replace('"objects":[', `"objects":["${'x'.repeat(1500)}",`),
    frames.at(-1)?.chain ?? Buffer.alloc(0),
  );
  const second = makeFrame(record(dir, 4, 3), long.chain, long.bytes.length);
  const bytes = Buffer.concat([readFileSync(path), long.bytes, second.bytes, Buffer.alloc(700)]);
  const sector = Math.ceil(start / 512) * 512;
  bytes.fill(0, sector, sector + 512);
  writeFileSync(path, bytes);
  t.match(await verifyAuditLog(dir), {
    integrity: 'intact',
    records: 3,
    tornBytes: second.bytes.length + long.bytes.length,
  });
  await (await openAuditLog({ dir })).close();
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', tornBytes: 0 });
});

t.test('any flipped bit, in an unanchored tail too, refuses to open and changes nothing', async (t) => {
  const { dir, bytes, ends } = await killedLog();
  const end = ends[2] ?? 0;
  const work = copyOf(dir);
  const path = lastSegment(work);
  for (const at of partOf('flipped bits', range(0, end), 3)) {
    const flipped = Buffer.from(bytes);
    flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (at % 8)), at);
    writeFileSync(path, flipped);
    const names = readdirSync(work).sort();
    const refused = await openAuditLog({ dir: work }).then(
      () => null,
      (error: unknown) => error,
    );
    if (!(refused instanceof Error) || refused.name !== 'AuditDamaged') t.fail(`byte ${at}: ${refused}`);
    if (!readFileSync(path).equals(flipped)) t.fail(`byte ${at}: the damaged segment was changed`);
    if (readdirSync(work).length !== names.length) t.fail(`byte ${at}: files were left`);
  }
  t.pass(`${end} bytes`);
});

t.test('a zeroed sector before a later group is damage, not a torn tail', async (t) => {
  const dir = await writtenLog(20);
  const path = lastSegment(dir);
  const bytes = readFileSync(path);
  bytes.fill(0, 1024, 1536);
  writeFileSync(path, bytes);
  await t.rejects(openAuditLog({ dir }), { name: 'AuditDamaged', message: /neither whole nor the torn end/ });
});

const REFUSED: Record<string, (dir: string) => void> = {
  'a missing segment in the middle': (dir) => rmSync(segmentPaths(dir)[1] ?? ''),
  'a missing first segment': (dir) => rmSync(segmentPaths(dir)[0] ?? ''),
  'a missing last segment': (dir) => rmSync(lastSegment(dir)),
  'no segment at all': (dir) => {
    for (const path of segmentPaths(dir)) rmSync(path);
  },
  'a tail cut before the last checkpoint': (dir) => {
    truncateSync(lastSegment(dir), readSegmentFile(lastSegment(dir)).frames.at(-1)?.at ?? 0);
  },
  'a torn frame in a segment that is not the last': (dir) => {
    const [path = ''] = segmentPaths(dir);
    truncateSync(path, readFileSync(path).length - 5);
  },
  'missing checkpoints': (dir) => rmSync(join(dir, 'checkpoints')),
  'a forged checkpoint': (dir) => {
    const notes = readFileSync(join(dir, 'checkpoints'), 'utf8');
    writeFileSync(join(dir, 'checkpoints'), notes.replace(/\n(\d+)\n(?![\s\S]*\n\d+\n)/, '\n1\n'));
  },
  'a missing verifier key': (dir) => rmSync(join(dir, 'checkpoint.vkey')),
  'a missing signing key': (dir) => rmSync(join(dir, 'checkpoint.key')),
};

t.test('what is no torn tail refuses to open', async (t) => {
  const whole = await writtenLog(200, { segmentBytes: 16 * 1024 });
  for (const [name, damage] of Object.entries(REFUSED)) {
    const dir = copyOf(whole);
    damage(dir);
    await t.rejects(openAuditLog({ dir }), { name: 'AuditDamaged' }, name);
    t.notOk(
      readdirSync(dir).some((file) => file.startsWith('lock.')),
      `${name}: the lock is given back`,
    );
  }
  await t.resolves(reopened(whole), 'and the same log without damage opens');
});

t.test('a torn checkpoint is cut', async (t) => {
  const dir = await writtenLog(5);
  const path = join(dir, 'checkpoints');
  const notes = readFileSync(path);
  writeFileSync(path, Buffer.concat([notes, notes.subarray(0, 70)]));
  await reopened(dir);
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', unanchored: 0 });
});

t.test('an allowed decision without outcome gets the outcome `unknown`, once', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir });
  for (const n of [0, 1, 2, 4, 5]) await log.append(entry(n));
  await log.append({ ...entry(6), decision: 'deny', code: 'E2101' });
  await log.close();
  t.equal((await verifyAuditLog(dir)).openDecisions, 1);
  await reopened(dir);
  await reopened(dir);
  const unknown = [];
  for await (const record of readRecords(dir)) if (record.outcome === 'unknown') unknown.push(record);
  t.match(unknown, [
    { kind: 'outcome', request_id: 'req-1', subject: 'analyst-eu', decision: null, epoch: 2 },
  ]);
  t.equal(unknown.length, 1);
  t.equal((await verifyAuditLog(dir)).openDecisions, 0);
});

t.test('a frame head is refused if any of its bits flips', async (t) => {
  const head = Buffer.alloc(9);
  putFrameHead(head, 0, 70_000, 404);
  const { frameAt } = await import('../../audit/format.js');
  const body = Buffer.concat([head, Buffer.alloc(404 + 32, 0x61), Buffer.from('\n')]);
  t.ok(frameAt(body, 0, body.length));
  for (let bit = 0; bit < 72; bit += 1) {
    const flipped = Buffer.from(body);
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    t.equal(frameAt(flipped, 0, flipped.length), null, `bit ${bit}`);
  }
});
