import { addressGroup, type Identity } from '../../../policy/index.js';
import { type Awaitable, fatal, type SessionControl, type WireError } from '../../../wire/index.js';
import type { CatalogSession, SessionSignal } from '../catalog/index.js';

/** An open session, as those of the same caller see it and may end it. */
export interface OpenSession {
  /** Whose it is now: a policy may give a service account another subject. */
  owner(): string;
  /** As in BackendKeyData, 0 before its client knows it. */
  pid(): number;
  /** Null before its client knows its process id. */
  seen(): CatalogSession | null;
  /** What who runs the server is told of it, as `seen`, with whose it is. */
  told(): ToldSession | null;
  cancel(): void;
  terminate(): void;
  /** Ends it where its caller may ask no more. */
  endIfOver(): void;
}

/** A session as who runs the server is told of it. Its `query` is the caller's text: see `toldShape`. */
export interface ToldSession extends CatalogSession {
  /** The login. */
  readonly user: string;
  readonly chain: readonly string[];
  /** Of the token that it goes on under. */
  readonly token_id: string;
  /** What a question that went the fast way reads; null where none runs. */
  readonly objects: readonly string[] | null;
}

/** Which sessions are a caller's own. */
export interface OwnSessions {
  of(owner: string): Awaitable<readonly CatalogSession[]>;
  /** False where the owner has no such session. */
  signal(owner: string, signal: SessionSignal): Awaitable<boolean>;
}

/**
 * Whose a session is: the login and the whole chain of who asks for whom. What a person asks, an agent that asks for
 * this person neither sees nor ends.
 */
export function ownerOf({ tenant, chain }: Identity, user: string): string {
  return JSON.stringify([tenant, user, ...chain]);
}

/** The sessions of this process. */
export class SessionRegister implements OwnSessions {
  readonly #open = new Set<OpenSession>();

  /** What it gives takes the session off again, once it has ended. */
  add(session: OpenSession): () => void {
    this.#open.add(session);
    return () => void this.#open.delete(session);
  }

  of(owner: string): readonly CatalogSession[] {
    return [...this.#open]
      .filter((session) => session.owner() === owner)
      .map((session) => session.seen())
      .filter((seen) => seen !== null);
  }

  /** Every session, for who runs the server. */
  get told(): readonly ToldSession[] {
    return [...this.#open].map((session) => session.told()).filter((told) => told !== null);
  }

  /** Signals any session, for who runs the server; false where there is none of this number. */
  command({ pid, what }: SessionSignal): boolean {
    const [session] = this.#numbered(pid);
    if (what === 'cancel') session?.cancel();
    else session?.terminate();
    return session !== undefined;
  }

  /** Ends those whose callers may ask no more. */
  endOver(): void {
    for (const session of this.#open) session.endIfOver();
  }

  signal(owner: string, { pid, what }: SessionSignal): boolean {
    const session = this.#numbered(pid).find((open) => open.owner() === owner);
    if (what === 'cancel') session?.cancel();
    else session?.terminate();
    return session !== undefined;
  }

  /** Asked for each of many signals: a number is compared sooner than a chain of owners is written down. */
  #numbered(pid: number): readonly OpenSession[] {
    return [...this.#open].filter((session) => session.pid() === pid);
  }
}

/** A session as the others of its caller reach it. What it runs is cancelled before it is ended. */
export function openSession(
  session: Pick<OpenSession, 'owner' | 'pid' | 'seen' | 'told'> & { expiry(): WireError | null },
  control: Pick<SessionControl, 'cancel' | 'end'>,
): OpenSession {
  const end = (reason: WireError): void => {
    control.cancel();
    control.end(reason);
  };
  return {
    owner: () => session.owner(),
    pid: () => session.pid(),
    seen: () => session.seen(),
    told: () => session.told(),
    cancel: () => control.cancel(),
    terminate: () => end(fatal('57P01', 'terminating connection due to administrator command')),
    endIfOver: () => {
      const over = session.expiry();
      if (over !== null) end(over);
    },
  };
}

/** Whether a subject, from an address, may have one more session open. */
export interface SessionCounts {
  /** One more of both; what it gives ends it, once. Null where one of them has as many as it may. */
  open(subject: string, address: string): Awaitable<(() => void) | null>;
}

/** How many sessions there may be. */
export interface SessionCaps {
  readonly subject: number;
  /** Of an IPv4 address, or the /64 of an IPv6 one. */
  readonly address: number;
}

/** How many sessions each subject, and each address, has open in this process. */
export class OpenSessions implements SessionCounts {
  readonly #caps: SessionCaps;
  readonly #open = new Map<string, number>();

  constructor(caps: SessionCaps) {
    this.#caps = caps;
  }

  open(subject: string, address: string): (() => void) | null {
    const counted = countedBy(subject, address, this.#caps);
    if (counted.some(({ key, most }) => (this.#open.get(key) ?? 0) >= most)) return null;
    for (const { key } of counted) this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      for (const { key } of counted) this.#end(key);
    };
  }

  #end(key: string): void {
    const left = (this.#open.get(key) ?? 0) - 1;
    if (left > 0) this.#open.set(key, left);
    else this.#open.delete(key);
  }
}

/** What a session of `subject` from `address` counts against. */
export function countedBy(
  subject: string,
  address: string,
  caps: SessionCaps,
): readonly { readonly key: string; readonly most: number }[] {
  return [
    { key: `subject ${subject}`, most: caps.subject },
    { key: `address ${addressGroup(address)}`, most: caps.address },
  ];
}
