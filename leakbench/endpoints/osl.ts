import {
  type BenchCaller,
  type EndpointAnswer,
  type EndpointKind,
  type EndpointSession,
  NotExpressible,
  type WorldName,
  type Worlds,
} from '../endpoint.js';
import { partsOf } from './http.js';
import { Gateways, ORDER, POLICY, type StartedGateway } from './osl-gateway.js';
import { openPostgres } from './postgres.js';

type OslSurface = 'wire' | 'rest' | 'mcp';

interface OslChanges {
  readonly policy?: string;
  /** Changes the manifest. */
  readonly manifest?: (text: string) => string;
}

/** OSL Gateway: over the Postgres protocol, REST and MCP. `LEAKBENCH_OSL` is the command to start it: `osl` by default. */
export function osl(
  name: string,
  what: string,
  surface: OslSurface,
  { policy = POLICY + ORDER, manifest = (text: string) => text }: OslChanges = {},
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
        open: async (world: WorldName, login, caller: BenchCaller = 'clerk'): Promise<EndpointSession> => {
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

interface SharedGateways {
  readonly gateways: Promise<Gateways>;
  users: number;
}

const SHARED = new WeakMap<Worlds, SharedGateways>();

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

function wireUrl({ pgPort }: StartedGateway, token: string, caller: BenchCaller): string {
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

type Cells = Readonly<Record<string, unknown>>;

interface OslReply {
  readonly columns?: readonly { readonly name: string; readonly type: string }[];
  readonly rows?: readonly Cells[];
  readonly code?: string;
  readonly detail?: string;
  readonly title?: string;
}

/** Questions over REST. */
function restSession(gateway: StartedGateway, token: string): EndpointSession {
  return {
    ask: async (text, values) => {
      const body = { osql: text, ...(values !== undefined && { parameters: values }) };
      const { parts, json } = await post(gateway, '/osl/query', token, body);
      return answerOf(json as OslReply, parts);
    },
    close: async () => undefined,
  };
}

/** Questions over MCP. A statement that is JSON is a call of a tool by name; SQL goes to `semantic_query`. */
function mcpSession(gateway: StartedGateway, token: string): EndpointSession {
  return {
    ask: async (text, values) => {
      const params = text.startsWith('{')
        ? (JSON.parse(text) as object)
        : {
            name: 'semantic_query',
            arguments: { osql: text, ...(values !== undefined && { parameters: values }) },
          };
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      const { parts, json } = await post(gateway, '/mcp', token, message);
      return mcpAnswer(json as McpReply, parts);
    },
    close: async () => undefined,
  };
}

interface McpReply {
  readonly error?: unknown;
  readonly result?: {
    readonly isError?: boolean;
    readonly structuredContent?: OslReply & { readonly problem?: OslReply };
  };
}

function mcpAnswer({ error, result }: McpReply, parts: readonly string[]): EndpointAnswer {
  if (error !== undefined) return { ...answerOf({}, parts), error: JSON.stringify(error) };
  const { problem, ...content } = result?.structuredContent ?? {};
  return answerOf(result?.isError === true ? (problem ?? { code: 'unknown' }) : content, parts);
}

/**
 * Version of the manifest, a hash of the whole file. It tells that something changed, hidden or not, but not what; left
 * out here, as otherwise each answer would be the same leak. `docs/leakbench.md` names it.
 */
const MANIFEST_VERSION = /(\\*"manifest\\*": ?\\*")[0-9a-f]{32}/g;

async function post(
  { httpPort }: StartedGateway,
  path: string,
  token: string,
  body: object,
): Promise<{ readonly json: unknown; readonly parts: readonly string[] }> {
  const response = await fetch(`http://127.0.0.1:${httpPort}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': '2025-11-25',
    },
    body: JSON.stringify(body),
  });
  const text = (await response.text()).replace(MANIFEST_VERSION, '$1');
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
  return { json: JSON.parse(data) as unknown, parts: partsOf(response, text) };
}

/** The answer in the common form; status, headers and body are its notices. */
function answerOf(
  { columns, rows = [], code, title, detail }: OslReply,
  parts: readonly string[],
): EndpointAnswer {
  const names = columns?.map((c) => c.name) ?? Object.keys(rows[0] ?? {});
  return {
    columns: columns?.map((c) => `${c.name} ${c.type}`) ?? names,
    rows: rows.map((row) => names.map((name) => JSON.stringify(row[name] ?? null))),
    tag: null,
    notices: parts,
    error: code === undefined ? null : `${code} | ${title ?? ''} | ${detail ?? ''}`,
  };
}
