import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the ports that the system gives to outgoing connections. */
const PORTS = { from: 10_000, count: 20_000 };

/** Ports on which nobody listens now. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const free = new Set<number>();
  while (free.size < count) {
    const port = PORTS.from + randomInt(PORTS.count);
    if (await isFree(port)) free.add(port);
  }
  return [...free];
}

/** The first of `count` ports in a row on which nobody listens now. */
export async function freePortRange(count: number): Promise<number> {
  for (;;) {
    const first = PORTS.from + randomInt(PORTS.count - count);
    const free = await Promise.all(Array.from({ length: count }, (_, i) => isFree(first + i)));
    if (free.every((one) => one)) return first;
  }
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
