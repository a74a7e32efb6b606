import type { SignedIn } from './kept.js';
import { exchangedToken } from './sign-in.js';

/** Whether the address is that of a person who comes back from a provider. */
export function isReturn(): boolean {
  const query = new URLSearchParams(location.search);
  return query.has('state') && (query.has('code') || query.has('error'));
}

/** Signs in who comes back. @throws Error, ProblemError */
export async function comeBack(admin: boolean): Promise<SignedIn> {
  const oidc = await import('./oidc.js');
  const { issuer, idToken } = await oidc.comeBack();
  return { kind: 'oidc', issuer, idToken, token: await exchangedToken(idToken, admin) };
}
