import { useCallback, useEffect, useState } from 'react';
import type { SignedInCaller } from '../api/caller.js';
import type { ServerSettings } from '../api/settings.js';
import { exchangedToken, forgetTab, kept, type SignedIn, signedInCaller } from './sign-in.js';

/** Sign-in of this tab: the caller, or null if no one has signed in, and whether the token has expired. */
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
        if (returned !== null) enter(returned);
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
