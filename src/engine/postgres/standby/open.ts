import type { AnswerMemory } from '../../answer-memory.js';
import { ConnectionStatus } from '../../connection-status.js';
import type { EngineEvents } from '../../engine.js';
import { type ConnectorLogins, CurrentLogins } from '../logins.js';
import { connectGoverned, queryServer, type ServerSizes } from '../query-server.js';
import type { OpenServer } from './standby.js';
import { StandbySet } from './standby-set.js';

interface StandbyConfig {
  /** Its name for operators. */
  readonly name: string;
  /** URL of the governed role; null if `logins` provides it. */
  readonly url: string | null;
  readonly logins?: () => Promise<ConnectorLogins>;
}

export interface StandbyConfigs {
  readonly servers: readonly StandbyConfig[];
  /** Maximum age of the data of an answer in ms. */
  readonly maxLagMs: number;
}

export interface OpenedStandbys {
  readonly set: StandbySet;
  /** Replaces the credentials for new sessions. @param urls URLs by name of the standby */
  renew(urls: ReadonlyMap<string, string | null>): void;
}

/** Maximum wait in ms for a session with a standby; then the primary is asked. */
const WAIT_MS = 500;

/** Opens the standbys of a database. One that cannot be reached is tried again and again. */
export function openStandbys(
  { servers, maxLagMs }: StandbyConfigs,
  {
    primary,
    sizes,
    memory,
    onStandby,
  }: {
    readonly primary: CurrentLogins;
    readonly sizes: ServerSizes;
    readonly memory: AnswerMemory;
    readonly onStandby: EngineEvents['onStandby'];
  },
): OpenedStandbys {
  const opened = servers.map(({ name, url, logins: source }) => {
    const logins = new CurrentLogins({ url, systemUrl: null, ...(source && { logins: source }) });
    // Whether it can be reached is told by the set, which asks it all the time.
    const reach = new ConnectionStatus(() => undefined);
    const open: OpenServer = (check) =>
      queryServer(
        (limits, mode) => logins.connect('url', (at) => connectGoverned(at, memory, limits, mode, check)),
        reach,
        { ...sizes, waitMs: WAIT_MS },
        name,
      );
    return { name, logins, open };
  });
  const set = new StandbySet({
    primary: (connect) => primary.connect('url', connect),
    standbys: opened.map(({ name, logins, open }) => ({
      name,
      open,
      login: (connect) => logins.connect('url', connect),
    })),
    maxLagMs,
    onChange: onStandby,
  });
  return {
    set,
    renew(urls) {
      for (const { name, logins } of opened) logins.renew({ url: urls.get(name) ?? null, systemUrl: null });
    },
  };
}
