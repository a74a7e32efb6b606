import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { openAuditLog } from '../../policy/audit/index.js';
import { entry, tempDir } from './fixture.js';

const CHILD = new URL('./crash-child.js', import.meta.url).pathname;

async function childWith(dir: string): Promise<ChildProcess> {
  const child = fork(CHILD, [dir, 'idle'], { stdio: 'ignore' });
  await once(child, 'message');
  return child;
}

function locks(dir: string): string[] {
  return readdirSync(dir).filter((name) => name.startsWith('lock.'));
}

t.test('one writer a directory, within a process', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir });
  await t.rejects(openAuditLog({ dir }), {
    name: 'AuditLocked',
    message: new RegExp(`process ${process.pid}`),
  });
  t.equal(await log.append(entry(0)), 1, 'the owner is not disturbed');
  await log.close();
  t.same(locks(dir), []);
  await (await openAuditLog({ dir })).close();
});

t.test('another process is refused while the owner lives, and takes over after kill -9', async (t) => {
  const dir = tempDir();
  const child = await childWith(dir);
  await t.rejects(openAuditLog({ dir }), {
    name: 'AuditLocked',
    message: new RegExp(`process ${child.pid}`),
  });
  child.kill('SIGKILL');
  await once(child, 'exit');
  const log = await openAuditLog({ dir });
  t.equal(locks(dir).length, 1, 'the stale lock is gone');
  await log.close();
});

t.test('a lock of a reused pid is stale: the start time differs', async (t) => {
  const dir = tempDir();
  writeFileSync(join(dir, `lock.${hostname().replace(/[^\w-]/g, '_')}.${process.pid}.1.00`), '');
  await (await openAuditLog({ dir })).close();
  t.same(locks(dir), []);
});

t.test('a lock of another host stands, and the message says what to remove', async (t) => {
  const dir = tempDir();
  writeFileSync(join(dir, 'lock.elsewhere.1.1.00'), '');
  await t.rejects(openAuditLog({ dir }), {
    name: 'AuditLocked',
    message: /remove .*lock\.elsewhere\.1\.1\.00/,
  });
  t.same(locks(dir), ['lock.elsewhere.1.1.00']);
});

t.test('of many contenders at once at most one wins', async (t) => {
  const dir = tempDir();
  await (await openAuditLog({ dir })).close();
  for (let round = 0; round < 5; round += 1) {
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => openAuditLog({ dir })));
    const won = results.filter((result) => result.status === 'fulfilled');
    t.ok(won.length <= 1);
    for (const { value } of won) await value.close();
  }
});
