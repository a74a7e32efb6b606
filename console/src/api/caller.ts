/**
 * Somebody who has signed in, of whom tokens come. A token lives minutes: where the sign-in can give another, it is
 * asked for one in time; where a person pasted it, it ends.
 */
export interface SignedInCaller {
  readonly identity: TokenClaims;
  /** Names this caller in what a browser keeps: the chain, as it is. */
  readonly key: string;
  /** A token that is good for half a minute at least. @throws EndedError */
  token(): Promise<string>;
  /** A token that no change was made with: for what changes something. @throws EndedError */
  freshToken(): Promise<string>;
  /** Another token, since the gateway does not take the one that it was shown. @throws EndedError */
  renewed(): Promise<string>;
  /** When the last token ends, in milliseconds since the epoch; null where another follows by itself. */
  expiresAt(): number | null;
}

/** The token has ended, and the sign-in gives no other. */
export class EndedError extends Error {
  constructor() {
    super('the token has ended: sign in again');
    this.name = 'EndedError';
  }
}

/** How a caller's tokens are had, and who is told of them. */
export interface CallerTokens {
  /** Null where a person must bring the next one. */
  readonly renew: (() => Promise<string>) | null;
  /** Hears of each token, to keep it. */
  readonly kept?: (token: string) => void;
  /** Hears that there is no further token. */
  readonly ended?: () => void;
}

/** A token that lives for less is renewed before it is used. */
const LEAST_MS = 30_000;

/** A caller by its first token; null for a text that is no actor token. */
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

/** Claims of a token, read without verification, for display: the gateway alone verifies it. */
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
    // An object of JSON; each member is looked at before it is used.
    return typeof read === 'object' && read !== null ? (read as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : [];
}
