import { createHash, createHmac, createPublicKey, verify } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { AuditUnavailable, openAuditLog, readRecords, verifyAuditLog } from '../../audit/index.js';
import { entry, lastSegment, readSegmentFile, segmentPaths, tempDir, WAYS, writtenLog } from './fixture.js';

t.test('each frame holds the chain hash SHA-256(previous, SHA-256(0x00, record))', async (t) => {
  const dir = await writtenLog(6);
  const { header, frames } = readSegmentFile(lastSegment(dir));
  t.equal(header.chain.toString('hex'), '00'.repeat(32));
  let previous: Buffer = header.chain;
  for (const frame of frames) {
    const leaf = createHash('sha256').update('\0').update(frame.record).digest();
    const chain = createHash('sha256').update(previous).update(leaf).digest();
    t.same(frame.chain, chain);
    previous = chain;
  }
  t.equal(frames.length, 8, 'six entries, audit.open and audit.close');
});

t.test('append resolves with the seq, in order of the calls; every field is kept', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir, tenant: 'acme' });
  const seqs = await Promise.all([0, 1, 2, 3].map((n) => log.append(entry(n))));
  t.same(seqs, [1, 2, 3, 4]);
  const fromCallback = await new Promise((resolve) =>
    log.append(entry(4), (error, seq) => resolve([error, seq])),
  );
  t.same(fromCallback, [null, 5]);
  await log.close();
  const records = [];
  for await (const record of readRecords(dir)) records.push(record);
  t.match(records[1], { ...entry(0), seq: 1, epoch: 1, writer: log.stats().writer });
  t.match(records[0], { action: 'audit.open', surface: 'system', tenant: 'acme' });
  t.equal(records.at(-1)?.action, 'audit.close');
});

t.test('records that arrive in one turn share a sync', async (t) => {
  const log = await openAuditLog({ dir: tempDir() });
  const before = log.stats().groups;
  await Promise.all(Array.from({ length: 500 }, (_, n) => log.append(entry(n))));
  t.equal(log.stats().groups - before, 1);
  await log.close();
});

t.test('an outcome goes with the next decision, or soon alone', async (t) => {
  const log = await openAuditLog({ dir: tempDir() });
  const before = log.stats().groups;
  for (let n = 0; n < 40; n += 2) {
    await log.append(entry(n));
    log.append(entry(n + 1), () => undefined);
    // The next decision comes some turns later.
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
  }
  const groups = log.stats().groups - before;
  t.ok(groups < 30, `20 decisions and 20 outcomes in ${groups} groups`);
  t.equal(await log.append(entry(41)), 41);
  log.append(entry(43), () => undefined);
  await log.close();
});

t.test('one write at a time, and none is acknowledged before its write returned', async (t) => {
  const fs = await import('node:fs');
  let running = 0;
  let most = 0;
  let durable = 0;
  const log = await openAuditLog({
    dir: tempDir(),
    write: (fd, data, offset, length, position, done) => {
      running += 1;
      most = Math.max(most, running);
      fs.write(fd, data, offset, length, position, (error, written) => {
        running -= 1;
        durable += 1;
        done(error, written);
      });
    },
  });
  most = 0;
  const work = Array.from({ length: 20 }, async (_, n) => {
    for (let i = 0; i < 20; i += 1) {
      const before = durable;
      await log.append(entry(n));
      // Callers fall out of step, so records arrive while a sync runs.
      for (let turn = 0; turn < (n * i) % 7; turn += 1) await new Promise(setImmediate);
      if (durable === before) t.fail('acknowledged without a write');
    }
  });
  await Promise.all(work);
  t.equal(most, 1);
  await log.close();
});

t.test('segments rotate by size and continue the chain', async (t) => {
  const dir = await writtenLog(300, { segmentBytes: 16 * 1024 });
  const paths = segmentPaths(dir);
  t.ok(paths.length > 5, `${paths.length} segments`);
  for (const path of paths) {
    t.ok(statSync(path).size <= 16 * 1024, 'no segment is larger than asked');
    t.ok(readSegmentFile(path).frames.length > 0);
  }
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', records: 302 });
});

t.test('a group larger than a segment is written whole', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir, segmentBytes: 4096 });
  await Promise.all(Array.from({ length: 100 }, (_, n) => log.append(entry(n))));
  await log.close();
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', records: 102 });
});

t.test('epochs count openings; the writer stays', async (t) => {
  const dir = await writtenLog(2, { writer: 'gw-1' });
  await writtenLog(2, { dir });
  const log = await openAuditLog({ dir });
  t.match(log.stats(), { epoch: 3, writer: 'gw-1' });
  await log.close();
  await t.rejects(openAuditLog({ dir, writer: 'gw-2' }), /belongs to writer `gw-1`/);
});

t.test('a fingerprint is an HMAC under the key file of its segment', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir, segmentBytes: 4096 });
  const first = log.fingerprint('select 1');
  const key = readFileSync(join(dir, 'segment-00000001.key'));
  t.equal(first, `1.${createHmac('sha256', key).update('select 1').digest('base64url')}`);
  t.equal(log.fingerprint('select 1'), first);
  t.not(log.fingerprint('select 2'), first);
  const bytes = Buffer.from('Qselect 1\0');
  t.equal(log.fingerprintOf(bytes, 1, 9), first, 'of its bytes');
  // A segment ends between decisions and their outcomes.
  for (let n = 0; n < 20; n += 1) await WAYS[n % 4 < 2 ? 'entry' : 'form'](log, entry(n));
  t.match(log.fingerprint('select 1'), /^[2-9]\./, 'another segment, another key');
  t.equal(statSync(join(dir, 'segment-00000001.key')).mode & 0o777, 0o600);
  await log.close();
});

t.test('checkpoints are signed notes that other tools can check', async (t) => {
  const dir = await writtenLog(50, { checkpointRecords: 10 });
  const vkey = readFileSync(join(dir, 'checkpoint.vkey'), 'utf8').trim();
  t.equal(statSync(join(dir, 'checkpoint.key')).mode & 0o777, 0o600);
  const [, name = '', id = '', encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? [];
  const typed = Buffer.from(encoded, 'base64');
  t.equal(typed[0], 1, 'the type byte of Ed25519');
  t.equal(createHash('sha256').update(`${name}\n`).update(typed).digest('hex').slice(0, 8), id);
  const key = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: typed.subarray(1).toString('base64url') },
    format: 'jwk',
  });
  const parts = readFileSync(join(dir, 'checkpoints'), 'utf8').split('\n\n');
  t.equal(parts.pop(), '');
  t.ok(parts.length / 2 >= 6, 'one at the start, about one every ten records, one at the end');
  for (let i = 0; i < parts.length; i += 2) {
    const body = `${parts[i]}\n`;
    const [, signer, blob = ''] = /^\u2014 (\S+) (\S+)$/.exec(parts[i + 1] ?? '') ?? [];
    const signature = Buffer.from(blob, 'base64');
    t.equal(signer, name);
    t.equal(signature.subarray(0, 4).toString('hex'), id);
    t.ok(verify(null, Buffer.from(body), key, signature.subarray(4)));
    t.equal(body.split('\n')[0], name);
  }
  t.match(parts.at(-2), new RegExp(`^${name}\n52\n`), 'the last one covers everything');
});

t.test('a checkpoint follows in time even where records are few', async (t) => {
  const log = await openAuditLog({ dir: tempDir(), checkpointMs: 20 });
  await log.append(entry(0));
  while (log.stats().anchored < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  t.equal(log.stats().anchored, 2);
  await log.close();
});

t.test('too long a record loses objects or is refused; the log goes on', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir });
  await log.append({ ...entry(0), objects: Array.from({ length: 20_000 }, (_, i) => `osl.entities.e${i}`) });
  const refused = log.append({ ...entry(1), action: 'x'.repeat(70_000) });
  await t.rejects(refused, { name: 'AuditUnavailable', reason: 'too_long' });
  t.equal(await log.append(entry(1)), 2);
  await log.close();
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', records: 4 });
});

t.test('a closed log refuses', async (t) => {
  const log = await openAuditLog({ dir: tempDir() });
  const last = log.append(entry(0));
  await log.close();
  t.equal(await last, 1, 'what was appended before is durable');
  await t.rejects(log.append(entry(1)), { name: 'AuditUnavailable', reason: 'closed' });
  await t.rejects(WAYS.form(log, entry(1)), { name: 'AuditUnavailable', reason: 'closed' });
  const error = await new Promise((resolve) => log.append(entry(1), resolve));
  t.ok(error instanceof AuditUnavailable);
  await log.close();
});
