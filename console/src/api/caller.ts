/**
 * Signed-in caller and source of their tokens. A token lives for minutes: if the sign-in can issue another, it is
 * renewed in time; a token that a person pasted expires.
 */
export interface SignedInCaller {
  readonly identity: TokenClaims;
  /** Key of this caller in browser storage: the members of the chain, joined by spaces. */
  readonly key: string;
  /** A valid token; if it can be renewed, valid for at least another 30 s. @throws EndedError */
  token(): Promise<string>;
  /** A token not used for an earlier change, for requests that change something. @throws EndedError */
  freshToken(): Promise<string>;
  /** A new token, after the gateway rejected the current one. @throws EndedError */
  renewed(): Promise<string>;
  /** Expiry of the last token, in milliseconds since the epoch; null if tokens are renewed automatically. */
  expiresAt(): number | null;
}

/** The token has expired, and the sign-in cannot issue another. */
export class EndedError extends Error {
  constructor() {
    super('the token has ended: sign in again');
    this.name = 'EndedError';
  }
}

/** Source of a caller's further tokens, and callbacks for changes. */
export interface CallerTokens {
  /** Issues the next token; null if a person must supply it. */
  readonly renew: (() => Promise<string>) | null;
  /** Called with each renewed token, to store it. */
  readonly kept?: (token: string) => void;
  /** Called when no further token is available. */
  readonly ended?: () => void;
}

/** Tokens with less time left, in ms, are renewed before use. */
const LEAST_MS = 30_000;

/** Caller with this first token; null if the text is not an actor token. */
export function callerOf(token: string, { renew, kept, ended }: CallerTokens): SignedInCaller | null {
  const first = identityOf(token);
  if (first === null) return null;
  let held = { token, expiresAt: first.expiresAt, isUsed: false };
  const next = async (): Promise<string> => {
    const renewed = renew === null ? null : await renew();
    if (renewed === null) {
      ended?.();
      throw new EndedError();
    }
    held = { token: renewed, expiresAt: identityOf(renewed)?.expiresAt ?? 0, isUsed: false };
    kept?.(renewed);
    return renewed;
  };
  const leftMs = (): number => held.expiresAt - Date.now();
  const isGood = (): boolean => leftMs() > (renew === null ? 0 : LEAST_MS);
  return {
    identity: first,
    key: first.chain.join(' '),
    expiresAt: () => (renew === null ? held.expiresAt : null),
    token: async () => (isGood() ? held.token : next()),
    freshToken: async () => {
      const given = isGood() && !held.isUsed ? held.token : await next();
      held = { ...held, isUsed: true };
      return given;
    },
    renewed: next,
  };
}

/** Claims of a token, read without verification, for display: only the gateway verifies it. */
interface TokenClaims {
  readonly tenant: string;
  /** Root to leaf: who asks for whom. */
  readonly chain: readonly string[];
  readonly roles: readonly string[];
  readonly adminRoles: readonly string[];
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Claims of the actor token `token`; null if the text is not a token. */
export function identityOf(token: string): TokenClaims | null {
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
    // A JSON object; each member is checked before it is used.
    return typeof read === 'object' && read !== null ? (read as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : [];
}
