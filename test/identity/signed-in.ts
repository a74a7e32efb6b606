import * as client from 'openid-client';
import { Browser } from './browser.js';
import { CLIENT, RESOURCE } from './provider.js';

/** The tokens that a real OAuth client has of somebody who signed in: authorisation code, with PKCE. */
export async function signIn(issuer: string, login: string, resource: string | null = RESOURCE) {
  const configuration = await client.discovery(new URL(issuer), CLIENT, undefined, client.None(), {
    execute: [client.allowInsecureRequests],
  });
  const verifier = client.randomPKCECodeVerifier();
  const parameters = {
    redirect_uri: 'http://127.0.0.1:9/callback',
    scope: resource === null ? 'openid offline_access' : 'openid offline_access shop',
    prompt: 'consent',
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(resource !== null && { resource }),
  };
  const url = client.buildAuthorizationUrl(configuration, parameters);
  const back = await new Browser(login).visit(url.href);
  const tokens = await client.authorizationCodeGrant(configuration, new URL(back), {
    pkceCodeVerifier: verifier,
  });
  if (tokens.id_token === undefined) throw new Error('the provider gave no ID token');
  return { idToken: tokens.id_token, accessToken: tokens.access_token };
}
