import type { UsedTokens } from '../../../../policy/index.js';
import type { OfSupervisor } from './messages.js';
import type { Handlers } from './peer.js';

type Asked = 'exchangeKey' | 'firstUse';

/** What workers have in common of tokens: the key of the exchange, and which tokens were used up. */
export class SharedTokens {
  readonly #key: string;
  readonly #used: UsedTokens;

  constructor(key: string, used: UsedTokens) {
    this.#key = key;
    this.#used = used;
  }

  handlers(): Pick<Handlers<OfSupervisor>, Asked> {
    return {
      exchangeKey: () => this.#key,
      firstUse: ({ token, issuedAt, endsAt }) => this.#used.first(token, issuedAt, endsAt),
    };
  }
}
