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

/** Reads the settings from the server. @throws Error if it cannot be reached */
export async function serverSettings(): Promise<ServerSettings> {
  const response = await fetch('/console/settings.json', { cache: 'no-store', credentials: 'omit' });
  if (!response.ok) throw new Error(`the gateway answered ${response.status}`);
  return (await response.json()) as ServerSettings; // response of the gateway
}
