import { LRUCache } from 'lru-cache';
import { addressGroup } from '../address.js';
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
  /** Whether a right password opens a session. Where it does, the address is known to be this account's. */
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
