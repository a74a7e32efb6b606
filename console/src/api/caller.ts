/**
 * A signed-in caller, and the source of their tokens. A token lives for minutes. It is renewed before it expires if the
 * sign-in can issue new ones; a token that the user pasted expires.
 */
export interface SignedInCaller {
  readonly identity: TokenClaims;
  /** Key for this caller in browser storage: the members of the chain, separated by spaces. */
  readonly key: string;
  /** Returns a valid token; if tokens can be renewed, it is valid for at least another 30 s. @throws EndedError */
  token(): Promise<string>;
  /** Returns a token that no earlier change has used, for requests that change something. @throws EndedError */
  freshToken(): Promise<string>;
  /** Returns a new token after the gateway has rejected the current one. @throws EndedError */
  renewed(): Promise<string>;
  /** Expiry of the last token, in milliseconds since the epoch; null if tokens are renewed automatically. */
  expiresAt(): number | null;
}

/** The token has expired and cannot be renewed. */
export class EndedError extends Error {
  constructor() {
    super('Your token has expired.');
    this.name = 'EndedError';
  }
}

/** Source of new tokens for a caller, and callbacks for renewal and expiry. */
interface CallerTokens {
  /** Returns the next token; null if the user must sign in again. The field is null if tokens cannot be renewed. */
  readonly renew: (() => Promise<string | null>) | null;
  /** Called with each renewed token so that it can be stored. */
  readonly kept?: (token: string) => void;
  /** Called when no further token is available. */
  readonly ended?: () => void;
}

/** Minimum remaining lifetime in ms; a token with less is renewed before use. */
const LEAST_MS = 30_000;

/** Creates a caller whose first token is `token`; returns null if the text is not an actor token. */
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

/** Claims of a token, for display only: they are not verified here, because only the gateway can do that. */
interface TokenClaims {
  readonly tenant: string;
  /** Delegation chain, from the original principal to the one that sends the request. */
  readonly chain: readonly string[];
  readonly roles: readonly string[];
  readonly adminRoles: readonly string[];
  /** Expiry, in milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Reads the claims of the actor token `token`; returns null if the text is not such a token. */
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
    // Any JSON object will do, since each member is checked before use.
    return typeof read === 'object' && read !== null ? (read as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : [];
}
