import { createContext, useContext } from 'react';
import type { SignedInCaller } from '../api/caller.js';
import { faultOf, reach, readJson } from '../api/http.js';

/** Settings that the server provides before sign-in. */
export interface ServerSettings {
  readonly version: string;
  readonly admin: boolean;
  readonly demo: { readonly callers: readonly DemoCaller[] } | null;
  readonly local_tokens: boolean;
  readonly wire: { readonly port: number; readonly tls: boolean };
  readonly issuers: readonly IdentityProvider[];
}

interface DemoCaller {
  readonly chain: readonly string[];
  readonly about: string;
}

/** An identity provider, and the OIDC client used to sign in with it. */
export interface IdentityProvider {
  readonly issuer: string;
  readonly client_id: string;
  readonly scopes: readonly string[];
}

/** Reads the settings from the server. @throws ProblemError, UnreachedError, UnreadableError */
export async function serverSettings(): Promise<ServerSettings> {
  const response = await reach('/console/settings.json', { cache: 'no-store', credentials: 'omit' });
  if (!response.ok) throw await faultOf(response);
  return readJson<ServerSettings>(response);
}

/** The signed-in caller, and the server's settings. */
interface PageSession {
  readonly caller: SignedInCaller;
  readonly settings: ServerSettings;
  /** True if the token has expired and the user has not signed in again. */
  readonly hasEnded: boolean;
  /** Opens the dialog to sign in again; the screen keeps its state. */
  readonly signInAgain: () => void;
}

export const SessionContext = createContext<PageSession | null>(null);

/** Returns the session of the page, which exists whenever a screen is shown. */
export function useSession(): PageSession {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('nobody has signed in');
  return session;
}
