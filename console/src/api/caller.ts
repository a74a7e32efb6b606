import { type Identity, identityOf } from './identity.js';

/**
 * Somebody who has signed in, of whom tokens come. A token lives minutes: where the sign-in can give another, it is
 * asked for one in time; where a person pasted it, it ends.
 */
export interface Caller {
  readonly identity: Identity;
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
export interface TokenSource {
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
export function callerOf(token: string, { renew, kept, ended }: TokenSource): Caller | null {
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
