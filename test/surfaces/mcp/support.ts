import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { TokenClaims } from '../../support/service.js';
import type { RestFixture } from '../rest/fixture.js';

/** The revisions that clients speak today: `legacy` opens with `initialize`, `auto` finds the current one. */
export const REVISIONS = ['legacy', 'auto'] as const;
export type Revision = (typeof REVISIONS)[number];

export interface Called {
  readonly isError: boolean;
  readonly content: Readonly<Record<string, unknown>>;
  /** The text beside the structured content, parsed. */
  readonly text: unknown;
}

export function newClient(revision: Revision): Client {
  return new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: revision } });
}

/** A client over HTTP, as `subject`. */
export async function connected(
  rest: Pick<RestFixture, 'port' | 'test'>,
  subject: string,
  revision: Revision,
  claims: TokenClaims = {},
): Promise<Client> {
  const client = newClient(revision);
  await client.connect(
    transportTo(rest, { authorization: `Bearer ${await rest.test.token(subject, claims)}` }),
  );
  return client;
}

export function transportTo(
  rest: Pick<RestFixture, 'port'>,
  headers: Record<string, string>,
): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${rest.port}/mcp`), {
    requestInit: { headers },
  });
}

export async function call(
  client: Client,
  name: string,
  args: Readonly<Record<string, unknown>> = {},
): Promise<Called> {
  const result = await client.callTool({ name, arguments: { ...args } });
  const [first] = result.content;
  return {
    isError: result.isError === true,
    content: { ...(result.structuredContent as object | undefined) }, // an object by every schema here
    text: first?.type === 'text' ? JSON.parse(first.text) : null,
  };
}
