import {
  appendFileSync,
  cpSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import canonicalize from 'canonicalize';
import t from 'tap';
import { encodeHeader } from '../../audit/format.js';
import { openAuditLog, verifyAuditLog } from '../../audit/index.js';
import { verifySegment } from '../../audit/verifying/verify-segment.js';
import {
  entry,
  lastSegment,
  makeFrame,
  readSegmentFile,
  rechain,
  type Segment,
  segmentPaths,
  tempDir,
  writtenLog,
} from './fixture.js';

const RECORDS = 202;

interface Tamper {
  readonly does: (dir: string) => void;
  readonly kind: string;
  readonly integrity: 'intact' | 'damaged';
  readonly completeness: 'complete' | 'incomplete' | 'unknown';
  /** Seq of the first problem, where the damage has one place. */
  readonly seq?: number;
}

function second(dir: string): Segment {
  return readSegmentFile(segmentPaths(dir)[1] ?? '');
}

/** Writes the second segment anew from some of its frames' bytes. */
function rebuild(dir: string, order: (frames: Buffer[]) => Buffer[]): void {
  const { path, header, frames } = second(dir);
  const bytes = readFileSync(path);
  const parts = order(frames.map((frame) => bytes.subarray(frame.at, frame.next)));
  writeFileSync(path, Buffer.concat([encodeHeader(header), ...parts]));
}

function alter(path: string, at: number, change: (byte: number) => number): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(change(bytes.readUInt8(at)), at);
  writeFileSync(path, bytes);
}

function firstSeqOfSecond(dir: string): number {
  return second(dir).header.firstSeq;
}

const damaged = { integrity: 'damaged', completeness: 'unknown' } as const;

const TAMPERS: Record<string, (seq: number) => Tamper> = {
  'a flipped bit in a record': (seq) => ({
    does: (dir) => alter(second(dir).path, (second(dir).frames[2]?.at ?? 0) + 60, (byte) => byte ^ 1),
    kind: 'chain',
    ...damaged,
    seq: seq + 2,
  }),
  'a flipped bit in a chain hash': (seq) => ({
    does: (dir) => alter(second(dir).path, (second(dir).frames[2]?.next ?? 0) - 10, (byte) => byte ^ 0x80),
    kind: 'chain',
    ...damaged,
    seq: seq + 2,
  }),
  'a flipped bit in a frame head': (seq) => ({
    does: (dir) => alter(second(dir).path, (second(dir).frames[2]?.at ?? 0) + 5, (byte) => byte ^ 4),
    kind: 'frame',
    ...damaged,
    seq: seq + 2,
  }),
  'a flipped bit in a segment header': (seq) => ({
    does: (dir) => alter(second(dir).path, 14, (byte) => byte ^ 1),
    kind: 'header',
    ...damaged,
    seq,
  }),
  'a record altered in place, same length': (seq) => ({
    does: (dir) => {
      const { path } = second(dir);
      const text = readFileSync(path, 'latin1');
      writeFileSync(path, text.replace('analyst-eu', 'analyst-us'), 'latin1');
    },
    kind: 'chain',
    ...damaged,
    seq,
  }),
  'a removed record': (seq) => ({
    does: (dir) => rebuild(dir, (frames) => frames.toSpliced(3, 1)),
    kind: 'sequence',
    ...damaged,
    seq: seq + 3,
  }),
  'two records swapped': (seq) => ({
    does: (dir) =>
      rebuild(dir, ([a, b, c, ...rest]) => [a, c, b, ...rest].filter((frame) => frame !== undefined)),
    kind: 'sequence',
    ...damaged,
    seq: seq + 1,
  }),
  'a record repeated': (seq) => ({
    does: (dir) => rebuild(dir, (frames) => frames.toSpliced(1, 0, ...frames.slice(0, 1))),
    kind: 'sequence',
    ...damaged,
    seq: seq + 1,
  }),
  'records cut from the end of a segment that is not the last': () => ({
    does: (dir) => rebuild(dir, (frames) => frames.slice(0, -2)),
    kind: 'gap',
    integrity: 'damaged',
    completeness: 'incomplete',
  }),
  'a record appended without the chain': () => ({
    does: (dir) => {
      const last = readSegmentFile(lastSegment(dir)).frames.at(-1)?.record.toString() ?? '';
      const forged = last.replace(/"seq":\d+/, `"seq":${RECORDS}`);
      appendFileSync(lastSegment(dir), makeFrame(forged, Buffer.alloc(32)).bytes);
    },
    kind: 'chain',
    ...damaged,
    seq: RECORDS,
  }),
  'a deleted segment in the middle': (seq) => ({
    does: (dir) => rmSync(second(dir).path),
    kind: 'segment_missing',
    integrity: 'damaged',
    completeness: 'incomplete',
    seq,
  }),
  'the first segment deleted': () => ({
    does: (dir) => rmSync(segmentPaths(dir)[0] ?? ''),
    kind: 'segment_missing',
    integrity: 'damaged',
    completeness: 'incomplete',
    seq: 0,
  }),
  'the last segment deleted': () => ({
    does: (dir) => rmSync(lastSegment(dir)),
    kind: 'cut',
    integrity: 'intact',
    completeness: 'incomplete',
  }),
  'the last record cut off': () => ({
    does: (dir) => truncateSync(lastSegment(dir), readSegmentFile(lastSegment(dir)).frames.at(-1)?.at ?? 0),
    kind: 'cut',
    integrity: 'intact',
    completeness: 'incomplete',
    seq: RECORDS - 1,
  }),
  'the last record half cut off': () => ({
    does: (dir) => truncateSync(lastSegment(dir), readFileSync(lastSegment(dir)).length - 30),
    kind: 'cut',
    integrity: 'intact',
    completeness: 'incomplete',
    seq: RECORDS - 1,
  }),
  'two segments swapped': (seq) => ({
    does: (dir) => {
      const [, a = '', b = ''] = segmentPaths(dir);
      renameSync(a, `${a}.x`);
      renameSync(b, a);
      renameSync(`${a}.x`, b);
    },
    kind: 'header',
    ...damaged,
    seq,
  }),
  'the chain recomputed over an altered record': () => ({
    does: (dir) => rechain(dir, (record) => record.replace('"rows":3', '"rows":4')),
    kind: 'root',
    ...damaged,
  }),
  'the chain recomputed over a record that is not canonical': () => ({
    does: (dir) => rechain(dir, (record) => record.replace('{"action"', '{ "action"')),
    kind: 'record',
    ...damaged,
    seq: 0,
  }),
  'the chain recomputed under another writer': () => ({
    does: (dir) => rechain(dir, (record) => record.replace(/"writer":"[^"]*"/, '"writer":"mallory"')),
    kind: 'record',
    ...damaged,
    seq: 0,
  }),
  'the checkpoints deleted': () => ({
    does: (dir) => rmSync(join(dir, 'checkpoints')),
    kind: 'checkpoint',
    ...damaged,
  }),
  'a checkpoint altered': () => ({
    does: (dir) => {
      const path = join(dir, 'checkpoints');
      writeFileSync(path, readFileSync(path, 'utf8').replace('\n202\n', '\n201\n'));
    },
    kind: 'checkpoint',
    ...damaged,
  }),
  'the verifier key replaced': () => ({
    does: (dir) => writeFileSync(join(dir, 'checkpoint.vkey'), 'osl-audit/x+00000000+AAAA\n'),
    kind: 'verifier_key',
    ...damaged,
  }),
};

t.test('every tampering is found, at its place, with the right verdicts', async (t) => {
  const whole = await writtenLog(RECORDS - 2, { segmentBytes: 16 * 1024, checkpointRecords: 50 });
  const seq = firstSeqOfSecond(whole);
  t.match(await verifyAuditLog(whole), {
    integrity: 'intact',
    completeness: 'complete',
    records: RECORDS,
    unanchored: 0,
    problem: null,
  });
  for (const [name, tamper] of Object.entries(TAMPERS)) {
    const dir = tempDir();
    cpSync(whole, dir, { recursive: true });
    const { does, kind, integrity, completeness, seq: at } = tamper(seq);
    does(dir);
    const { problem, ...verdict } = await verifyAuditLog(dir);
    t.match({ kind: problem?.kind, ...verdict }, { kind, integrity, completeness }, name);
    if (at !== undefined) t.equal(problem?.seq, at, `${name}: seq`);
    t.ok(problem?.message && problem.offset >= 0, `${name}: says what and where`);
    rmSync(dir, { recursive: true });
  }
});

t.test('the place of a problem is the frame: segment and byte offset', async (t) => {
  const dir = await writtenLog(10);
  const frame = readSegmentFile(lastSegment(dir)).frames[4];
  alter(lastSegment(dir), (frame?.at ?? 0) + 40, (byte) => byte ^ 2);
  const { problem } = await verifyAuditLog(dir);
  t.match(problem, { segment: 'segment-00000001.log', offset: frame?.at, seq: 4 });
});

t.test('a log cut back together with its checkpoints is found by an anchor kept elsewhere', async (t) => {
  const dir = await writtenLog(10);
  const notes = readFileSync(join(dir, 'checkpoints'), 'utf8');
  const before = tempDir();
  cpSync(dir, before, { recursive: true });
  await writtenLog(10, { dir });
  const later = readFileSync(join(dir, 'checkpoints'), 'utf8');
  const anchor = `${later.trimEnd().split('\n\n').slice(-2).join('\n\n')}\n`;
  t.ok(later.startsWith(notes));
  t.match(
    await verifyAuditLog(before),
    { completeness: 'complete', problem: null },
    'without it, nothing shows',
  );
  t.match(await verifyAuditLog(before, { anchors: [anchor] }), {
    completeness: 'incomplete',
    problem: { kind: 'cut' },
  });
  t.match(await verifyAuditLog(dir, { anchors: [anchor] }), {
    integrity: 'intact',
    completeness: 'complete',
    problem: null,
  });
});

t.test('a log re-signed with another key is found by a verifier key kept elsewhere', async (t) => {
  const verifierKey = readFileSync(join(await writtenLog(1), 'checkpoint.vkey'), 'utf8');
  const forged = await writtenLog(3);
  t.match(await verifyAuditLog(forged), { problem: null });
  t.match(await verifyAuditLog(forged, { verifierKey }), { problem: { kind: 'checkpoint' } });
});

t.test('the anchor has an age, and records after it are counted', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir });
  for (let n = 0; n < 7; n += 1) await log.append(entry(n));
  const verdict = await verifyAuditLog(dir, { now: Date.now() + 60_000 });
  t.match(verdict, { integrity: 'intact', records: 8, unanchored: 7, openDecisions: 1, anchor: { size: 1 } });
  t.ok((verdict.anchor?.ageMs ?? 0) >= 60_000);
  await log.close();
});

t.test('a log that is being written verifies at any moment', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir, segmentBytes: 4 * 1024 * 1024, checkpointRecords: 500 });
  let stop = false;
  const writers = Array.from({ length: 32 }, async () => {
    for (let n = 0; !stop; n += 1) await log.append(entry(n));
  });
  for (let round = 0; round < 25; round += 1) {
    const verdict = await verifyAuditLog(dir);
    if (verdict.problem) t.same(verdict.problem, null, `round ${round}`);
  }
  stop = true;
  await Promise.all(writers);
  await log.close();
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', problem: null });
});

t.test(
  'a segment whose records are not canonical is not verified by itself, whatever their members',
  async (t) => {
    const dir = tempDir();
    const log = await openAuditLog({ dir });
    const receipt = {
      as_of: null,
      masked: ['customer.email'],
      masked_omitted: 0,
      order: 'sequence',
      question: 'cQ',
      rows: 'cg',
      truncated: false,
    } as const;
    const standby = { as_of: '2026-01-02T03:04:05.678Z', name: 'OSL_STANDBY' };
    await log.append({ ...entry(1), plan: 'cA', receipt, standby });
    await log.close();
    const path = lastSegment(dir);
    const written = readFileSync(path);
    const isVerified = (change: (record: string) => string): boolean => {
      writeFileSync(path, written);
      rechain(dir, (record) => (record.includes('"receipt"') ? change(record) : record));
      return verifySegment(readFileSync(path), []) !== null;
    };
    t.ok(isVerified((record) => record));
    const record =
      readSegmentFile(path)
        .frames.map((f) => f.record.toString())
        .find((r) => r.includes('"receipt"')) ?? '';
    const [start, end] = [record.indexOf('"plan"'), record.indexOf('"statement_hmac"')];
    for (let at = start; at < end; at += 1)
      for (const put of ['', '0', '"', ' ', 'é']) {
        const changed = `${record.slice(0, at)}${put}${record.slice(at + 1)}`;
        if (isVerified(() => changed) && !isCanonical(changed)) t.fail(changed);
      }
  },
);

function isCanonical(text: string): boolean {
  try {
    return canonicalize(JSON.parse(text)) === text;
  } catch {
    return false;
  }
}
