import { createContext, useContext } from 'react';
import type { SignedInCaller } from '../api/caller.js';
import type { ServerSettings } from '../api/settings.js';

/** The signed-in caller, and the server's settings. */
export interface Session {
  readonly caller: SignedInCaller;
  readonly settings: ServerSettings;
  /** True if the token has expired and the user has not signed in again. */
  readonly hasEnded: boolean;
  /** Opens the dialog to sign in again; the screen stays as it is. */
  readonly signInAgain: () => void;
}

export const SessionContext = createContext<Session | null>(null);

/** Session of the page, which exists whenever a screen is shown. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('nobody has signed in');
  return session;
}
