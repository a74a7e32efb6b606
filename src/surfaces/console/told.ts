import type { ConsoleOptions } from './options.js';

/**
 * What the page is told before anybody has signed in. It needs no token, so it holds nothing that an installation
 * keeps to itself: version and issuers stand in `/openapi.json` and `/.well-known/oauth-protected-resource/mcp` too.
 */
export function toldOf({ version, admin, demo, localTokens, wire, logins }: ConsoleOptions) {
  return {
    version,
    admin,
    demo: demo === null ? null : { callers: demo.callers },
    local_tokens: localTokens,
    wire: wire(),
    issuers: logins().flatMap(({ issuer, login }) =>
      login === null ? [] : [{ issuer, client_id: login.clientId, scopes: login.scopes }],
    ),
  };
}
