import type { Charge, QuotaCount, SetAddition, SetResult } from '../../../policy/index.js';
import { StartProblem } from '../../base/start-problem.js';
import {
  type CountStore,
  LEASE_DIVISOR,
  type LeasedTokens,
  PEER_TIMEOUT_MS,
  SECOND_MS,
} from './shared-counts.js';

const REDIS_PACKAGE = '@redis/client';

/** The part of the Redis client's API used here. */
interface RedisClient {
  on(event: 'error', handler: (error: unknown) => void): unknown;
  connect(): Promise<unknown>;
  readonly isReady: boolean;
  eval(script: string, input: { readonly keys: string[]; readonly arguments: string[] }): Promise<unknown>;
  destroy(): void;
}

interface RedisPackage {
  createClient(options: {
    readonly url: string;
    readonly disableOfflineQueue: boolean;
    readonly socket: {
      readonly connectTimeout: number;
      readonly reconnectStrategy: (tries: number) => number;
      readonly socketTimeout: number;
    };
  }): RedisClient;
}

const CONNECT_MS = 2_000;
/** Silence in ms after which a connection is dropped; longer than the heartbeat interval. */
const SOCKET_TIMEOUT_MS = 5_000;
const MAX_RECONNECT_DELAY_MS = 1_000;
const PREFIX = 'osl:limit:';

const LEASE = `
local left = tonumber(ARGV[1]) - tonumber(redis.call('GET', KEYS[1]) or '0')
local granted = left > 0 and math.ceil(left / ${LEASE_DIVISOR}) or 0
redis.call('INCRBY', KEYS[1], granted)
local ms = redis.call('PTTL', KEYS[1])
if ms < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) ms = tonumber(ARGV[2]) end
return {granted, ms}`;

const ADD = `
local found = {}
for i, key in ipairs(KEYS) do
  local window, amount = ARGV[2 * i - 1], ARGV[2 * i]
  if amount ~= '0' then
    redis.call('INCRBY', key, amount)
    if redis.call('PTTL', key) < 0 then redis.call('PEXPIRE', key, window) end
  end
  local ms = redis.call('PTTL', key)
  found[2 * i - 1] = redis.call('GET', key) or '0'
  found[2 * i] = ms < 0 and window or tostring(ms)
end
return found`;

/** Arguments for each set: its window in ms, its maximum size, the number of members to add, and the members. */
const ADD_ENTITIES = `
local at, refused, fresh = 1, 0, {}
for i, key in ipairs(KEYS) do
  local new = {}
  for j = at + 3, at + 2 + ARGV[at + 2] do
    if redis.call('SISMEMBER', key, ARGV[j]) == 0 then new[#new + 1] = ARGV[j] end
  end
  if refused == 0 and #new > 0 and redis.call('SCARD', key) + #new > tonumber(ARGV[at + 1]) then refused = i end
  fresh[i] = {ARGV[at], new}
  at = at + 3 + ARGV[at + 2]
end
local found = {refused}
for i, key in ipairs(KEYS) do
  local window, new = fresh[i][1], fresh[i][2]
  if refused == 0 then
    for _, member in ipairs(new) do redis.call('SADD', key, member) end
    if #new > 0 and redis.call('PTTL', key) < 0 then redis.call('PEXPIRE', key, window) end
  end
  local ms = redis.call('PTTL', key)
  found[2 * i] = redis.call('SCARD', key)
  found[2 * i + 1] = ms < 0 and tonumber(window) or ms
end
return found`;

const HEARTBEAT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], 10 * ARGV[2])
return redis.call('ZCARD', KEYS[1])`;

/** Keeps counts in Redis keys that expire with their windows; reconnects indefinitely. @throws StartProblem */
export async function openRedisCounts(url: string): Promise<CountStore> {
  const { createClient } = await loadRedis();
  const client = createClient({
    url,
    disableOfflineQueue: true,
    socket: {
      connectTimeout: CONNECT_MS,
      reconnectStrategy: (tries) => Math.min(MAX_RECONNECT_DELAY_MS, 50 * 2 ** tries),
      socketTimeout: SOCKET_TIMEOUT_MS,
    },
  });
  let lastError: unknown = null;
  const firstError = new Promise<void>((resolve) => {
    client.on('error', (error) => {
      lastError = error;
      resolve();
    });
  });
  const connected = client.connect().catch((error: unknown) => {
    lastError = error;
  });
  await Promise.race([connected, firstError]);
  const run = async (script: string, keys: readonly string[], values: readonly (string | number)[]) => {
    if (!client.isReady) throw lastError ?? new Error('it is not connected yet');
    const reply = await client.eval(script, {
      keys: keys.map((key) => `${PREFIX}${key}`),
      arguments: values.map(String),
    });
    return Array.isArray(reply) ? reply.map(Number) : [Number(reply)];
  };
  return Object.freeze({
    lease: async (key: string, limit: number): Promise<LeasedTokens> => {
      const [tokens = 0, endsInMs = 0] = await run(LEASE, [key], [limit, SECOND_MS]);
      return { tokens, endsInMs };
    },
    add: async (charges: readonly Charge[]): Promise<readonly QuotaCount[]> => {
      const keys = charges.map(({ key }) => key);
      const reply = await run(
        ADD,
        keys,
        charges.flatMap(({ windowMs, amount }) => [windowMs, amount]),
      );
      return charges.map((_, i) => ({ used: reply[2 * i] ?? 0, endsInMs: reply[2 * i + 1] ?? 0 }));
    },
    addEntities: async (additions: readonly SetAddition[]): Promise<SetResult> => {
      const [refused = 0, ...reply] = await run(
        ADD_ENTITIES,
        additions.map(({ key }) => key),
        additions.flatMap(({ windowMs, maxSize, members }) => [
          windowMs,
          maxSize,
          members.length,
          ...members,
        ]),
      );
      const counts = additions.map((_, i) => ({ used: reply[2 * i] ?? 0, endsInMs: reply[2 * i + 1] ?? 0 }));
      return { refused: refused === 0 ? null : refused - 1, counts };
    },
    heartbeat: async (id: string) => (await run(HEARTBEAT, ['peers'], [id, PEER_TIMEOUT_MS]))[0] ?? 1,
    close: async () => client.destroy(),
  });
}

/** Loads the Redis client, an optional dependency. @throws StartProblem */
async function loadRedis(): Promise<RedisPackage> {
  try {
    const client: RedisPackage = await import(REDIS_PACKAGE);
    return client;
  } catch {
    throw new StartProblem(
      `OSL_LIMITS_URL names Redis, which needs the package ${REDIS_PACKAGE}: npm install ${REDIS_PACKAGE}`,
    );
  }
}
