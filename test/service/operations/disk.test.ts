import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { type AuditGap, readRecords, verifyAuditLog } from '../../../audit/index.js';
import { memberAt } from '../../support/frontends.js';
import { type Server, temporary } from '../../tools/cli/support.js';
import { asked, logged, type Place, place, run, served, tokenFor } from './support.js';

/** Puts a disk of 24 MiB, that can be filled and frozen, at `at`; false where none can be mounted. */
function mounted(at: string): boolean {
  const image = join(temporary(), 'disk');
  writeFileSync(image, '');
  truncateSync(image, 24 * 1_048_576);
  mkdirSync(at);
  if (run('mkfs.ext4', '-q', '-O', '^has_journal', image) === null) return false;
  return run('mount', '-o', 'loop', image, at) !== null;
}

function unmount(at: string): void {
  run('fsfreeze', '-u', at);
  run('umount', '-l', at);
}

/** The disk of the audit log of `place`. */
function smallDisk(t: Test, { dataDir }: Place): string {
  const at = join(dataDir, 'audit');
  if (!mounted(at)) throw new Error(`${at} could not be mounted`);
  t.teardown(() => unmount(at));
  return at;
}

/** Why there is no disk to fill and to freeze; false where there is. */
function noDisk(): string | false {
  const at = join(temporary(), 'try');
  const can = mounted(at) && run('fsfreeze', '-f', at) !== null;
  unmount(at);
  return can ? false : 'no disk can be mounted and frozen here (that takes root)';
}

const skip = noDisk();
const ENV = { OSL_AUDIT_SEGMENT_MIB: '1', OSL_AUDIT_PROBE_SECONDS: '1' };

/** One status after another of a request that leaves two records, until `enough` says so. */
async function askUntil(server: Server, place: Place, enough: (status: number) => boolean): Promise<number> {
  const authorization = `Bearer ${await tokenFor(place.dataDir)}`;
  for (let n = 1; ; n += 1) {
    const ask = () => asked(server, '/osl/conformance', null, { authorization });
    const replies = await Promise.all(Array.from({ length: 32 }, ask));
    const found = replies.find(({ status }) => enough(status));
    if (found !== undefined) return found.status;
    if (n > 2_000) throw new Error(`${n} rounds, and the last said ${replies[0]?.status}`);
    if (replies[0]?.status !== 200) await sleep(20);
  }
}

/** Takes all that is left on the disk, and gives it back. */
function fill(disk: string): () => void {
  const file = join(disk, 'other-peoples-data');
  run('dd', 'if=/dev/zero', `of=${file}`, 'bs=64k', 'conv=fsync');
  return () => rmSync(file);
}

t.test('a disk that is full once, and then stalls, is not an outage for ever', { skip }, async (t) => {
  const where = place();
  const disk = smallDisk(t, where);
  const server = await served(t, where, ENV);
  t.match(await asked(server, '/health'), { status: 200, body: '{"status":"ok"}' });

  const free = fill(disk);
  t.equal(await askUntil(server, where, (s) => s !== 200), 503, 'fails closed');
  t.match(await asked(server, '/health'), { status: 503, body: /"status":"failing","audit":"full"/ });
  t.match(await asked(server, '/ready'), { status: 503, body: /"audit":false/ });
  const line = logged(server).filter((l) => l['msg'] === 'the audit log failed: every request is refused');
  t.match(line, [{ level: 50, reason: 'full', cause: /ENOSPC/, dir: disk }], 'one line says why');
  free();
  t.equal(await askUntil(server, where, (s) => s === 200), 200, 'by itself');
  t.match(await asked(server, '/health'), { status: 200 });

  run('fsfreeze', '-f', disk);
  const stalled = performance.now();
  t.equal(await askUntil(server, where, (s) => s !== 200), 503, 'a stall beyond the deadline');
  t.ok(performance.now() - stalled > 4_000);
  t.match(await asked(server, '/health'), { status: 503, body: /"audit":"deadline"/ });
  run('fsfreeze', '-u', disk);
  t.equal(await askUntil(server, where, (s) => s === 200), 200, 'by itself');

  t.equal((await server.signal('SIGTERM')).code, 0);
  const gaps: AuditGap[] = [];
  const probes = new Map<string, number>();
  for await (const record of readRecords(disk)) {
    const detail: unknown = JSON.parse(record.detail ?? '{}');
    if (record.action === 'audit.gap') gaps.push(detail as AuditGap); // so the log writes it
    if (record.action !== 'health') continue;
    for (const [status, count] of Object.entries(memberAt(detail, 'statuses') as object))
      probes.set(status, (probes.get(status) ?? 0) + Number(count));
  }
  t.ok((probes.get('200') ?? 0) >= 2, 'what was asked before a failure is counted after it');
  t.ok((probes.get('503') ?? 0) >= 2, 'and what was asked while the log took nothing');
  t.match(gaps, [{ reason: 'full' }, { reason: 'deadline' }]);
  t.ok(
    gaps.every(({ refused, since, until }) => refused > 0 && since < until),
    JSON.stringify(gaps),
  );
  t.match(await verifyAuditLog(disk), { integrity: 'intact', completeness: 'complete', openDecisions: 0 });
});

t.test('where the settings say so, the process ends with a status of its own', { skip }, async (t) => {
  const where = place();
  const disk = smallDisk(t, where);
  const server = await served(t, where, { ...ENV, OSL_AUDIT_FAILURE: 'exit' });
  fill(disk);
  await askUntil(server, where, (s) => s !== 200).catch(() => undefined); // it may end before it answers
  const { code, stderr } = await server.ended;
  t.equal(code, 7);
  t.match(stderr, /the audit log failed: every request is refused/);
  t.match(stderr, /ENOSPC.*the process ends/);
  t.match(stderr, /\nerror: the audit log failed: ENOSPC/);
});
