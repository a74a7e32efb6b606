import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openAuditLog } from '../../audit/index.js';
import { entry, tempDir } from './fixture.js';

const CHILD = new URL('./crash-child.js', import.meta.url).pathname;

async function childWith(dir: string): Promise<ChildProcess> {
  const child = fork(CHILD, [dir, 'idle'], { stdio: 'ignore' });
  await once(child, 'message');
  return child;
}

const SOCKET_LEFT_BEHIND = `
  require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;

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

t.test(
  'a lock says nothing by its pid: one that nobody listens on is stale, whoever has the number now',
  async (t) => {
    const dir = tempDir();
    const log = await openAuditLog({ dir });
    const [held = ''] = locks(dir);
    await log.close();
    for (const name of [held, held.replace(/^lock\.\w+\.\d+/, 'lock.0123456789ab.1')]) {
      // As a killed process leaves it, in this container or before a restart; and as a copied directory has it.
      spawnSync(process.execPath, ['-e', SOCKET_LEFT_BEHIND, join(dir, name)]);
      t.same(locks(dir), [name]);
      await (await openAuditLog({ dir })).close();
      t.same(locks(dir), []);
      writeFileSync(join(dir, name), '');
      await (await openAuditLog({ dir })).close();
      t.same(locks(dir), []);
    }
  },
);

t.test('a directory may be deeper than the path of a socket is long', async (t) => {
  const dir = join(tempDir(), ...Array.from({ length: 12 }, () => 'a-rather-long-name'));
  const log = await openAuditLog({ dir });
  await t.rejects(openAuditLog({ dir }), { name: 'AuditLocked' });
  await log.close();
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
