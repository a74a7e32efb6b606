import { callerOf, type SignedInCaller } from '../api/caller.js';
import { faultOf } from '../api/http.js';
import type { IdentityProvider } from '../api/settings.js';

/** Gets a token for a demo caller; only a demo on this machine issues it. @throws ProblemError, UnreachedError */
export async function demoToken(chain: readonly string[]): Promise<string> {
  const response = await fetch('/console/demo-token', {
    method: 'POST',
    credentials: 'omit',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ chain }),
  });
  if (!response.ok) throw await faultOf(response);
  return ((await response.json()) as { readonly token: string }).token; // response of the gateway
}

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';

/** Exchanges a provider's ID token for a token of the gateway (RFC 8693). @throws ProblemError, UnreachedError */
export async function exchangedToken(idToken: string, admin: boolean): Promise<string> {
  const body = new URLSearchParams({
    grant_type: EXCHANGE,
    subject_token: idToken,
    subject_token_type: ID_TOKEN,
    ...(admin && { scope: 'admin' }),
  });
  const response = await fetch('/oauth/token', { method: 'POST', credentials: 'omit', body });
  if (!response.ok) throw await faultOf(response);
  return ((await response.json()) as { readonly access_token: string }).access_token; // response of the gateway
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

function renewalOf(signedIn: SignedIn, admin: boolean): (() => Promise<string>) | null {
  switch (signedIn.kind) {
    case 'pasted':
      return null;
    case 'demo':
      return () => demoToken(signedIn.chain);
    case 'oidc':
      return () => exchangedToken(signedIn.idToken, admin);
    default: {
      const unknown: never = signedIn;
      throw new Error(`unexpected sign-in ${String(unknown)}`);
    }
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
