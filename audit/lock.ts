import { hash, randomBytes } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, statfsSync, unlinkSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { join, relative } from 'node:path';
import { AuditLocked } from './errors.js';

/** `lock.<kernel boot>.<pid>.<random>`; the pid is informative only. */
const LOCK = /^lock\.([\w-]+)\.(\d+)\.([0-9a-f]+)$/;

/**
 * Ensures one writer per directory. A lock is a Unix socket on which its owner listens, so the kernel releases it
 * with the process and answers contenders from any container; a pid could not.
 *
 * Every contender first creates its own lock under a unique name and then probes the others. Of two simultaneous
 * contenders at least one finds the other and withdraws (perhaps both, which is safe). Locks without a listener are
 * removed, except locks of another kernel on a file system that machines may share: those cannot be probed and count
 * as held.
 *
 * @returns release function
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

/** Removes a stale lock. @throws AuditLocked */
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
    server.on('error', reject); // also handles later errors of accepting connections
    // `exclusive`: otherwise the supervisor of `node:cluster` listens and outlives the worker.
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
      // ENOENT: another contender withdrew or removed the stale lock. Unknown errors count as held.
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT' && error.code !== 'ENOTSOCK');
    });
  }).finally(() => place.close());
}

/** Short path to a file in a deep directory: socket paths are limited to about 100 bytes. */
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

/** Identifies one boot of one kernel; the same in all containers of a machine. */
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
