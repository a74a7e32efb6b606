import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { encodeHeader } from '../../audit/format.js';
import {
  type AuditLog,
  type AuditLogOptions,
  checkProof,
  openAuditLog,
  prove,
  readRecords,
  searchRecords,
  verifyAuditLog,
} from '../../audit/index.js';
import { buildMissingIndexes } from '../../audit/search/index-files.js';
import { directorySource } from '../../audit/source.js';
import { eventually } from '../surfaces/rest/fixture.js';
import { entry, in2020, readSegmentFile, rechain, segmentPaths, tempDir, writtenLog } from './fixture.js';

const OPTIONS = { segmentBytes: 16 * 1024, renewMs: 20 } as const;

/** As a killed process leaves it, with every record under a checkpoint and every complete segment sealed. */
async function killed(fill: (log: AuditLog) => Promise<void>): Promise<string> {
  const dir = tempDir();
  const log = await openAuditLog({ dir, ...OPTIONS });
  await fill(log);
  await eventually(() => log.stats().anchored === log.stats().records);
  const copy = tempDir();
  cpSync(dir, copy, { recursive: true, filter: (path) => !path.includes('lock.') });
  await log.close();
  await buildMissingIndexes(copy);
  return copy;
}

async function many(log: AuditLog, count = 400): Promise<void> {
  for (let n = 2; n < count; n += 1) await log.append(entry(n));
}

async function actionsAfter(dir: string, seq: number): Promise<readonly string[]> {
  const actions: string[] = [];
  for await (const { action, outcome } of readRecords(dir, { from: seq })) actions.push(outcome ?? action);
  return actions;
}

/** An observer of a log, and the messages of what was not kept. */
function refusals() {
  const refused: string[] = [];
  const observer = {
    failed: () => undefined,
    reopened: () => undefined,
    lost: () => undefined,
    kept: ({ message }: Error) => refused.push(message),
  };
  return { refused, observer };
}

t.test('a start reads what follows the newest seal, and no more', async (t) => {
  const dir = await killed(many);
  const [first = ''] = segmentPaths(dir);
  t.ok(segmentPaths(dir).length > 5);
  const whole = readFileSync(first);
  writeFileSync(first, Buffer.concat([whole.subarray(0, 400), Buffer.alloc(200, 0x20), whole.subarray(600)]));
  await (await openAuditLog({ dir, ...OPTIONS })).close();
  t.match(await verifyAuditLog(dir), { integrity: 'damaged', problem: { segment: 'segment-00000001.log' } });
  writeFileSync(first, whole);
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', problem: null });
});

t.test('a decision without outcome is closed from however far back', async (t) => {
  const dir = await killed(async (log) => {
    await log.append({ ...entry(0), request_id: 'far' });
    await many(log);
  });
  const { records } = await verifyAuditLog(dir);
  t.same((await verifyAuditLog(dir)).openDecisions, 1);
  await (await openAuditLog({ dir, ...OPTIONS })).close();
  t.same(await actionsAfter(dir, records), ['audit.open', 'audit.recover', 'unknown', 'audit.close']);
  t.match(await verifyAuditLog(dir), { openDecisions: 0, problem: null });
});

t.test('a seal that was forged leads to no signed root: everything is read instead', async (t) => {
  const dir = await killed(many);
  const seals = readdirSync(dir).filter((name) => name.endsWith('.index'));
  const path = join(dir, seals.at(-1) ?? '');
  const forged = readFileSync(path, 'utf8').replace(/"frontier":\["[0-9a-f]{4}/, '"frontier":["0000');
  writeFileSync(path, forged);
  await (await openAuditLog({ dir, ...OPTIONS })).close();
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', problem: null });
});

t.test('a log that was written anew behind its seals does not open', async (t) => {
  const dir = await killed(many);
  rechain(dir, (record) => record.replace('analyst-eu', 'analyst-us'));
  await t.rejects(openAuditLog({ dir, ...OPTIONS }), { name: 'AuditDamaged' });
});

t.test('a running log seals what is complete', async () => {
  const dir = tempDir();
  const log = await openAuditLog({ dir, ...OPTIONS });
  await many(log);
  const complete = segmentPaths(dir).length - 1;
  await eventually(() => readdirSync(dir).filter((name) => name.endsWith('.index')).length >= complete);
  await log.close();
});

/** A log that was written in 2020: `count` entries from number `from` on, and the log's own. */
function writtenIn2020(dir: string, count: number, from = 0): Promise<void> {
  return in2020(async () => {
    const log = await openAuditLog({ dir, ...OPTIONS, checkpointRecords: 40 });
    for (let n = from; n < from + count; n += 1) await log.append(entry(n));
    await log.close();
  });
}

async function kept(options: Partial<AuditLogOptions>, count = 300): Promise<string> {
  const dir = tempDir();
  await writtenIn2020(dir, count);
  const log = await openAuditLog({ dir, ...OPTIONS, checkpointRecords: 40 });
  for (let n = 0; n < 100; n += 1) await log.append({ ...entry(n), request_id: `new-${n >> 1}` });
  await log.close();
  const next = await openAuditLog({ dir, ...OPTIONS, ...options });
  await eventually(() => !existsSync(join(dir, 'segment-00000001.log')));
  await next.append(entry(1_000));
  await next.append(entry(1_001));
  await next.close();
  return dir;
}

t.test('whole segments that are older than the log keeps go, and the rest is proved as before', async (t) => {
  const dir = await kept({ retention: { ms: 86_400_000, archive: null } });
  const verdict = await verifyAuditLog(dir);
  t.match(verdict, { integrity: 'intact', completeness: 'complete', unanchored: 0, problem: null });
  t.ok((verdict.kept?.from ?? 0) > 100, `from record ${verdict.kept?.from}`);
  t.equal(
    readdirSync(dir).filter((name) => name.includes('00000001')).length,
    0,
    'with its key and its index',
  );
  const key = readFileSync(join(dir, 'checkpoint.vkey'), 'utf8');
  const proofs = await prove(dir, 'new-7');
  t.equal(proofs.length, 2);
  for (const { text } of proofs)
    t.match(checkProof(text, key), { ok: true, record: { request_id: 'new-7' } });
  const found: string[] = [];
  for await (const { request_id } of searchRecords(dir, { requestId: 'new-7' })) found.push(request_id);
  t.equal(found.length, 2);
  const retained: string[] = [];
  for await (const { action, detail = '' } of readRecords(dir))
    if (action === 'audit.retain') retained.push(detail);
  t.match(JSON.parse(retained[0] ?? ''), { from: verdict.kept?.from, archive: null });
  for (let round = 0; round < 2; round += 1) await (await openAuditLog({ dir, ...OPTIONS })).close();
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', problem: null });
});

t.test('a log is verified while segments expire', async (t) => {
  const dir = await kept({ retention: { ms: 86_400_000, archive: null } });
  const source = directorySource(dir);
  for (const missing of ['listed', 'not listed'] as const) {
    let isFirst = true;
    const expiring = {
      ...source,
      // Read before the segments were deleted: twice, to compare it and to start after it.
      retained: () => (isFirst ? Promise.resolve(Buffer.alloc(0)) : source.retained()),
      segments: async () => {
        const numbers = await source.segments();
        const listed = isFirst && missing === 'listed' ? [1, ...numbers] : numbers;
        isFirst = false;
        return listed;
      },
    };
    t.match(await verifyAuditLog(expiring), { integrity: 'intact', problem: null }, missing);
  }
});

t.test('a segment in which nothing was written holds up no other', async (t) => {
  const dir = tempDir();
  await writtenIn2020(dir, 2);
  // As a start leaves it that begins a segment and then writes nothing, since its disk fails.
  const [path = ''] = segmentPaths(dir);
  const { header, frames } = readSegmentFile(path);
  const chain = frames.at(-1)?.chain ?? header.chain;
  const empty = encodeHeader({ ...header, segment: 2, firstSeq: frames.length, chain });
  writeFileSync(join(dir, 'segment-00000002.log'), empty);
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', problem: null });
  await writtenIn2020(dir, 100, 2);
  const retention = { ms: 86_400_000, archive: null };
  const last = await openAuditLog({ dir, ...OPTIONS, retention });
  await eventually(() => !existsSync(join(dir, 'segment-00000003.log')));
  await last.close();
  t.notOk(existsSync(join(dir, 'segment-00000002.log')));
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', problem: null });
});

t.test('a segment stays while any of its records is to be kept, whatever the clock said last', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir, ...OPTIONS });
  const ts = '2020-01-01T00:00:00.000Z';
  for (let n = 0; n < 300; n += 1) await log.append(n % 8 === 0 ? entry(n) : { ...entry(n), ts });
  await log.close();
  const whole = segmentPaths(dir);
  const { refused, observer } = refusals();
  const retention = { ms: 86_400_000, archive: null };
  const next = await openAuditLog({ dir, ...OPTIONS, observer, retention });
  for (let n = 300; n < 400; n += 1) await next.append(entry(n));
  await next.close();
  t.same(refused, []);
  for (const path of whole) t.ok(existsSync(path), path);
});

t.test('an archive is a log by itself, which ends where the kept one begins', async (t) => {
  const archive = tempDir();
  const dir = await kept({ retention: { ms: 86_400_000, archive } });
  const [writer = ''] = readdirSync(archive);
  const verdict = await verifyAuditLog(join(archive, writer));
  t.match(verdict, { integrity: 'intact', completeness: 'complete', unanchored: 0, problem: null });
  t.equal(verdict.records, (await verifyAuditLog(dir)).kept?.from);
});

t.test('an archive that was begun late begins where the log began then', async (t) => {
  const dir = tempDir();
  const archive = tempDir();
  for (const place of [null, archive, archive]) {
    const log = await openAuditLog({ dir, ...OPTIONS });
    await many(log, 152);
    await log.close();
    const [first = ''] = segmentPaths(dir);
    const keeping = await openAuditLog({ dir, ...OPTIONS, retention: { ms: 1, archive: place } });
    await eventually(() => !existsSync(first));
    await keeping.close();
    t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', problem: null });
  }
  const [writer = ''] = readdirSync(archive);
  const { records, kept, problem } = await verifyAuditLog(join(archive, writer));
  t.equal(problem, null);
  t.ok((kept?.from ?? 0) > 100, `from record ${kept?.from}`);
  t.equal((kept?.from ?? 0) + records, (await verifyAuditLog(dir)).kept?.from);
});

t.test('an archive that is away is not made, and takes nothing from the log', async (t) => {
  const archive = join(tempDir(), 'mount');
  const { refused, observer } = refusals();
  const dir = tempDir();
  await writtenIn2020(dir, 300);
  const retention = { ms: 86_400_000, archive };
  const next = await openAuditLog({ dir, ...OPTIONS, observer, retention });
  await eventually(() => refused.length > 0);
  await next.close();
  t.match(refused[0], /ENOENT.*mount/);
  t.notOk(existsSync(archive));
  t.ok(existsSync(join(dir, 'segment-00000001.log')));
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', problem: null });
  mkdirSync(archive);
  const again = await openAuditLog({ dir, ...OPTIONS, observer, retention });
  for (let n = 0; n < 100; n += 1) await again.append(entry(n));
  await eventually(() => !existsSync(join(dir, 'segment-00000001.log')));
  await again.close();
  const verdict = await verifyAuditLog(dir);
  t.match(verdict, { integrity: 'intact', completeness: 'complete', problem: null });
  const [writer = ''] = readdirSync(archive);
  const archived = await verifyAuditLog(join(archive, writer));
  t.match(archived, { integrity: 'intact', completeness: 'complete', records: verdict.kept?.from });
});

t.test('a deletion that was interrupted is recorded and completed', async (t) => {
  const dir = await kept({ retention: { ms: 86_400_000, archive: null } });
  const note = readFileSync(join(dir, 'retained'));
  const [, until = ''] = /\nretained (\d+) /.exec(note.toString()) ?? [];
  const left = join(dir, `segment-${String(Number(until) - 1).padStart(8, '0')}.log`);
  writeFileSync(left, readFileSync(segmentPaths(dir)[0] ?? ''));
  const retention = { ms: 86_400_000 * 36_500, archive: null };
  await (await openAuditLog({ dir, ...OPTIONS })).close();
  const log = await openAuditLog({ dir, ...OPTIONS, retention });
  await eventually(() => !existsSync(left));
  await log.close();
  const actions: string[] = [];
  for await (const { action } of readRecords(dir)) actions.push(action);
  t.equal(actions.filter((action) => action === 'audit.retain').length, 2);
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', problem: null });
});

t.test('more that goes than was signed is found, and so is a note that was not signed', async (t) => {
  const dir = await kept({ retention: { ms: 86_400_000, archive: null } });
  const copy = tempDir();
  cpSync(dir, copy, { recursive: true });
  rmSync(segmentPaths(copy)[0] ?? '');
  t.match(await verifyAuditLog(copy), { completeness: 'incomplete', problem: { kind: 'segment_missing' } });
  const note = readFileSync(join(dir, 'retained'), 'utf8');
  const changed = {
    'another root': note.replace(/\n([A-Za-z0-9+/])/, '\nB'),
    'another frontier': note.replace(/frontier .{4}/, 'frontier AAAA'),
    'another chain': note.replace(/retained (\d+) (\d+) .{4}/, 'retained $1 $2 0000'),
    'another size': note.replace(/\n(\d+)\n/, (_, size: string) => `\n${Number(size) + 1}\n`),
  };
  for (const [what, text] of Object.entries(changed)) {
    writeFileSync(join(dir, 'retained'), text);
    t.match(await verifyAuditLog(dir), { integrity: 'damaged', problem: { kind: 'checkpoint' } }, what);
    await t.rejects(openAuditLog({ dir }), { name: 'AuditDamaged' }, what);
  }
  rmSync(join(dir, 'retained'));
  t.match(await verifyAuditLog(dir), { completeness: 'incomplete', problem: { kind: 'segment_missing' } });
});

t.test('what is not what was signed is not signed away', async (t) => {
  const dir = tempDir();
  await writtenIn2020(dir, 300);
  await buildMissingIndexes(dir);
  const [first = ''] = segmentPaths(dir);
  const bytes = readFileSync(first);
  bytes[600] = (bytes[600] ?? 0) ^ 1;
  writeFileSync(first, bytes);
  const { refused, observer } = refusals();
  const next = await openAuditLog({ dir, ...OPTIONS, observer, retention: { ms: 1_000, archive: null } });
  await eventually(() => refused.length > 0);
  await next.close();
  t.match(refused[0], /segment-00000001\.log/);
  t.ok(existsSync(first));
});

t.test('a clock that jumps is on record, and orders nothing', async (t) => {
  const real = Date.now;
  t.teardown(() => {
    Date.now = real;
  });
  const dir = tempDir();
  const jumps = async (): Promise<readonly Record<string, unknown>[]> => {
    const found: Record<string, unknown>[] = [];
    for await (const { action, detail = '' } of readRecords(dir))
      if (action === 'audit.clock') found.push(JSON.parse(detail));
    return found;
  };
  const log = await openAuditLog({ dir, ...OPTIONS });
  await log.append(entry(0));
  for (const [count, hours] of [-5, 48, 0].entries()) {
    Date.now = () => real() + hours * 3_600_000;
    await log.append(entry(2 + 2 * count));
    await eventually(async () => (await jumps()).length > count);
  }
  const [back, forward] = await jumps();
  const drift = (jump: Record<string, unknown> | undefined): number =>
    Math.round((Date.parse(String(jump?.['found'])) - Date.parse(String(jump?.['expected']))) / 3_600_000);
  t.same([drift(back), drift(forward)], [-5, 53]);
  for (const n of [1, 3, 5, 7]) await log.append(entry(n));
  await log.close();
  const seqs: number[] = [];
  for await (const { seq } of readRecords(dir)) seqs.push(seq);
  t.same(seqs, [...seqs.keys()]);
  t.match(await verifyAuditLog(dir), {
    integrity: 'intact',
    completeness: 'complete',
    openDecisions: 0,
    problem: null,
  });
  Date.now = () => real() - 86_400_000;
  await (await openAuditLog({ dir, ...OPTIONS })).close();
  t.match((await jumps()).at(-1), { expected: null, last: /^20/ });
});

t.test('segments that are judged side by side give the verdict of one who reads them in turn', async (t) => {
  const dir = await writtenLog(3_000, { segmentBytes: 16 * 1024, checkpointRecords: 70 });
  const said: number[] = [];
  const verdict = await verifyAuditLog(dir, { progress: ({ segments }) => said.push(segments) });
  t.match(verdict, {
    integrity: 'intact',
    completeness: 'complete',
    records: 3_002,
    openDecisions: 0,
    problem: null,
  });
  t.same(
    said,
    Array.from({ length: segmentPaths(dir).length }, (_, i) => i + 1),
  );
});
