import { hash, randomBytes } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, statfsSync, unlinkSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { join, relative } from 'node:path';
import { AuditLocked } from './errors.js';

/** `lock.<kernel>.<pid>.<random>`: which run of which kernel, and a number for people. */
const LOCK = /^lock\.([\w-]+)\.(\d+)\.([0-9a-f]+)$/;

/**
 * One writer a directory. A lock is a Unix socket that its owner listens on, so the kernel ends it with the process,
 * however that ends, and tells whoever asks, from whatever container, whether it is held: a pid could not.
 *
 * Every contender first makes a lock of its own, under a name that is never used again, and then asks the others: of
 * two at once at least one finds the other and withdraws (perhaps both, which is safe). One that nobody listens on is
 * removed. Only where machines may share the file system, a lock that another kernel made cannot be judged: it stands.
 *
 * @returns release function
 * @throws AuditLocked
 */
export async function lockDirectory(dir: string): Promise<() => void> {
  const own = `lock.${KERNEL}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const held = await hold(dir, own);
  const release = (): void => {
    held.close();
    remove(dir, own);
  };
  try {
    for (const name of readdirSync(dir)) if (name !== own) await settle(dir, name);
    return release;
  } catch (error) {
    release();
    throw error;
  }
}

/** Removes the lock of a process that is gone. @throws AuditLocked */
async function settle(dir: string, name: string): Promise<void> {
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

async function hold(dir: string, name: string): Promise<{ close(): void }> {
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
    server.on('error', reject); // also of a connection that cannot be taken, later
    // `exclusive`: in a worker of `node:cluster` its supervisor would listen in its place, and outlive it.
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
      // ENOENT: another contender withdrew, or removed the same stale lock first. All else cannot be judged.
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT' && error.code !== 'ENOTSOCK');
    });
  }).finally(() => place.close());
}

/** The path of a socket has room for some hundred bytes: a directory may be deeper than that. */
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

/** One run of one kernel; containers of a machine have it in common, two machines never. */
const KERNEL = kernel();

function kernel(): string {
  try {
    return hash('sha256', readFileSync('/proc/sys/kernel/random/boot_id')).slice(0, 12);
  } catch {
    return 'here'; // no Linux: a shared file system is not told apart there
  }
}

/** File systems that several machines may have mounted: NFS, SMB and CIFS, FUSE, 9P, Ceph, Lustre, GFS2, OCFS2, AFS. */
const SHARED: ReadonlySet<number> = new Set([
  0x6969, 0xfe534d42, 0xff534d42, 0x517b, 0x65735546, 0x01021997, 0x00c36400, 0x0bd00bd0, 0x01161970,
  0x7461636f, 0x5346414f,
]);

function isShared(dir: string): boolean {
  return SHARED.has(statfsSync(dir).type);
}
