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

type ChannelControl = Pick<SessionControl, 'notify' | 'end'>;

/** Runs `work` as part of a statement, and aborts `stop` if the statement is cancelled meanwhile. */
interface CancellableWork {
  cancellableBy<T>(stop: AbortController, work: () => Promise<T>): Promise<T>;
}

/** A channel that a session listens on, until `stop` is aborted. */
interface Channel {
  readonly stop: AbortController;
  /** Resolves when the last run of the channel's query has been recorded. */
  readonly finished: Promise<void>;
}

/**
 * The channels on which a session listens. A channel reports changes to the rows of one entity that the caller may see:
 * it is a subscription at the shortest interval that the server allows.
 */
export class Channels {
  readonly #service: SubscriptionParts;
  readonly #caller: SessionCaller;
  readonly #control: ChannelControl;
  readonly #open = new Map<string, Channel>();

  constructor(service: SubscriptionParts, caller: SessionCaller, control: ChannelControl) {
    this.#service = service;
    this.#caller = caller;
    this.#control = control;
  }

  /**
   * Subscribes to a channel. Resolves once its query has run; later changes reach the client as notifications. @throws
   * QueryError
   */
  async listen(call: RequestCall, name: string, running: CancellableWork): Promise<void> {
    if (this.#open.has(name)) return;
    const stop = new AbortController();
    const { signal } = stop;
    const events = eventsOf(this.#service, {
      call,
      nextCall: () => this.#nextCall(),
      body: { kind: 'osql', text: `select * from ${entityOf(name)}` },
      parameters: [],
      intervalMs: this.#service.subscriptions.limits.minIntervalMs,
      since: null,
      signal,
      run: (_call, check) => check(signal),
    });
    await running.cancellableBy(stop, () => events.next());
    this.#open.set(name, { stop, finished: this.#follow(name, events) });
  }

  /**
   * Creates the call for the next run of a query. Ends the session if its identity is no longer valid, as its next
   * statement would.
   */
  #nextCall(): RequestCall {
    const reason = this.#caller.expiry();
    if (reason !== null) {
      this.end(null);
      this.#control.end(reason);
    }
    return this.#caller.newCall();
  }

  async #follow(name: string, events: AsyncIterable<SubscriptionEvent>): Promise<void> {
    for await (const event of events) {
      if (event.kind === 'changed') this.#control.notify(name, '');
      if (event.kind !== 'ended') continue;
      this.#open.delete(name);
      this.#control.notify(name, `ended: ${event.error.code} ${event.error.message}`);
    }
  }

  /** Stops listening. @param name channel; null for all channels */
  end(name: string | null): void {
    for (const [channel, { stop }] of this.#open) {
      if (name !== null && name !== channel) continue;
      this.#open.delete(channel);
      stop.abort();
    }
  }

  async close(): Promise<void> {
    const all = [...this.#open.values()];
    this.end(null);
    await Promise.all(all.map(({ finished }) => finished));
  }
}

function entityOf(channel: string): string {
  return `osl.entities.${identifier(channel.slice(ENTITY_CHANNEL.length))}`;
}
