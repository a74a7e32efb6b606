import { createContext, useContext } from 'react';
import type { SignedInCaller } from '../api/caller.js';
import type { ServerSettings } from '../api/settings.js';

/** Who has signed in, and with which server. */
export interface Session {
  readonly caller: SignedInCaller;
  readonly settings: ServerSettings;
}

export const SessionContext = createContext<Session | null>(null);

/** The session of the page. Screens are shown within one only. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('nobody has signed in');
  return session;
}
