import { faultOf, reach, readJson } from './http.js';

/** Settings that the server provides before sign-in. */
export interface ServerSettings {
  readonly version: string;
  readonly admin: boolean;
  readonly demo: { readonly callers: readonly DemoCaller[] } | null;
  readonly local_tokens: boolean;
  readonly wire: { readonly port: number; readonly tls: boolean };
  readonly issuers: readonly IdentityProvider[];
}

export interface DemoCaller {
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
