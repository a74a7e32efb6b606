import { isIPv4, isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { WindowCounter } from './window.js';

/** Wrong passwords of one account from one address, in `ADDRESS_SECONDS`, before even the right one is refused. */
const PER_ADDRESS = 10;
const ADDRESS_SECONDS = 300;
/** Wrong passwords of one account from all addresses that it is not known to log in from, in `ACCOUNT_SECONDS`. */
const PER_ACCOUNT = 1_000;
const ACCOUNT_SECONDS = 3_600;
const MAX_COUNTED = 65_536;
const MAX_KNOWN = 10_000;

/**
 * A brake on guesses at the passwords of service accounts. Who is over the budget is not told so: a right password is
 * refused as a wrong one is, so that guessing on teaches nothing.
 *
 * An account cannot be locked out from elsewhere: an address from which it has logged in since the start is held to its
 * own budget alone. One process counts, for all that serve together.
 */
export interface Guesses {
  /** Counts a wrong password, at once. A promise where another process counts: only then it is counted. */
  wrong(account: string, address: string): void | Promise<void>;
  /** True if a right password opens a session. Where it does, the address is known to be this account's. */
  right(account: string, address: string): boolean | Promise<boolean>;
}

/** The count itself. */
export interface OwnGuesses extends Guesses {
  wrong(account: string, address: string): void;
  right(account: string, address: string): boolean;
}

export interface GuessOptions {
  readonly perAddress?: number;
  readonly perAccount?: number;
  /** Bound on the pairs of account and address that are counted at a time; the surplus shares one count. */
  readonly maxCounted?: number;
}

export function createGuesses(options: GuessOptions = {}): OwnGuesses {
  const { perAddress = PER_ADDRESS, perAccount = PER_ACCOUNT, maxCounted = MAX_COUNTED } = options;
  const known = new LRUCache<string, true>({ max: MAX_KNOWN });
  const ofKnown = new WindowCounter(perAddress, MAX_KNOWN, ADDRESS_SECONDS);
  const ofStrangers = new WindowCounter(perAddress, maxCounted, ADDRESS_SECONDS);
  const ofAccounts = new WindowCounter(perAccount, MAX_COUNTED, ACCOUNT_SECONDS);
  const pairOf = (account: string, address: string): string =>
    JSON.stringify([account, addressGroup(address)]);
  return Object.freeze({
    wrong(account: string, address: string) {
      const pair = pairOf(account, address);
      if (known.get(pair) === true) ofKnown.take(pair);
      // A guess beyond the pair's budget could not have opened anything, and costs the account nothing.
      else if (ofStrangers.take(pair).ok) ofAccounts.take(account);
    },
    right(account: string, address: string) {
      const pair = pairOf(account, address);
      if (known.get(pair) === true) return !ofKnown.isSpent(pair);
      if (ofStrangers.isSpent(pair) || ofAccounts.isSpent(account)) return false;
      known.set(pair, true);
      return true;
    },
  });
}

/**
 * The part of a peer's address that a rate limit counts by: an IPv4 address whole, an IPv6 address by its /64,
 * since one household has 2⁶⁴ of them. An IPv4-mapped IPv6 address is the IPv4 address. What is no address
 * (a Unix socket) counts as one peer.
 */
export function addressGroup(address: string): string {
  const bare = address.split('%', 1)[0] ?? '';
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return 'local';
  const groups = expand(bare);
  const [g0, g1, g2, g3, g4, g5, g6 = 0, g7 = 0] = groups;
  const zeros = [g0, g1, g2, g3, g4].every((g) => g === 0);
  if (zeros && g5 === 0xffff) return [g6 >> 8, g6 & 0xff, g7 >> 8, g7 & 0xff].join('.');
  return `${groups
    .slice(0, 4)
    .map((g) => g.toString(16))
    .join(':')}::/64`;
}

/** The eight 16-bit groups of a valid IPv6 address. The URL parser normalises it, dotted tails included. */
function expand(address: string): readonly number[] {
  const normal = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = normal.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].map((g) => Number.parseInt(g, 16));
}
