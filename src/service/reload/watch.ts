import type { ServiceLog } from '../../base/log.js';
import type { EngineStatus } from '../../engine/index.js';

const EVERY_MS = 5_000;

/**
 * Asks each engine from time to time, and says once when one stops answering, with the cause, and once when it answers
 * again: whatever the reason, refused connections, a cut network or a stall. Returns what ends it.
 */
export function watchEngines(
  engines: ReadonlyMap<string, EngineStatus>,
  log: ServiceLog,
  everyMs: number = EVERY_MS,
): () => void {
  const ends = [...engines].flatMap(([name, engine]) => [
    watch(name, engine, log, everyMs),
    watchNodes(name, engine, log, everyMs),
  ]);
  return () => {
    for (const end of ends) end();
  };
}

function watch(connector: string, engine: EngineStatus, log: ServiceLog, everyMs: number): () => void {
  let since: number | null = null;
  let asking = false;
  let over = false;
  const look = async (): Promise<void> => {
    if (asking || !engine.reached) return; // one that was never reached is told by whoever tries
    asking = true;
    const cause = await engine.ailment();
    asking = false;
    // A busy pool says nothing of the upstream, well or ill.
    if (over || cause === 'busy') return;
    if (cause !== null && since === null) {
      since = performance.now();
      log.error('the database does not answer', { connector, cause });
    } else if (cause === null && since !== null) {
      log.warn('the database answers again', {
        connector,
        after_seconds: Math.round((performance.now() - since) / 1_000),
      });
      since = null;
    }
  };
  const timer = setInterval(() => void look(), everyMs).unref();
  return () => {
    over = true;
    clearInterval(timer);
  };
}

/** As `watch`, of the servers behind a database. */
function watchNodes(
  connector: string,
  { nodes }: EngineStatus,
  log: ServiceLog,
  everyMs: number,
): () => void {
  let asking = false;
  let over = false;
  const look = async (): Promise<void> => {
    if (asking) return;
    asking = true;
    const changes = await nodes.look();
    asking = false;
    if (over) return;
    for (const { server, cause } of changes)
      if (cause === null) log.warn('a server behind the database answers again', { connector, server });
      else log.error('a server behind the database does not answer', { connector, server, cause });
  };
  const timer = setInterval(() => void look(), everyMs).unref();
  return () => {
    over = true;
    clearInterval(timer);
  };
}
