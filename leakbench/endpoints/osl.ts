import {
  type Caller,
  type EndpointKind,
  NotExpressible,
  type Session,
  type WorldName,
  type Worlds,
} from '../endpoint.js';
import { type Gateway, Gateways, ORDER, POLICY } from './osl-gateway.js';
import { mcpSession, restSession } from './osl-http.js';
import { openPostgres } from './postgres.js';

type Surface = 'wire' | 'rest' | 'mcp';

interface Model {
  readonly policy?: string;
  /** Changes the manifest. */
  readonly manifest?: (text: string) => string;
}

/** OSL Gateway: over the Postgres protocol, REST and MCP. `LEAKBENCH_OSL` is the command to start it: `osl` by default. */
export function osl(
  name: string,
  what: string,
  surface: Surface,
  { policy = POLICY + ORDER, manifest = (text: string) => text }: Model = {},
): EndpointKind {
  return {
    name,
    data: 'everything',
    ...(policy === POLICY + ORDER && { shares: 'OSL Gateway' }),
    start: async (worlds) => {
      const { gateways, close } = await shared(worlds, () => Gateways.start(worlds, policy, manifest));
      return {
        what,
        others: ['peer', 'admin'],
        ...(surface === 'mcp' && { languages: ['mcp'] as const }),
        open: async (world: WorldName, login, caller: Caller = 'clerk'): Promise<Session> => {
          const gateway = gateways.of(world);
          const token = await gateways.token(world, caller);
          if (surface === 'wire') return openPostgres(wireUrl(gateway, token, caller), login);
          if (login !== undefined) throw new NotExpressible('a request has no login but its token');
          return surface === 'rest' ? restSession(gateway, token) : mcpSession(gateway, token);
        },
        close,
      };
    },
  };
}

interface Shared {
  readonly gateways: Promise<Gateways>;
  users: number;
}

const SHARED = new WeakMap<Worlds, Shared>();

/** The gateways of these worlds, which endpoints share; the last of them that closes ends them. */
async function shared(
  worlds: Worlds,
  start: () => Promise<Gateways>,
): Promise<{ readonly gateways: Gateways; close(): Promise<void> }> {
  const known = SHARED.get(worlds) ?? { gateways: start(), users: 0 };
  SHARED.set(worlds, known);
  known.users++;
  const gateways = await known.gateways;
  const close = async (): Promise<void> => {
    known.users--;
    if (known.users > 0) return;
    SHARED.delete(worlds);
    await gateways.close();
  };
  return { gateways, close };
}

function wireUrl({ pgPort }: Gateway, token: string, caller: Caller): string {
  return `postgres://user%3A${caller}:${token}@127.0.0.1:${pgPort}/osl`;
}

export const OSL_WIRE = osl('OSL Gateway, wire', 'OSL Gateway over the Postgres protocol', 'wire');
export const OSL_UNORDERED = osl(
  'OSL Gateway, wire, groups in any order',
  'OSL Gateway over the Postgres protocol, without `order` in its policy',
  'wire',
  { policy: POLICY },
);
export const OSL_REST = osl('OSL Gateway, REST', 'OSL Gateway over REST', 'rest');
export const OSL_MCP = osl('OSL Gateway, MCP', 'OSL Gateway over MCP (streamable HTTP)', 'mcp');
