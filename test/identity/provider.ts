import { generateKeyPairSync } from 'node:crypto';
import type { Server } from 'node:http';
import { createServer } from 'node:net';
import Provider from 'oidc-provider';

/** Whom the provider knows, by what they type into its form. */
const PEOPLE: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  erin: { groups: ['shop-regional'], region: 'eu', email: 'erin@example.com', email_verified: true },
  uma: { groups: ['shop-regional'], region: 'us', email: 'uma@example.com', email_verified: true },
  dora: { groups: ['shop-analysts', 'shop-careful'], email: 'dora@example.com', email_verified: true },
  rita: { groups: ['shop-analysts', 'shop-admins'], email: 'rita@example.com', email_verified: true },
  mallory: { groups: ['shop-analysts'], email: 'root@example.com', email_verified: false },
  nobody: { groups: [], email: 'nobody@example.com', email_verified: true },
};

export const RESOURCE = 'https://shop.example/mcp';
/** Another service's, of the same provider. */
export const OTHER_RESOURCE = 'https://other.example/mcp';
export const CLIENT = 'shop-cli';
/** An agent with an account of its own. */
export const AGENT = { id: 'bot', secret: 'the secret of the bot, which is long' };

/** A real OIDC provider on this machine. */
export interface TestProvider {
  readonly issuer: string;
  /** Signs with a new key from now on; the one of before stays in the set, or goes. */
  rotate(before: 'stays' | 'goes'): Promise<void>;
  stop(): Promise<void>;
  /** After `stop`, at the same place, with the same keys. */
  start(): Promise<void>;
  /** An access token of the agent's own, for a resource. */
  agentToken(resource?: string): Promise<string>;
}

export interface ProviderOptions {
  /** Besides `RESOURCE`. */
  readonly resources?: readonly string[];
  /** Lifetime of an ID token, in seconds. */
  readonly idTokenSeconds?: number;
}

export async function startProvider(options: ProviderOptions = {}): Promise<TestProvider> {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  const keys = [signingKey(1)];
  let server: Server | null = null;
  const stop = async (): Promise<void> => {
    const running = server;
    server = null;
    if (running === null) return;
    running.closeAllConnections();
    await new Promise((resolve) => running.close(resolve));
  };
  const start = async (): Promise<void> => {
    const provider = quietly(() => new Provider(issuer, configuration(keys, options)));
    await new Promise<void>((resolve) => {
      server = provider.listen(port, '127.0.0.1', resolve);
    });
  };
  await start();
  return {
    issuer,
    start,
    stop,
    rotate: async (before) => {
      await stop();
      // The first key that fits signs.
      keys.unshift(signingKey(keys.length + 1));
      if (before === 'goes') keys.length = 1;
      await start();
    },
    agentToken: async (resource = RESOURCE) => {
      const form = new URLSearchParams({ grant_type: 'client_credentials', scope: 'shop', resource });
      const authorization = `Basic ${Buffer.from(`${AGENT.id}:${encodeURIComponent(AGENT.secret)}`).toString('base64')}`;
      const reply = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: { authorization },
        body: form,
      });
      const body: { access_token?: string } = JSON.parse(await reply.text());
      if (body.access_token === undefined) throw new Error(`no token: ${JSON.stringify(body)}`);
      return body.access_token;
    },
  };
}

function signingKey(n: number): Readonly<Record<string, unknown>> {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: `key-${n}`, use: 'sig', alg: 'RS256' };
}

function configuration(
  keys: readonly object[],
  { resources: more = [], idTokenSeconds = 3_600 }: ProviderOptions,
): object {
  const resources = [RESOURCE, OTHER_RESOURCE, ...more];
  const resourceServer = (_ctx: unknown, resource: string): object => {
    if (!resources.includes(resource)) throw new Error(`no such resource: ${resource}`);
    return {
      scope: 'shop',
      audience: resource,
      accessTokenFormat: 'jwt',
      accessTokenTTL: 3_600,
      jwt: { sign: { alg: 'RS256' } },
    };
  };
  return {
    jwks: { keys: [...keys] },
    clients: [
      {
        client_id: CLIENT,
        token_endpoint_auth_method: 'none',
        application_type: 'native',
        grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
        // Of `osl login`, and of the console, each on a port of its own.
        redirect_uris: ['http://127.0.0.1/callback', 'http://127.0.0.1/console/'],
        response_types: ['code'],
      },
      {
        client_id: AGENT.id,
        client_secret: AGENT.secret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    pkce: { required: () => true },
    // Pages of other origins may ask for tokens, as a provider lets those of its clients.
    clientBasedCORS: () => true,
    scopes: ['openid', 'offline_access', 'shop'],
    claims: { openid: ['sub', 'groups', 'region', 'email', 'email_verified'] },
    conformIdTokenClaims: false,
    findAccount: async (_ctx: unknown, id: string) => {
      const person = PEOPLE[id];
      return person && { accountId: id, claims: async () => ({ sub: id, ...person }) };
    },
    extraTokenClaims: async (_ctx: unknown, token: { accountId?: string }) =>
      token.accountId === undefined ? { groups: ['shop-agents'] } : PEOPLE[token.accountId],
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    cookies: { keys: ['a key of the tests'] },
    ttl: { AccessToken: 3_600, ClientCredentials: 3_600, IdToken: idTokenSeconds, RefreshToken: 86_400 },
    features: {
      devInteractions: { enabled: true },
      deviceFlow: { enabled: true },
      clientCredentials: { enabled: true },
      registration: { enabled: true, initialAccessToken: false },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: async (_ctx: unknown, _client: unknown, oneOf?: readonly string[]) =>
          oneOf?.[0] ?? undefined,
        useGrantedResource: async () => true,
        getResourceServerInfo: async (ctx: unknown, resource: string) => resourceServer(ctx, resource),
      },
    },
  };
}

/** It warns on the terminal of all that is fit for tests alone. */
function quietly<T>(work: () => T): T {
  const { warn, info } = console;
  console.warn = () => undefined;
  console.info = () => undefined;
  try {
    return work();
  } finally {
    Object.assign(console, { warn, info });
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() =>
        typeof address === 'object' && address !== null
          ? resolve(address.port)
          : reject(new Error('no port')),
      );
    });
  });
}
