/** Settings that the server sends to a page before sign-in. */
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

/** Identity provider, and the client under which people log in with it. */
export interface IdentityProvider {
  readonly issuer: string;
  readonly client_id: string;
  readonly scopes: readonly string[];
}

/** @throws Error if the server cannot be reached */
export async function serverSettings(): Promise<ServerSettings> {
  const response = await fetch('/console/settings.json', { cache: 'no-store', credentials: 'omit' });
  if (!response.ok) throw new Error(`the gateway answered ${response.status}`);
  return (await response.json()) as ServerSettings; // our own server's
}
