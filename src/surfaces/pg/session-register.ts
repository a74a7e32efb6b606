import { addressGroup, type Identity } from '../../../policy/index.js';
import { type Awaitable, fatal, type SessionControl, type WireError } from '../../../wire/index.js';
import type { SessionActivity, SessionSignal } from '../catalog/index.js';

/** Handle of an open session, for its caller's other sessions and for operators. */
export interface OpenSession {
  /** Owner key (see `ownerOf`). It may change, since a policy can give a service account another subject. */
  owner(): string;
  pid(): number;
  /** Returns the session as shown to its owner; null until BackendKeyData has been sent. */
  ownerView(): SessionActivity | null;
  operatorView(): MonitoredSession | null;
  cancel(): void;
  terminate(): void;
  /** Ends the session if its identity has expired, been revoked or been removed from the policy. */
  endIfInvalid(): void;
}

/** A session as seen by operators. `query` is the caller's text: redact it with `redactStatement` before showing it. */
export interface MonitoredSession extends SessionActivity {
  readonly user: string;
  readonly chain: readonly string[];
  readonly token_id: string;
  readonly objects: readonly string[] | null;
}

export interface OwnSessions {
  sessionsOf(owner: string): Awaitable<readonly SessionActivity[]>;
  /** Cancels or ends a session. Returns false if the owner has no session with this process id. */
  signal(owner: string, signal: SessionSignal): Awaitable<boolean>;
}

/**
 * Owner key of a session: tenant, login and the whole delegation chain. An agent can neither see nor end sessions of
 * the person it acts for.
 */
export function ownerOf({ tenant, chain }: Identity, user: string): string {
  return JSON.stringify([tenant, user, ...chain]);
}

export class SessionRegister implements OwnSessions {
  readonly #open = new Set<OpenSession>();

  add(session: OpenSession): () => void {
    this.#open.add(session);
    return () => void this.#open.delete(session);
  }

  sessionsOf(owner: string): readonly SessionActivity[] {
    return [...this.#open]
      .filter((session) => session.owner() === owner)
      .map((session) => session.ownerView())
      .filter((view) => view !== null);
  }

  get operatorViews(): readonly MonitoredSession[] {
    return [...this.#open].map((session) => session.operatorView()).filter((view) => view !== null);
  }

  /** Signals any session, on behalf of an operator. Returns false if no session has this process id. */
  signalAny({ pid, what }: SessionSignal): boolean {
    const [session] = this.#byPid(pid);
    if (what === 'cancel') session?.cancel();
    else session?.terminate();
    return session !== undefined;
  }

  endInvalid(): void {
    for (const session of this.#open) session.endIfInvalid();
  }

  signal(owner: string, { pid, what }: SessionSignal): boolean {
    const session = this.#byPid(pid).find((open) => open.owner() === owner);
    if (what === 'cancel') session?.cancel();
    else session?.terminate();
    return session !== undefined;
  }

  /**
   * Returns the sessions with this process id. Ids are compared first, since that is cheaper than building owner keys.
   */
  #byPid(pid: number): readonly OpenSession[] {
    return [...this.#open].filter((session) => session.pid() === pid);
  }
}

/**
 * Creates the handle through which the caller's other sessions and operators can control this session. `terminate` also
 * cancels the running statement.
 */
export function openSession(
  session: Pick<OpenSession, 'owner' | 'pid' | 'ownerView' | 'operatorView'> & { expiry(): WireError | null },
  control: Pick<SessionControl, 'cancel' | 'end'>,
): OpenSession {
  const end = (reason: WireError): void => {
    control.cancel();
    control.end(reason);
  };
  return {
    owner: () => session.owner(),
    pid: () => session.pid(),
    ownerView: () => session.ownerView(),
    operatorView: () => session.operatorView(),
    cancel: () => control.cancel(),
    terminate: () => end(fatal('57P01', 'terminating connection due to administrator command')),
    endIfInvalid: () => {
      const reason = session.expiry();
      if (reason !== null) end(reason);
    },
  };
}

/**
 * Limits open sessions per subject and address. `open` returns null if a limit is reached, otherwise a function to call
 * when the session ends.
 */
export interface SessionCounts {
  open(subject: string, address: string): Awaitable<(() => void) | null>;
}

export interface SessionCaps {
  readonly subject: number;
  /** Sessions per IPv4 address or IPv6 /64 network. */
  readonly address: number;
}

/** Counts open sessions of this process. */
export class LocalSessionCounts implements SessionCounts {
  readonly #caps: SessionCaps;
  readonly #open = new Map<string, number>();

  constructor(caps: SessionCaps) {
    this.#caps = caps;
  }

  open(subject: string, address: string): (() => void) | null {
    const keys = countKeys(subject, address, this.#caps);
    if (keys.some(({ key, limit }) => (this.#open.get(key) ?? 0) >= limit)) return null;
    for (const { key } of keys) this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    let isClosed = false;
    return () => {
      if (isClosed) return;
      isClosed = true;
      for (const { key } of keys) this.#decrement(key);
    };
  }

  #decrement(key: string): void {
    const remaining = (this.#open.get(key) ?? 0) - 1;
    if (remaining > 0) this.#open.set(key, remaining);
    else this.#open.delete(key);
  }
}

export function countKeys(
  subject: string,
  address: string,
  caps: SessionCaps,
): readonly { readonly key: string; readonly limit: number }[] {
  return [
    { key: `subject ${subject}`, limit: caps.subject },
    { key: `address ${addressGroup(address)}`, limit: caps.address },
  ];
}
