import * as oauth from 'oauth4webapi';
import { isOwn, trust } from './routes.js';
import type { IdentityProvider } from './session.js';

/** OIDC sign-in in the browser: authorization code flow with PKCE (RFC 7636, RFC 9700), using oauth4webapi. */

/** State stored in the tab while the user is at the provider. */
interface PendingSignIn {
  readonly issuer: IdentityProvider;
  readonly verifier: string;
  readonly state: string;
  readonly nonce: string;
  /** Fragment of the page's address before leaving; `isOwn` is true if its query may run unconfirmed. */
  readonly hash: string;
  readonly isOwn: boolean;
}

const KEY = 'osl.departure';

function redirectUri(): string {
  return `${location.origin}/console/`;
}

/** Returns request options that allow plain HTTP only for a provider on this machine. */
function requestsOf(issuer: string) {
  const { protocol, hostname } = new URL(issuer);
  const isHere = protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
  return isHere ? { [oauth.allowInsecureRequests]: true } : {};
}

async function serverOf({ issuer }: IdentityProvider): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer);
  return oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, requestsOf(issuer)));
}

/** Redirects to the provider. @throws Error if it cannot be reached or has no authorization endpoint */
export async function redirectToProvider(issuer: IdentityProvider): Promise<void> {
  const server = await serverOf(issuer);
  if (server.authorization_endpoint === undefined) throw new Error('the provider says nowhere to sign in');
  const verifier = oauth.generateRandomCodeVerifier();
  const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomNonce()];
  const departure: PendingSignIn = {
    issuer,
    verifier,
    state,
    nonce,
    hash: location.hash,
    isOwn: isOwn(location.hash),
  };
  sessionStorage.setItem(KEY, JSON.stringify(departure));
  const url = new URL(server.authorization_endpoint);
  const asked = {
    client_id: issuer.client_id,
    redirect_uri: redirectUri(),
    response_type: 'code',
    // The page does not request any token that would outlive its tab.
    scope: ['openid', ...issuer.scopes.filter((s) => s !== 'openid' && s !== 'offline_access')].join(' '),
    state,
    nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
  location.assign(url);
}

interface ProviderReturn {
  readonly issuer: IdentityProvider;
  readonly idToken: string;
}

/** Completes a sign-in after the provider's redirect, and restores the address. @throws Error if it fails */
export async function completeRedirect(): Promise<ProviderReturn> {
  const url = new URL(location.href);
  const kept = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  // Written by `redirectToProvider`.
  const departure = JSON.parse(kept ?? 'null') as PendingSignIn | null;
  history.replaceState(null, '', `/console/${departure?.hash ?? ''}`);
  if (departure?.isOwn === true) trust(departure.hash);
  if (departure === null) throw new Error('this tab did not begin to sign in: try again');
  const { issuer, verifier, state, nonce } = departure;
  const [server, client] = [await serverOf(issuer), { client_id: issuer.client_id }];
  const parameters = oauth.validateAuthResponse(server, client, url, state);
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    parameters,
    redirectUri(),
    verifier,
    requestsOf(issuer.issuer),
  );
  const told = await oauth.processAuthorizationCodeResponse(server, client, response, {
    expectedNonce: nonce,
    requireIdToken: true,
  });
  if (told.id_token === undefined) throw new Error('the provider gave no ID token');
  return { issuer, idToken: told.id_token };
}
