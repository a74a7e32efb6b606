import type { Answer, Session } from '../endpoint.js';
import { partsOf } from './http.js';
import type { Gateway } from './osl-gateway.js';

type Cells = Readonly<Record<string, unknown>>;

interface Reply {
  readonly columns?: readonly { readonly name: string; readonly type: string }[];
  readonly rows?: readonly Cells[];
  readonly code?: string;
  readonly detail?: string;
  readonly title?: string;
}

/** Questions over REST. */
export function restSession(gateway: Gateway, token: string): Session {
  return {
    ask: async (text, values) => {
      const body = { osql: text, ...(values !== undefined && { parameters: values }) };
      const { parts, json } = await post(gateway, '/osl/query', token, body);
      return answerOf(json as Reply, parts);
    },
    close: async () => undefined,
  };
}

/** Questions over MCP. A statement that is JSON is a call of a tool by name; SQL goes to `semantic_query`. */
export function mcpSession(gateway: Gateway, token: string): Session {
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
    readonly structuredContent?: Reply & { readonly problem?: Reply };
  };
}

function mcpAnswer({ error, result }: McpReply, parts: readonly string[]): Answer {
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
  { httpPort }: Gateway,
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

/** The answer in the form of others, with all that was received besides. */
function answerOf({ columns, rows = [], code, title, detail }: Reply, parts: readonly string[]): Answer {
  const names = columns?.map((c) => c.name) ?? Object.keys(rows[0] ?? {});
  return {
    columns: columns?.map((c) => `${c.name} ${c.type}`) ?? names,
    rows: rows.map((row) => names.map((name) => JSON.stringify(row[name] ?? null))),
    tag: null,
    notices: parts,
    error: code === undefined ? null : `${code} | ${title ?? ''} | ${detail ?? ''}`,
  };
}
