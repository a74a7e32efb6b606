import { hash, randomBytes } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, statfsSync, unlinkSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { join, relative } from 'node:path';
import { AuditLocked } from './errors.js';

/** `lock.<kernel boot>.<pid>.<random>`; the pid is informative only. */
const LOCK = /^lock\.([\w-]+)\.(\d+)\.([0-9a-f]+)$/;

/**
 * Ensures that a directory has only one writer. A lock is a Unix socket on which its owner listens. Unlike a pid file,
 * it is released by the kernel when the process ends, and answers contenders in any container.
 *
 * Each contender first creates a lock under a unique name and then probes the others. If two contend at the same time,
 * at least one finds the other and withdraws (perhaps both do, which is safe). Locks without a listener are removed,
 * except those of another kernel on a file system that machines may share: they cannot be probed and count as held.
 *
 * @returns a function that releases the lock
 * @throws AuditLocked
 */
export async function lockDirectory(dir: string): Promise<() => void> {
  const own = `lock.${KERNEL}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const held = await createLock(dir, own);
  const release = (): void => {
    held.close();
    remove(dir, own);
  };
  try {
    for (const name of readdirSync(dir)) if (name !== own) await rejectIfHeld(dir, name);
    return release;
  } catch (error) {
    release();
    throw error;
  }
}

/** Removes the lock `name` if it is stale. @throws AuditLocked if it is held, or cannot be probed */
async function rejectIfHeld(dir: string, name: string): Promise<void> {
  const [, kernel, pid] = LOCK.exec(name) ?? [];
  if (kernel === undefined) return;
  if (await isHeld(dir, name)) throw new AuditLocked(`the audit log in ${dir} is in use by process ${pid}`);
  if (kernel !== KERNEL && isShared(dir)) {
    throw new AuditLocked(
      `the audit log in ${dir} is in use by process ${pid} of another machine, or was before a restart (if that process is gone, remove ${join(dir, name)})`,
    );
  }
  remove(dir, name);
}

async function createLock(dir: string, name: string): Promise<{ close(): void }> {
  const place = new ShortPath(dir, name);
  try {
    const server = await listening(place.path);
    return {
      close: () => {
        server.close();
        place.close();
      },
    };
  } catch (error) {
    place.close();
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ENOTSUP' || code === 'EOPNOTSUPP' || code === 'EPERM') {
      throw new AuditLocked(
        `the file system of ${dir} takes no Unix sockets, so the audit log cannot be locked`,
      );
    }
    throw error;
  }
}

function listening(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((asking) => asking.destroy());
    server.on('error', reject); // also handles later errors when accepting connections
    // Without `exclusive`, the `node:cluster` primary would listen, and it outlives the worker.
    server.listen({ path, exclusive: true }, () => resolve(server.unref()));
  });
}

function isHeld(dir: string, name: string): Promise<boolean> {
  const place = new ShortPath(dir, name);
  return new Promise<boolean>((resolve) => {
    const asking = createConnection(place.path, () => {
      asking.destroy();
      resolve(true);
    });
    asking.on('error', (error: NodeJS.ErrnoException) => {
      // ENOENT: another contender withdrew or removed the stale lock. After unknown errors the lock counts as held.
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT' && error.code !== 'ENOTSOCK');
    });
  }).finally(() => place.close());
}

/** Short path to a file in a deeply nested directory, because socket paths are limited to about 100 bytes. */
class ShortPath {
  readonly path: string;
  readonly #fd: number | null;

  constructor(dir: string, name: string) {
    this.#fd = process.platform === 'linux' ? openSync(dir, 'r') : null;
    const plain = join(dir, name);
    const near = relative(process.cwd(), plain);
    this.path =
      this.#fd === null ? (near.length < plain.length ? near : plain) : `/proc/self/fd/${this.#fd}/${name}`;
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
  }
}

function remove(dir: string, name: string): void {
  try {
    unlinkSync(join(dir, name));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}

/** Identifies one boot of one kernel; the same in all containers on a machine. */
const KERNEL = kernel();

function kernel(): string {
  try {
    return hash('sha256', readFileSync('/proc/sys/kernel/random/boot_id')).slice(0, 12);
  } catch {
    return 'here'; // not Linux: shared file systems are not detected
  }
}

/** statfs types of shared file systems: NFS, SMB and CIFS, FUSE, 9P, Ceph, Lustre, GFS2, OCFS2, AFS. */
const SHARED: ReadonlySet<number> = new Set([
  0x6969, 0xfe534d42, 0xff534d42, 0x517b, 0x65735546, 0x01021997, 0x00c36400, 0x0bd00bd0, 0x01161970,
  0x7461636f, 0x5346414f,
]);

function isShared(dir: string): boolean {
  return SHARED.has(statfsSync(dir).type);
}
