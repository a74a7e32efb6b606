import type { IdentityProvider } from '../api/settings.js';

/**
 * How a tab was signed in. It is kept in the tab's own storage, which ends with the tab and is read by this origin
 * alone, so that a reload does not sign out; an actor token lives minutes, and nothing that outlives the tab is kept.
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

/** Forgets who signed in, and what was being written: whoever comes next finds a tab as new. */
export function forgetTab(): void {
  sessionStorage.clear();
}

export function keep(signedIn: SignedIn): void {
  sessionStorage.setItem(KEY, JSON.stringify(signedIn));
}

export function kept(): SignedIn | null {
  try {
    // What this page itself wrote there.
    return JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as SignedIn | null;
  } catch {
    return null;
  }
}
