import { identifier } from 'osl-compiler';
import type { SessionControl } from '../../../wire/index.js';
import {
  eventsOf,
  type RequestCall,
  type SubscriptionEvent,
  type SubscriptionParts,
} from '../../ask/index.js';
import { ENTITY_CHANNEL } from './command.js';
import type { SessionCaller } from './session-requests.js';

/**
 * The channels on which a session listens, each for all rows of an entity that its caller may see. A channel is a
 * subscription at the shortest interval that the server allows.
 */
export class Channels {
  readonly #service: SubscriptionParts;
  readonly #caller: SessionCaller;
  readonly #control: Pick<SessionControl, 'notify'>;
  readonly #open = new Map<string, AbortController>();

  constructor(service: SubscriptionParts, caller: SessionCaller, control: Pick<SessionControl, 'notify'>) {
    this.#service = service;
    this.#caller = caller;
    this.#control = control;
  }

  /** Resolves once the query has run; changes after that are notified. @throws QueryError */
  async listen(call: RequestCall, channel: string): Promise<void> {
    if (this.#open.has(channel)) return;
    const { signal } = this.#add(channel);
    const name = identifier(channel.slice(ENTITY_CHANNEL.length));
    const events = eventsOf(this.#service, {
      call,
      nextCall: () => this.#caller.newCall(),
      body: { kind: 'osql', text: `select * from osl.entities.${name}` },
      parameters: [],
      intervalMs: this.#service.subscriptions.limits.leastMs,
      since: null,
      signal,
      run: (_call, check) => check(signal),
    });
    try {
      await events.next();
    } catch (error) {
      this.#open.delete(channel);
      throw error;
    }
    void this.#follow(channel, events);
  }

  #add(channel: string): AbortController {
    const ended = new AbortController();
    this.#open.set(channel, ended);
    return ended;
  }

  async #follow(channel: string, events: AsyncIterable<SubscriptionEvent>): Promise<void> {
    for await (const event of events) {
      if (event.kind === 'changed') this.#control.notify(channel, '');
      if (event.kind !== 'ended') continue;
      this.#open.delete(channel);
      this.#control.notify(channel, `ended: ${event.error.code} ${event.error.message}`);
    }
  }

  /** @param channel null for all */
  end(channel: string | null): void {
    for (const [name, ended] of this.#open) {
      if (channel !== null && channel !== name) continue;
      this.#open.delete(name);
      ended.abort();
    }
  }
}
