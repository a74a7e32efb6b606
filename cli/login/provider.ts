import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as oauth from 'openid-client';
import { messageOf } from '../../src/base/thrown.js';
import { getPublic, postForm, unreachable } from '../client.js';
import { type Failure, failure } from '../exit.js';
import { subjectOf } from '../proxy/connection.js';
import { isLoopback } from '../server-file.js';
import { exclusively, readLogin, type StoredLogin, writeLogin } from './store.js';

export interface GivenTokens {
  readonly idToken: string;
  readonly refreshToken: string | null;
}

export type LoginPrompt = (url: string, code: string | null) => void;

const LOGIN_MS = 300_000;

/** Logs in on another device: the user opens an address there and confirms a code (RFC 8628). */
export async function byDevice(offer: LoginOffer, show: LoginPrompt): Promise<GivenTokens> {
  const provider = await discovered(offer);
  const begun = await oauth.initiateDeviceAuthorization(provider, { scope: offer.scopes.join(' ') });
  show(begun.verification_uri_complete ?? begun.verification_uri, begun.user_code);
  return given(await oauth.pollDeviceAuthorizationGrant(provider, begun));
}

/** Logs in with this machine's browser: authorization code with PKCE, redirected to a loopback port (RFC 8252). */
export async function byBrowser(offer: LoginOffer, show: LoginPrompt): Promise<GivenTokens> {
  const provider = await discovered(offer);
  const verifier = oauth.randomPKCECodeVerifier();
  const state = oauth.randomState();
  const nonce = oauth.randomNonce();
  const back = await listenOnce();
  const url = oauth.buildAuthorizationUrl(provider, {
    redirect_uri: back.redirectUri,
    scope: offer.scopes.join(' '),
    // Without this, a provider that already has consent may omit the refresh token.
    ...(offer.scopes.includes('offline_access') && { prompt: 'consent' }),
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    nonce,
  });
  try {
    show(url.href, null);
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce };
    return given(await oauth.authorizationCodeGrant(provider, await back.answer, checks));
  } finally {
    back.close();
  }
}

/** Returns new tokens for a login. Rejects if the provider has ended it. */
async function refreshed(offer: LoginOffer, refreshToken: string): Promise<GivenTokens> {
  const provider = await discovered(offer);
  const next = given(await oauth.refreshTokenGrant(provider, refreshToken));
  return { ...next, refreshToken: next.refreshToken ?? refreshToken };
}

export async function revoked(offer: LoginOffer, refreshToken: string): Promise<void> {
  const provider = await discovered(offer);
  if (provider.serverMetadata().revocation_endpoint !== undefined)
    await oauth.tokenRevocation(provider, refreshToken, { token_type_hint: 'refresh_token' });
}

function discovered({ issuer, clientId }: LoginOffer): Promise<oauth.Configuration> {
  const url = new URL(issuer);
  const local = url.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
  const execute = local ? [oauth.allowInsecureRequests] : [];
  return oauth.discovery(url, clientId, undefined, oauth.None(), { execute });
}

function given(tokens: oauth.TokenEndpointResponse): GivenTokens {
  if (tokens.id_token === undefined)
    throw new Error('the provider gave no ID token: ask for the scope openid');
  return { idToken: tokens.id_token, refreshToken: tokens.refresh_token ?? null };
}

interface RedirectListener {
  readonly redirectUri: string;
  /** The redirect URL with its parameters. Rejects on timeout. */
  readonly answer: Promise<URL>;
  close(): void;
}

const PAGE = '<!doctype html><title>OSL Gateway</title><p>Done. This window can be closed.</p>\n';

async function listenOnce(): Promise<RedirectListener> {
  let came: (url: URL) => void = () => undefined;
  let late: (error: Error) => void = () => undefined;
  const answer = new Promise<URL>((resolve, reject) => {
    came = resolve;
    late = reject;
  });
  answer.catch(() => undefined); // handled where it is awaited
  const server = createServer((request, reply) => {
    const asked = request.url ?? '/';
    const url = new URL(URL.canParse(asked, redirectUri) ? asked : '/', redirectUri);
    const isAnswer = request.method === 'GET' && url.pathname === '/callback';
    reply.writeHead(isAnswer ? 200 : 404, { 'content-type': 'text/html', connection: 'close' });
    reply.end(isAnswer ? PAGE : '');
    if (isAnswer) came(url);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo; // an object, because the server listens on a TCP port
  const redirectUri = `http://127.0.0.1:${port}/callback`;
  const timer = setTimeout(
    () => late(new Error('nobody came back from the browser within 5 minutes')),
    LOGIN_MS,
  );
  return {
    redirectUri,
    answer,
    close: () => {
      clearTimeout(timer);
      server.close();
      server.closeAllConnections();
    },
  };
}

export interface LoginOffer {
  readonly issuer: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
}

export async function offerOf(server: string): Promise<LoginOffer> {
  const { body } = await getPublic(server, '/.well-known/oauth-protected-resource/mcp');
  const offer = body['osl_login'];
  const said: Readonly<Record<string, unknown>> =
    typeof offer === 'object' && offer !== null ? { ...offer } : {};
  const { issuer, client_id: clientId, scopes } = said;
  if (typeof issuer === 'string' && typeof clientId === 'string' && Array.isArray(scopes))
    return { issuer, clientId, scopes: scopes.map(String) };
  throw failure(
    `${server} names nobody to log in with: its operator adds \`login\` to an issuer of OSL_ISSUERS, or you name one with --issuer and --client-id`,
  );
}

export interface LoginToken {
  readonly token: string;
  readonly subject: string;
}

const SOON_SECONDS = 60;
const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';

/**
 * Returns a new actor token for the login at `server`, renewing the login if necessary; null without a login.
 *
 * @throws Failure if the login has ended, its provider does not answer, or the server rejects it
 */
export async function loginToken(server: string, admin: boolean): Promise<LoginToken | null> {
  if (readLogin(server) === null) return null;
  const login = await exclusively(server, () => current(server));
  if (login === null) return null;
  const reply = await postForm(server, '/oauth/token', {
    grant_type: GRANT,
    subject_token: login.idToken,
    subject_token_type: ID_TOKEN,
    ...(admin && { scope: 'admin' }),
  });
  const token = reply.body['access_token'];
  if (reply.ok && typeof token === 'string') return { token, subject: subjectOf(token) };
  const why = String(reply.body['error_description'] ?? `status ${reply.status}`);
  throw failure(`${server} does not take the login: ${why}; \`osl login\` begins a new one`);
}

async function current(server: string): Promise<StoredLogin | null> {
  const login = readLogin(server);
  if (login === null || endOf(login.idToken) > Date.now() / 1_000 + SOON_SECONDS) return login;
  if (login.refreshToken === null) throw over(server, 'its provider gave no refresh token');
  const tokens = await refreshed(login, login.refreshToken).catch((error: unknown) => {
    if (error instanceof oauth.ResponseBodyError && error.status < 500) throw over(server, messageOf(error));
    if (error instanceof Error && error.cause instanceof Error) throw unreachable(login.issuer, error);
    throw failure(`${login.issuer} has not renewed the login at ${server}: ${messageOf(error)}`);
  });
  const next: StoredLogin = { ...login, ...tokens };
  writeLogin(next);
  return next;
}

function over(server: string, why: string): Failure {
  return failure(`the login at ${server} is over (${why}): log in anew with \`osl login\``);
}

/** Returns `exp` of the provider's ID token, in seconds since 1970; 0 if the token has none or cannot be parsed. */
function endOf(token: string): number {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const exp = typeof claims === 'object' && claims !== null ? Reflect.get(claims, 'exp') : 0;
    return typeof exp === 'number' ? exp : 0;
  } catch {
    return 0;
  }
}
