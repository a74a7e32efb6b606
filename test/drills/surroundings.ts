import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';

/*
 * Surroundings of a cluster that a drill can take away: the network to the control database, a gateway's disk, its
 * clock; and a monitor that reads metrics all the time.
 */

const FULL_GATEWAY = 3;
const WRONG_CLOCK_GATEWAY = 2;
/** Enough for the log of ten minutes, about 50 MB on an idle machine; small enough to be filled at once. */
const DISK = '256m';
const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
const SCRAPE_MS = 1_000;

export interface Surroundings {
  /** Lines of the file `env`, which sets variables of the gateways. */
  readonly env: readonly string[];
  /** The control database answers no gateway for `ms`, and nobody is told. */
  partition(ms: number): Promise<void>;
  /** The disk of one gateway is full for `ms`; a text if that is impossible here, with the reason. */
  readonly fillDisk: ((ms: number) => Promise<void>) | string;
  /** The clock of one gateway is an hour ahead for `ms`; a text if that is impossible here, with the reason. */
  readonly stepClock: ((ms: number) => Promise<void>) | string;
  close(): Promise<void>;
}

/** @param ports of the primary and the standby of the control database */
export async function surroundingsOf(dir: string, ports: readonly number[]): Promise<Surroundings> {
  const proxies = await Promise.all(ports.map((port) => startFaultProxy(port)));
  const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`).join();
  const disk = diskOf(join(dir, `gateway-${FULL_GATEWAY}`));
  const clock = clockOf(dir);
  return {
    env: [`OSL_CONTROL_URL='postgres://osl_gateway@${hosts}/control'`, ...clock.env],
    partition: (ms) => partition(proxies, ms),
    fillDisk: disk.fill,
    stepClock: clock.step,
    close: async () => {
      await Promise.all(proxies.map((proxy) => proxy.close()));
      disk.unmount();
    },
  };
}

async function partition(proxies: readonly FaultProxy[], ms: number): Promise<void> {
  for (const proxy of proxies) proxy.silence();
  await sleep(ms);
  for (const proxy of proxies) proxy.restore();
}

/** A small disk for one data directory. Only root may mount one. */
function diskOf(dataDir: string) {
  if (process.getuid?.() !== 0) return { fill: 'only root may mount a disk', unmount: () => undefined };
  mkdirSync(dataDir, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK},mode=700`, 'tmpfs', dataDir]);
  const filler = join(dataDir, 'filler');
  const fill = async (ms: number): Promise<void> => {
    // Ends with status 1, since there is no space left.
    execFileSync('sh', ['-c', `dd if=/dev/zero of='${filler}' bs=64k 2>/dev/null || true`]);
    await sleep(ms);
    rmSync(filler);
  };
  return { fill, unmount: () => execFileSync('umount', ['-l', dataDir]) };
}

/** A clock of its own for one gateway, by Debian's libfaketime, which reads the offset from a file each second. */
function clockOf(dir: string) {
  if (!existsSync(FAKETIME)) return { env: [], step: 'libfaketime is not installed' };
  const offset = join(dir, 'clock');
  writeFileSync(offset, '+0\n');
  const variables = [
    `LD_PRELOAD=${FAKETIME}`,
    `FAKETIME_TIMESTAMP_FILE=${offset}`,
    'FAKETIME_CACHE_DURATION=1',
    'FAKETIME_DONT_FAKE_MONOTONIC=1',
  ];
  const step = async (ms: number): Promise<void> => {
    writeFileSync(offset, '+3600\n');
    await sleep(ms);
    writeFileSync(offset, '+0\n');
  };
  // cluster.sh reads the file once for each gateway, whose number is the first argument.
  return { env: [`if [ "$1" = ${WRONG_CLOCK_GATEWAY} ]; then ${variables.join('; ')}; fi`], step };
}

export interface Scraping {
  /** Number of times that all metrics of a gateway were read, and that a gateway did not answer. */
  stop(): Promise<{ readonly read: number; readonly failed: number }>;
}

/** Reads the metrics of gateways every second, as Prometheus does. @param ports of HTTP */
export function scraping(ports: readonly number[]): Scraping {
  let over = false;
  let read = 0;
  let failed = 0;
  const running = (async () => {
    while (!over) {
      const answers = await Promise.all(ports.map(metricsOf));
      read += answers.filter((answer) => answer).length;
      failed += answers.filter((answer) => !answer).length;
      await sleep(SCRAPE_MS);
    }
  })();
  return {
    stop: async () => {
      over = true;
      await running;
      return { read, failed };
    },
  };
}

/** True if the gateway sends its metrics. */
function metricsOf(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(
      { host: '127.0.0.1', port, path: '/metrics', agent: false, timeout: 1_000 },
      (reply) => {
        let text = '';
        reply.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        reply.once('end', () => resolve(reply.statusCode === 200 && text.includes('osl_pool_open')));
        reply.once('error', () => resolve(false));
      },
    );
    asked.once('timeout', () => asked.destroy());
    asked.once('error', () => resolve(false));
    asked.end();
  });
}
