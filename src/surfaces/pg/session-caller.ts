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

/**
 * Identity of a session: from a token, which can be renewed, or from a service account or certificate, which the
 * policy can change.
 */
export class SessionCaller {
  readonly #service: GlassParts;
  #identity: Identity;
  #held: TokenlessSession | null;
  readonly #address: string;
  readonly #purpose: () => string | null;
  #origin: Origin;

  /**
   * @param held service account or certificate holder; null if a token was sent
   * @param address address of the client
   * @param purpose reads the current value of the session's purpose setting
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

  get user(): string {
    return this.#held?.kind === 'account' ? this.#held.account.login : this.#identity.subject;
  }

  get rights(): string {
    return rightsNow(this.#service, this.#identity, this.newCall());
  }

  newCall(): RequestCall {
    return {
      requestId: randomUUID(),
      surface: 'wire',
      credentials: { kind: 'session', identity: this.#identity },
      origin: this.origin,
    };
  }

  /** Address, purpose and emergency of the session's requests. A new object each time one of them changes. */
  get origin(): Origin {
    const purpose = this.#purpose();
    if (purpose !== this.#origin.purpose)
      this.#origin = Object.freeze({ address: this.#address, purpose, emergency: this.#origin.emergency });
    return this.#origin;
  }

  async breakGlass(call: RequestCall, reason: string): Promise<void> {
    const emergency = await breakGlass(this.#service, call, this.identity, reason);
    this.#origin = Object.freeze({ ...this.origin, emergency });
  }

  endBreakGlass(): void {
    this.#origin = Object.freeze({ ...this.origin, emergency: null });
  }

  /** Replaces the token by a newer one of the same caller. @throws QueryError */
  async renew(call: RequestCall, token: string): Promise<void> {
    this.#identity = await renew(this.#service, call, this.#identity, token);
  }

  /** Error that ends the session if its identity is expired, revoked or changed; else null. */
  expiry(): WireError | null {
    if (this.#service.revoked.has(this.#identity)) return tokenRevoked();
    const changed = this.#held === null ? null : this.#lookUp(this.#held);
    if (changed !== null || !isExpired(this.#identity, Date.now())) return changed;
    return fatal('28000', 'the token of this session has expired', {
      hint: 'connect again with a new token',
    });
  }

  /** Refreshes the identity from the current policy; an error if the policy no longer has it. */
  #lookUp(held: TokenlessSession): WireError | null {
    const now = heldNow(this.#service, held);
    if (now === null) return fatal('28000', IDENTITY_CHANGED[held.kind]);
    if (now !== held) this.#identity = now.identity;
    this.#held = now;
    return null;
  }
}

export function tokenRevoked(): WireError {
  const { sqlstate, code } = queryError('invalidToken', { reason: REVOKED });
  return fatal(sqlstate, 'the token of this session was revoked', { detail: code });
}

const IDENTITY_CHANGED: Readonly<Record<TokenlessSession['kind'], string>> = {
  account: 'the service account of this session has changed',
  certificate: "the certificate of this session is nobody's here any more",
};
