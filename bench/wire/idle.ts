import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { password, startup } from '../../test/wire/support/bytes.js';
import { type Measure, measure } from '../report.js';
import { residentMib } from '../support/child.js';
import { type Gateway, SUBJECT } from '../support/gateway.js';
import { readied } from '../support/readied.js';

/** Number of concurrent logins. */
const AT_ONCE = 100;
/** Memory counts as settled if it changes by less than 2 % within this time; the wait ends after ten times as long. */
const REST_MS = 2_000;

/**
 * Memory used by the gateway for `count` idle, logged-in sessions, after its background work at startup. Both processes
 * need a file descriptor for each: `ulimit -n`.
 */
export async function idleMeasures(
  gateway: Gateway,
  wanted: number,
  name = 'wire.idle',
): Promise<readonly Measure[]> {
  const { pid } = gateway.child;
  const count = Math.min(wanted, openFiles(pid) - 500, openFiles(process.pid) - 500);
  if (count < wanted)
    process.stderr.write(`${wanted} idle sessions: ${count}, as no more files may be open\n`);
  await readied(gateway);
  const before = await restingMib(pid);
  const sockets: Socket[] = [];
  const started = performance.now();
  try {
    while (sockets.length < count) {
      const token = await gateway.token();
      const batch = Math.min(AT_ONCE, count - sockets.length);
      sockets.push(...(await Promise.all(Array.from({ length: batch }, () => login(gateway.pgPort, token)))));
    }
    const seconds = (performance.now() - started) / 1_000;
    const after = await restingMib(pid);
    return [
      measure(`${name}.rss_mib`, 'MiB', [after], `${Math.round(before)} MiB before ${count} sessions`),
      measure(`${name}.kib_a_session`, 'KiB', [((after - before) * 1_024) / count]),
      measure(`${name}.logins`, 'logins/s', [count / seconds]),
    ];
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

/**
 * Maximum number of open files of process `pid`. Node raises the soft limit to the hard one when it starts. Linux only.
 */
function openFiles(pid: number): number {
  return Number(/^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1]);
}

/** Resident memory after garbage collection: a start, or many logins, leave more than the sessions themselves need. */
async function restingMib(pid: number): Promise<number> {
  let before = residentMib(pid);
  for (let i = 0; i < 10; i++) {
    await setTimeout(REST_MS);
    const now = residentMib(pid);
    if (Math.abs(now - before) < before / 50) return now;
    before = now;
  }
  return before;
}

/** Opens a session and waits for ReadyForQuery. */
function login(port: number, token: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    let last = Buffer.alloc(0);
    socket.once('error', reject);
    socket.once('close', () => reject(new Error(`the gateway hung up: ${last.toString('latin1')}`)));
    socket.on('data', (chunk: Buffer) => {
      last = Buffer.concat([last, chunk]).subarray(-READY.length);
      if (!last.equals(READY)) return;
      socket.removeAllListeners();
      socket.on('error', () => undefined);
      resolve(socket);
    });
    socket.write(Buffer.concat([startup({ user: SUBJECT, database: 'osl' }), password(token)]));
  });
}

/** ReadyForQuery message outside a transaction. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
