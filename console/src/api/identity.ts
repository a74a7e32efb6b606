/** What a token says of whom it is for. Nobody here believes it: the gateway does, or does not. */
export interface Identity {
  readonly tenant: string;
  /** Root to leaf: who asks for whom. */
  readonly chain: readonly string[];
  readonly roles: readonly string[];
  readonly adminRoles: readonly string[];
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** What the actor token `token` says; null for a text that is none. */
export function identityOf(token: string): Identity | null {
  const claims = payloadOf(token);
  if (claims === null) return null;
  const chain = textsOf(claims['chain']);
  const subject = claims['sub'];
  const exp = claims['exp'];
  const members = chain.length > 0 ? chain : typeof subject === 'string' ? [subject] : [];
  if (members.length === 0 || typeof exp !== 'number') return null;
  return {
    tenant: typeof claims['tenant_id'] === 'string' ? claims['tenant_id'] : '',
    chain: members,
    roles: textsOf(claims['acl_roles']),
    adminRoles: textsOf(claims['roles']),
    expiresAt: exp * 1_000,
  };
}

function payloadOf(token: string): Readonly<Record<string, unknown>> | null {
  const [, payload, signature] = token.split('.');
  if (payload === undefined || signature === undefined) return null;
  try {
    const bytes = Uint8Array.from(atob(payload.replace(/-/g, '+').replace(/_/g, '/')), (c) =>
      c.charCodeAt(0),
    );
    const read: unknown = JSON.parse(new TextDecoder().decode(bytes));
    // An object of JSON; each member is looked at before it is used.
    return typeof read === 'object' && read !== null ? (read as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : [];
}
