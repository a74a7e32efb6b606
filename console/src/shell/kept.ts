import type { IdentityProvider } from '../api/settings.js';

/**
 * Sign-in of a tab. It is kept in the tab's session storage, which ends with the tab and is readable by this origin
 * only, so that a reload does not sign out; an actor token lives for minutes, and nothing is kept beyond the tab.
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

/** Forgets the sign-in and unfinished input, so that the next user finds the tab as new. */
export function forgetTab(): void {
  sessionStorage.clear();
}

export function keep(signedIn: SignedIn): void {
  sessionStorage.setItem(KEY, JSON.stringify(signedIn));
}

export function kept(): SignedIn | null {
  try {
    // Written by this page itself.
    return JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as SignedIn | null;
  } catch {
    return null;
  }
}
