import { useCallback, useEffect, useState } from 'react';
import { callerOf, type SignedInCaller } from '../api/caller.js';
import { faultOf, ProblemError, reach, readJson } from '../api/http.js';
import type { IdentityProvider, ServerSettings } from './session.js';

/** Gets a token for a caller of a demo server. @throws ProblemError, UnreachedError, UnreadableError */
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
async function exchangedToken(idToken: string, admin: boolean): Promise<string> {
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

/** Creates the caller for a sign-in, stored to survive a reload if `stored` is set; null if the token is invalid. */
export function signedInCaller(
  signedIn: SignedIn,
  options: { readonly admin: boolean; readonly stored: boolean; readonly ended?: () => void },
): SignedInCaller | null {
  let { token: last } = signedIn;
  // A renewal may end only after the user has signed out, or in as somebody else.
  const isStored = (): boolean => kept()?.token === last;
  const caller = callerOf(signedIn.token, {
    renew: renewalOf(signedIn, options.admin),
    ...(options.stored && {
      kept: (token: string) => {
        if (isStored()) keep({ ...signedIn, token });
        last = token;
      },
    }),
    ended: () => {
      if (isStored()) options.ended?.();
    },
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

/** Awaits a token; null if the gateway refuses it, as for an expired ID token. Throws like `demoToken`. */
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

/** Clears the tab's session storage: the sign-in and unfinished input. */
function forgetTab(): void {
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

/** Sign-in of this tab. `caller` is null if no one is signed in; `hasEnded` is true if the token has expired. */
export interface SignedInState {
  readonly caller: SignedInCaller | null;
  readonly hasEnded: boolean;
  /** Error if returning from a provider failed; null otherwise. */
  readonly fault: unknown;
  readonly isReturning: boolean;
  /** Number of sign-ins since the page was loaded, not counting one restored from the tab. */
  readonly entries: number;
  enter(caller: SignedInCaller): void;
  leave(): void;
  end(): void;
}

/** Completes the sign-in on return from a provider; otherwise restores the sign-in stored in the tab. */
export function useSignedIn(settings: ServerSettings | null): SignedInState {
  const [caller, setCaller] = useState<SignedInCaller | null>(null);
  const [hasEnded, setEnded] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const [isReturning, setReturning] = useState(isReturn);
  const [entries, setEntries] = useState(0);
  const end = useCallback(() => setEnded(true), []);
  const enter = useCallback((next: SignedInCaller) => {
    setCaller(next);
    setEnded(false);
    setFault(null);
    setEntries((n) => n + 1);
  }, []);
  const leave = useCallback(() => {
    forgetTab();
    setCaller(null);
    setEnded(false);
  }, []);
  useEffect(() => {
    if (settings === null) return;
    const { admin } = settings;
    const options = { admin, stored: true, ended: end };
    if (!isReturn()) {
      const known = kept();
      setCaller((now) => now ?? (known === null ? null : signedInCaller(known, options)));
      return;
    }
    completeSignIn(admin)
      .then((signedIn) => {
        const returned = signedInCaller(signedIn, options);
        if (returned === null) throw new Error('The gateway returned no actor token: try to sign in again.');
        enter(returned);
      })
      .catch(setFault)
      .finally(() => setReturning(false));
  }, [settings, end, enter]);
  return { caller, hasEnded, fault, isReturning, entries, enter, leave, end };
}

/** True if the user is returning from a provider. */
function isReturn(): boolean {
  const query = new URLSearchParams(location.search);
  return query.has('state') && (query.has('code') || query.has('error'));
}

/** Completes the sign-in of a user who returns from a provider. @throws Error, ProblemError */
async function completeSignIn(admin: boolean): Promise<SignedIn> {
  const oidc = await import('./oidc.js');
  const { issuer, idToken } = await oidc.completeRedirect();
  return { kind: 'oidc', issuer, idToken, token: await exchangedToken(idToken, admin) };
}
