import { setTimeout as sleep } from 'node:timers/promises';
import { assertNever } from 'osl-compiler/errors';
import type { LineageEndpoint } from '../config/load.js';
import type { Outbox } from '../outbox/outbox.js';
import type { OutboxMessage } from '../outbox/state.js';
import { pauseAfter, type SendAttempt, send } from './send.js';

interface DeliveryOptions {
  readonly endpoint: LineageEndpoint;
  readonly outbox: Outbox;
  readonly clock: LineageClock;
  readonly agent: string;
  readonly signal: AbortSignal;
  readonly random: () => number;
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

interface DeliveryCounts {
  delivered: number;
  failed: number;
}

const MAX_CONCURRENT = 4;
/** Maximum time in ms between two checks of the outbox. */
const MAX_CHECK_INTERVAL_MS = 60_000;
const DISK_PAUSE_MS = 10_000;

/**
 * Delivers the outbox to one endpoint, independently of others. The order is not guaranteed, since a failed event
 * waits for its retry.
 */
export class EndpointDelivery {
  readonly counts: DeliveryCounts = { delivered: 0, failed: 0 };
  readonly #options: DeliveryOptions;
  readonly #inProgress = new Map<string, Promise<void>>();
  #sleepAbort: AbortController = new AbortController();

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  wake(): void {
    this.#sleepAbort.abort();
  }

  /** Runs until the signal aborts; completes deliveries in progress. */
  async run(): Promise<void> {
    const { signal, clock } = this.#options;
    signal.addEventListener('abort', () => this.wake(), { once: true });
    while (!signal.aborted) {
      this.#sleepAbort = new AbortController();
      const waitMs = this.#sendDue();
      if (signal.aborted) break;
      await clock.sleep(waitMs, this.#sleepAbort.signal);
    }
    await Promise.all(this.#inProgress.values());
  }

  /** Sends as many due events as capacity permits. Returns the time in ms until the next event is due. */
  #sendDue(): number {
    const { outbox, endpoint, clock } = this.#options;
    let nextDue = clock.now() + MAX_CHECK_INTERVAL_MS;
    for (const message of outbox.state.queue(endpoint.name).pending.values()) {
      if (this.#inProgress.size >= MAX_CONCURRENT) break;
      if (this.#inProgress.has(message.id)) continue;
      const { due = 0 } = message.targets.get(endpoint.name) ?? {};
      if (due <= clock.now()) this.#send(message);
      else nextDue = Math.min(nextDue, due);
    }
    return Math.max(0, nextDue - clock.now());
  }

  #send(message: OutboxMessage): void {
    const { id } = message;
    const sending = this.#attempt(message)
      .catch(async (error: unknown) => {
        // The result could not be stored, so the event will be sent again later.
        this.#options.warn('the lineage outbox cannot be written', { error: String(error) });
        await this.#options.clock.sleep(DISK_PAUSE_MS, this.#options.signal);
      })
      .finally(() => {
        this.#inProgress.delete(id);
        this.wake();
      });
    this.#inProgress.set(id, sending);
  }

  async #attempt(message: OutboxMessage): Promise<void> {
    const { endpoint, clock, agent } = this.#options;
    const attempt = await send(endpoint, message, { now: () => clock.now(), agent });
    await this.#recordAttempt(message, attempt);
  }

  async #recordAttempt(message: OutboxMessage, attempt: SendAttempt): Promise<void> {
    const { endpoint, outbox, clock, random, warn } = this.#options;
    const { name, url } = endpoint;
    switch (attempt.kind) {
      case 'delivered':
        this.counts.delivered += 1;
        await outbox.delivered(message.id, name);
        break;
      case 'gone':
        this.counts.failed += 1;
        warn('a lineage endpoint answered 410 and gets nothing more', { endpoint: name });
        await outbox.turnOff(name, url);
        break;
      case 'failed': {
        this.counts.failed += 1;
        const attempts = (message.targets.get(name)?.attempts ?? 0) + 1;
        const pause = pauseAfter(attempts, attempt.retryAfterMs, random());
        const due = pause === null ? null : clock.now() + pause;
        await outbox.failed(message.id, name, attempts, due, attempt.reason);
        if (due === null)
          warn('a lineage event is a dead letter', {
            endpoint: name,
            id: message.id,
            reason: attempt.reason,
          });
        break;
      }
      default:
        return assertNever(attempt);
    }
  }
}

/** Clock of the emitter; replaced in tests. */
export interface LineageClock {
  /** The time in ms since the epoch. */
  now(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** Longest timer in ms, since Node limits them to about 24 days. */
const MAX_TIMER_MS = 2_000_000_000;

export const systemClock: LineageClock = Object.freeze({
  now: () => Date.now(),
  sleep: async (ms: number, signal: AbortSignal) => {
    try {
      await sleep(Math.min(ms, MAX_TIMER_MS), undefined, { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  },
});
