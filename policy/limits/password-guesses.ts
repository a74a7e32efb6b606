import { isIPv4, isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { WindowCounter } from './window.js';

/** Wrong passwords per account and address in `ADDRESS_SECONDS` before even the right one is refused. */
const PER_ADDRESS = 10;
const ADDRESS_SECONDS = 300;
/** Wrong passwords per account in `ACCOUNT_SECONDS` from all addresses that have not logged in before. */
const PER_ACCOUNT = 1_000;
const ACCOUNT_SECONDS = 3_600;
const MAX_COUNTED = 65_536;
const MAX_KNOWN = 10_000;

/**
 * Limits password guessing for service accounts. Beyond the limit, the right password is refused exactly like a wrong
 * one, so further guessing reveals nothing.
 *
 * An account cannot be locked out from elsewhere: for an address from which it has logged in since the start, only the
 * limit of that address applies. One process counts for all processes.
 */
export interface PasswordGuesses {
  /** Counts a wrong password; asynchronous if another process counts. */
  wrong(account: string, address: string): void | Promise<void>;
  /** True if a right password is accepted; the address is then remembered for this account. */
  right(account: string, address: string): boolean | Promise<boolean>;
}

export interface LocalPasswordGuesses extends PasswordGuesses {
  wrong(account: string, address: string): void;
  right(account: string, address: string): boolean;
}

export interface GuessOptions {
  readonly perAddress?: number;
  readonly perAccount?: number;
  /** Maximum number of account and address pairs counted separately; others share one count. */
  readonly maxCounted?: number;
}

export function createPasswordGuesses(options: GuessOptions = {}): LocalPasswordGuesses {
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
      // A guess beyond the pair's limit could not succeed, so it does not count against the account.
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
 * Groups addresses for rate limits: IPv4 addresses individually, IPv6 by /64, because a single household has 2⁶⁴
 * addresses. An IPv4-mapped IPv6 address is treated as IPv4. Anything else (a Unix socket) is treated as one peer.
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

/** The eight 16-bit groups of a valid IPv6 address. The URL parser normalises it, including dotted tails. */
function expand(address: string): readonly number[] {
  const normal = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = normal.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].map((g) => Number.parseInt(g, 16));
}
