import { createServer } from 'node:net';
import {
  Client,
  type OAuthClientInformation,
  type OAuthClientMetadata,
  type OAuthClientProvider,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import t from 'tap';
import { Browser } from '../../identity/browser.js';
import { OTHER_RESOURCE } from '../../identity/provider.js';
import { startShopIdentity } from '../../identity/shop-identity.js';
import { call } from '../mcp/support.js';
import { startRest } from '../rest/fixture.js';

/** The SDK's own OAuth against `/mcp`: it learns from 401 where to ask, registers, logs in, and is bound to this resource. */

/** A person with an MCP client: what it keeps, and the browser that it opens. */
class Person implements OAuthClientProvider {
  readonly redirectUrl = 'http://127.0.0.1:9/callback';
  readonly clientMetadata: OAuthClientMetadata = {
    client_name: 'a client of the tests',
    redirect_uris: [this.redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
    scope: 'openid shop',
  };
  answer = new URLSearchParams();
  asked: URL | null = null;
  readonly #login: string;
  #client: OAuthClientInformation | undefined;
  #tokens: OAuthTokens | undefined;
  #verifier = '';

  constructor(login: string) {
    this.#login = login;
  }

  clientInformation(): OAuthClientInformation | undefined {
    return this.#client;
  }

  saveClientInformation(client: OAuthClientInformation): void {
    this.#client = client;
  }

  tokens(): OAuthTokens | undefined {
    return this.#tokens;
  }

  saveTokens(tokens: OAuthTokens): void {
    this.#tokens = tokens;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    this.asked = url;
    const back = new URL(await new Browser(this.#login).visit(url.href));
    this.answer = back.searchParams;
  }
}

/** The resource is the address under which clients reach it, so the port is known before the provider. */
const port = await new Promise<number>((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const address = server.address();
    server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
  });
});
const url = new URL(`http://127.0.0.1:${port}/mcp`);
const identity = await startShopIdentity([url.href]);
const rest = await startRest({
  port,
  policy: identity.policy.replace('  - name: signed', '    direct: true\n  - name: signed'),
  settings: { issuersFile: identity.issuersFile },
});
t.teardown(async () => {
  await rest.close();
  await identity.close();
});

async function connected(person: Person): Promise<Client> {
  const first = new StreamableHTTPClientTransport(url, { authProvider: person });
  const client = new Client({ name: 'test', version: '1' });
  try {
    await client.connect(first);
    throw new Error('it was let in without a token');
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  await first.finishAuth(person.answer);
  const again = new Client({ name: 'test', version: '1' });
  await again.connect(new StreamableHTTPClientTransport(url, { authProvider: person }));
  return again;
}

const osql = 'select name from osl.entities.customer order by name';

t.test('a client that knows the address alone logs in, and sees what its person may', async (t) => {
  const erin = new Person('erin');
  const client = await connected(erin);
  t.equal(erin.asked?.searchParams.get('resource'), url.href, 'bound to this resource');
  for (let i = 0; i < 3; i++)
    t.match((await call(client, 'semantic_query', { osql })).content, {
      rows: [{ name: 'Ada' }, { name: 'Bo' }],
    });
  await client.close();
  const uma = await connected(new Person('uma'));
  t.match((await call(uma, 'semantic_query', { osql })).content, { rows: [{ name: 'Cy' }, { name: 'Di' }] });
  await uma.close();
});

t.test('the metadata names the issuer, and with whom people log in', async (t) => {
  const { status, json } = await rest.send('/.well-known/oauth-protected-resource/mcp');
  t.equal(status, 200);
  t.match(json(), {
    resource: url.href,
    authorization_servers: [identity.provider.issuer, 'https://signed.example'],
    osl_login: { issuer: identity.provider.issuer, client_id: 'shop-cli' },
  });
});

t.test('a token for another resource of the same issuer is refused', async (t) => {
  const other = await identity.provider.agentToken(OTHER_RESOURCE);
  const good = await identity.provider.agentToken(url.href);
  const ask = async (token: string): Promise<number> => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    return (await rest.send('/mcp', { method: 'POST', headers, body })).status;
  };
  t.equal(await ask(good), 200);
  t.equal(await ask(`${good.slice(0, -4)}AAAA`), 401);
  t.equal(await ask(other), 401, 'bound to its audience');
});
