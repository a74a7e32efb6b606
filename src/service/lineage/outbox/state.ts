import { join } from 'node:path';
import type { AuditLog } from '../../../../audit/index.js';
import type { EventKind } from '../config/load.js';

/** A position in the audit log. */
export interface AuditLogPosition {
  readonly writer: string;
  readonly seq: number;
  /** The segment of the record before `seq`; reading resumes in this segment. */
  readonly segment: number;
}

/** Returns the path of the outbox's journal in `dir`. */
export function journalIn(dir: string): string {
  return join(dir, 'outbox.journal');
}

/** Returns the position after the last record of `audit`. */
export function endOf(audit: AuditLog): AuditLogPosition {
  const { writer, records, segment } = audit.stats();
  return { writer, seq: records, segment };
}

export type OutboxEntry =
  | { readonly t: 'cursor'; readonly writer: string; readonly seq: number; readonly segment: number }
  /** A new event. `at` is in ms since the epoch, `body` is JSON, `to` lists endpoints. */
  | {
      readonly t: 'event';
      readonly id: string;
      readonly kind: EventKind;
      readonly at: number;
      readonly body: string;
      readonly to: readonly string[];
    }
  /** A failed attempt: `n` counts the attempts so far, `due` is the time of the next. */
  | {
      readonly t: 'tried';
      readonly id: string;
      readonly to: string;
      readonly n: number;
      readonly due: number;
      readonly why: string;
    }
  | { readonly t: 'done'; readonly id: string; readonly to: string }
  | {
      readonly t: 'dead';
      readonly id: string;
      readonly to: string;
      readonly why: string;
      readonly at: number;
    }
  | { readonly t: 'again'; readonly id: string; readonly to: string }
  | { readonly t: 'off'; readonly to: string; readonly url: string; readonly at: number }
  | { readonly t: 'on'; readonly to: string }
  /** Events dropped for lack of space. */
  | { readonly t: 'dropped'; readonly to: string; readonly count: number }
  /** Fingerprints of the datasets last announced, by name. */
  | {
      readonly t: 'announced';
      readonly version: string;
      readonly datasets: Readonly<Record<string, string>>;
    };

interface DeliveryState {
  readonly state: 'pending' | 'dead';
  readonly attempts: number;
  /** Due time of the next attempt, in ms since the epoch; for a dead letter, the time when it became one. */
  readonly due: number;
  readonly why: string | null;
}

export interface OutboxMessage {
  readonly id: string;
  readonly kind: EventKind;
  readonly at: number;
  readonly body: string;
  /** Deliveries by endpoint; an endpoint is removed once it has received the event. */
  readonly targets: Map<string, DeliveryState>;
}

/** The state of an outbox, rebuilt from its journal. */
export class OutboxState {
  cursor: AuditLogPosition | null = null;
  announced: { readonly version: string; readonly datasets: Readonly<Record<string, string>> } | null = null;
  readonly messages = new Map<string, OutboxMessage>();
  /** Endpoints that answered with status 410, and their URLs. */
  readonly disabled = new Map<string, { readonly url: string; readonly at: number }>();
  readonly dropped = new Map<string, number>();
  readonly #queues = new Map<string, EndpointQueue>();
  #bytes = 0;

  static of(entries: readonly OutboxEntry[]): OutboxState {
    const state = new OutboxState();
    for (const entry of entries) state.apply(entry);
    return state;
  }

  get bytes(): number {
    return this.#bytes;
  }

  queue(endpoint: string): EndpointQueue {
    const existing = this.#queues.get(endpoint);
    if (existing !== undefined) return existing;
    const queue: EndpointQueue = { pending: new Map(), dead: new Map(), pendingBytes: 0, deadBytes: 0 };
    this.#queues.set(endpoint, queue);
    return queue;
  }

  apply(entry: OutboxEntry): void {
    switch (entry.t) {
      case 'cursor':
        this.cursor = { writer: entry.writer, seq: entry.seq, segment: entry.segment };
        break;
      case 'announced':
        this.announced = { version: entry.version, datasets: entry.datasets };
        break;
      case 'event':
        this.#add(entry);
        break;
      case 'tried':
        this.#set(entry.id, entry.to, {
          state: 'pending',
          attempts: entry.n,
          due: entry.due,
          why: entry.why,
        });
        break;
      case 'dead': {
        const attempts = this.messages.get(entry.id)?.targets.get(entry.to)?.attempts ?? 0;
        this.#set(entry.id, entry.to, { state: 'dead', attempts, due: entry.at, why: entry.why });
        break;
      }
      case 'again':
        this.#set(entry.id, entry.to, { state: 'pending', attempts: 0, due: 0, why: null });
        break;
      case 'done':
        this.#remove(entry.id, entry.to);
        break;
      case 'off':
        this.disabled.set(entry.to, { url: entry.url, at: entry.at });
        break;
      case 'on':
        this.disabled.delete(entry.to);
        break;
      case 'dropped':
        this.dropped.set(entry.to, (this.dropped.get(entry.to) ?? 0) + entry.count);
        break;
      default:
        throw new Error(`unknown entry ${JSON.stringify(entry satisfies never)}`); // written by another version
    }
  }

  /** Returns journal entries that reproduce this state. */
  entries(): readonly OutboxEntry[] {
    return [
      ...(this.cursor === null ? [] : [{ t: 'cursor', ...this.cursor } as const]),
      ...(this.announced === null ? [] : [{ t: 'announced', ...this.announced } as const]),
      ...[...this.disabled].map(([to, { url, at }]) => ({ t: 'off', to, url, at }) as const),
      ...[...this.dropped].map(([to, count]) => ({ t: 'dropped', to, count }) as const),
      ...[...this.messages.values()].flatMap(entriesOf),
    ];
  }

  #add({ id, kind, at, body, to }: Extract<OutboxEntry, { t: 'event' }>): void {
    const existing = this.messages.get(id);
    const message = existing ?? { id, kind, at, body, targets: new Map<string, DeliveryState>() };
    for (const endpoint of to) {
      if (message.targets.has(endpoint)) continue;
      message.targets.set(endpoint, { state: 'pending', attempts: 0, due: 0, why: null });
      addToQueue(this.queue(endpoint), 'pending', message);
    }
    if (existing !== undefined || message.targets.size === 0) return;
    this.messages.set(id, message);
    this.#bytes += Buffer.byteLength(body);
  }

  #set(id: string, endpoint: string, target: DeliveryState): void {
    const message = this.messages.get(id);
    const previous = message?.targets.get(endpoint);
    if (message === undefined || previous === undefined) return;
    message.targets.set(endpoint, target);
    if (previous.state === target.state) return;
    removeFromQueue(this.queue(endpoint), previous.state, message);
    addToQueue(this.queue(endpoint), target.state, message);
  }

  #remove(id: string, endpoint: string): void {
    const message = this.messages.get(id);
    const previous = message?.targets.get(endpoint);
    if (message === undefined || previous === undefined) return;
    message.targets.delete(endpoint);
    removeFromQueue(this.queue(endpoint), previous.state, message);
    if (message.targets.size > 0) return;
    this.messages.delete(id);
    this.#bytes -= Buffer.byteLength(message.body);
  }
}

/** The messages of one endpoint, oldest first, and the total size of their bodies in bytes. */
interface EndpointQueue {
  readonly pending: Map<string, OutboxMessage>;
  readonly dead: Map<string, OutboxMessage>;
  pendingBytes: number;
  deadBytes: number;
}

const BYTE_COUNTERS = { pending: 'pendingBytes', dead: 'deadBytes' } as const;

function addToQueue(queue: EndpointQueue, state: DeliveryState['state'], message: OutboxMessage): void {
  queue[state].set(message.id, message);
  queue[BYTE_COUNTERS[state]] += Buffer.byteLength(message.body);
}

function removeFromQueue(queue: EndpointQueue, state: DeliveryState['state'], message: OutboxMessage): void {
  queue[state].delete(message.id);
  queue[BYTE_COUNTERS[state]] -= Buffer.byteLength(message.body);
}

function entriesOf({ id, kind, at, body, targets }: OutboxMessage): readonly OutboxEntry[] {
  const rest = [...targets].flatMap(([to, { state, attempts, due, why }]): readonly OutboxEntry[] => {
    const attempt: OutboxEntry = { t: 'tried', id, to, n: attempts, due, why: why ?? '' };
    if (state === 'dead') return [attempt, { t: 'dead', id, to, why: why ?? '', at: due }];
    return attempts === 0 ? [] : [attempt];
  });
  return [{ t: 'event', id, kind, at, body, to: [...targets.keys()] }, ...rest];
}
