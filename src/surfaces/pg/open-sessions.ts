import { addressGroup } from '../../../policy/index.js';
import type { Awaitable } from '../../../wire/index.js';

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
