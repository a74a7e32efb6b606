import { randomUUID } from 'node:crypto';
import { queryError } from 'osl-compiler';
import { type Identity, isExpired, REVOKED } from '../../../policy/index.js';
import { fatal, type WireError } from '../../../wire/index.js';
import {
  breakGlass,
  type GlassParts,
  heldNow,
  type Origin,
  type RequestCall,
  renew,
  rightsNow,
  type TokenlessSession,
} from '../../ask/index.js';

/** Who asks in a session: the bearer of a token, which may be renewed, or who the policy knows without one, and may change. */
export class SessionCaller {
  readonly #service: GlassParts;
  #identity: Identity;
  #held: TokenlessSession | null;
  readonly #address: string;
  readonly #purpose: () => string | null;
  #origin: Origin;

  /**
   * @param held the service account that proved its password, or the holder of a certificate; null where a token came
   * @param address of the peer
   * @param purpose what the session says now that its questions are for
   */
  constructor(
    service: GlassParts,
    identity: Identity,
    held: TokenlessSession | null,
    address: string,
    purpose: () => string | null,
  ) {
    this.#service = service;
    this.#address = address;
    this.#purpose = purpose;
    this.#origin = Object.freeze({ address, purpose: purpose(), emergency: null });
    this.#identity = identity;
    this.#held = held;
  }

  get identity(): Identity {
    return this.#identity;
  }

  /** The subject, or the login of its service account. */
  get user(): string {
    return this.#held?.kind === 'account' ? this.#held.account.login : this.#identity.subject;
  }

  /** What the caller may see now, as text. */
  get rights(): string {
    return rightsNow(this.#service, this.#identity, this.newCall());
  }

  /** A request of the caller, under an id of its own. */
  newCall(): RequestCall {
    return {
      requestId: randomUUID(),
      surface: 'wire',
      credentials: { kind: 'session', identity: this.#identity },
      origin: this.origin,
    };
  }

  /** Where its requests come from, and what the session says of them: another object once it says something else. */
  get origin(): Origin {
    const purpose = this.#purpose();
    if (purpose !== this.#origin.purpose)
      this.#origin = Object.freeze({ address: this.#address, purpose, emergency: this.#origin.emergency });
    return this.#origin;
  }

  /** Breaks the glass for this session, by a request of its own. @throws QueryError */
  async breakGlass(call: RequestCall, reason: string): Promise<void> {
    const emergency = await breakGlass(this.#service, call, this.identity, reason);
    this.#origin = Object.freeze({ ...this.origin, emergency });
  }

  /** No glass is broken in this session any more. */
  mendGlass(): void {
    this.#origin = Object.freeze({ ...this.origin, emergency: null });
  }

  /** Goes on under a newer token of the same caller. @throws QueryError */
  async renew(call: RequestCall, token: string): Promise<void> {
    this.#identity = await renew(this.#service, call, this.#identity, token);
  }

  /** Why the caller may ask no more, or null. */
  expiry(): WireError | null {
    if (this.#service.revoked.has(this.#identity)) return tokenRevoked();
    const changed = this.#held === null ? null : this.#lookUp(this.#held);
    if (changed !== null || !isExpired(this.#identity, Date.now())) return changed;
    return fatal('28000', 'the token of this session has expired', {
      hint: 'connect again with a new token',
    });
  }

  /** They go on while the policy knows them; what they may see is looked at for every question. */
  #lookUp(held: TokenlessSession): WireError | null {
    const now = heldNow(this.#service, held);
    if (now === null) return fatal('28000', CHANGED[held.kind]);
    if (now !== held) this.#identity = now.identity;
    this.#held = now;
    return null;
  }
}

/** What ends a session whose token was revoked. */
export function tokenRevoked(): WireError {
  const { sqlstate, code } = queryError('invalidToken', { reason: REVOKED });
  return fatal(sqlstate, 'the token of this session was revoked', { detail: code });
}

const CHANGED: Readonly<Record<TokenlessSession['kind'], string>> = {
  account: 'the service account of this session has changed',
  certificate: "the certificate of this session is nobody's here any more",
};
