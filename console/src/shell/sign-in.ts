import { callerOf, type SignedInCaller } from '../api/caller.js';
import { faultOf, ProblemError, reach, readJson } from '../api/http.js';
import type { IdentityProvider } from '../api/settings.js';

/** Gets a token for a demo caller; only a demo on this machine issues it. @throws ProblemError, UnreachedError, UnreadableError */
export async function demoToken(chain: readonly string[]): Promise<string> {
  const response = await reach('/console/demo-token', {
    method: 'POST',
    credentials: 'omit',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ chain }),
  });
  if (!response.ok) throw await faultOf(response);
  return (await readJson<{ readonly token: string }>(response)).token;
}

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';

/** Exchanges a provider's ID token for a token of the gateway (RFC 8693). Throws like `demoToken`. */
export async function exchangedToken(idToken: string, admin: boolean): Promise<string> {
  const body = new URLSearchParams({
    grant_type: EXCHANGE,
    subject_token: idToken,
    subject_token_type: ID_TOKEN,
    ...(admin && { scope: 'admin' }),
  });
  const response = await reach('/oauth/token', { method: 'POST', credentials: 'omit', body });
  if (!response.ok) throw await faultOf(response);
  return (await readJson<{ readonly access_token: string }>(response)).access_token;
}

/** Caller of a sign-in; null if its token is invalid. `stored` is true if the tab keeps the sign-in across a reload. */
export function signedInCaller(
  signedIn: SignedIn,
  options: { readonly admin: boolean; readonly stored: boolean; readonly ended?: () => void },
): SignedInCaller | null {
  const caller = callerOf(signedIn.token, {
    renew: renewalOf(signedIn, options.admin),
    ...(options.stored && { kept: (token: string) => keep({ ...signedIn, token }) }),
    ...(options.ended !== undefined && { ended: options.ended }),
  });
  if (caller !== null && options.stored) keep(signedIn);
  return caller;
}

function renewalOf(signedIn: SignedIn, admin: boolean): (() => Promise<string | null>) | null {
  switch (signedIn.kind) {
    case 'pasted':
      return null;
    case 'demo':
      return () => unlessRefused(demoToken(signedIn.chain));
    case 'oidc':
      return () => unlessRefused(exchangedToken(signedIn.idToken, admin));
    default: {
      const unknown: never = signedIn;
      throw new Error(`unexpected sign-in ${String(unknown)}`);
    }
  }
}

/** The token, or null if the gateway refused it, since the ID token has expired too. Throws like `demoToken`. */
async function unlessRefused(token: Promise<string>): Promise<string | null> {
  try {
    return await token;
  } catch (error) {
    if (error instanceof ProblemError && [400, 401, 403, 404].includes(error.problem.status)) return null;
    throw error;
  }
}

/**
 * The sign-in of a tab. It is kept in session storage, so it survives a reload, is readable only by this origin, and
 * ends with the tab.
 */
export type SignedIn =
  | { readonly kind: 'pasted'; readonly token: string }
  | { readonly kind: 'demo'; readonly token: string; readonly chain: readonly string[] }
  | {
      readonly kind: 'oidc';
      readonly token: string;
      readonly idToken: string;
      readonly issuer: IdentityProvider;
    };

const KEY = 'osl.signed-in';

/** Removes the sign-in and unfinished input. */
export function forgetTab(): void {
  sessionStorage.clear();
}

export function keep(signedIn: SignedIn): void {
  sessionStorage.setItem(KEY, JSON.stringify(signedIn));
}

export function kept(): SignedIn | null {
  try {
    // written by this page
    return JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as SignedIn | null;
  } catch {
    return null;
  }
}
