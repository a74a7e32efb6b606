import { WORLDS, type WorldName } from '../endpoint.js';
import { freePort, type Running } from './process.js';

export interface WorldServers {
  readonly ports: ReadonlyMap<WorldName, number>;
  close(): Promise<void>;
}

/**
 * Starts a server for each world, at a port of its own. If one fails, those that run are stopped.
 *
 * @param start calls `onStart` with the process as soon as it runs
 */
export async function startForWorlds(
  start: (world: WorldName, port: number, onStart: (server: Running) => void) => Promise<void>,
): Promise<WorldServers> {
  const ports = new Map<WorldName, number>();
  const running: Running[] = [];
  const close = async (): Promise<void> => {
    for (const each of running) await each.stop();
  };
  try {
    for (const world of WORLDS) {
      const port = await freePort();
      ports.set(world, port);
      await start(world, port, (server) => void running.push(server));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { ports, close };
}
