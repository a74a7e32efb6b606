import { type ClientRequest, request } from 'node:http';
import type { TokenClaims } from '../../support/service.js';
import type { RestFixture } from './fixture.js';

interface ReceivedEvent {
  readonly event: string;
  readonly id: string | null;
  readonly data: Readonly<Record<string, unknown>>;
  /** On the clock of `performance.now()`. */
  readonly at: number;
}

/** A client of `POST /osl/subscribe`. */
export interface EventClient {
  readonly status: number;
  /** The body of a refusal. */
  readonly problem: Readonly<Record<string, unknown>> | null;
  readonly events: readonly ReceivedEvent[];
  /** Names of the events so far, without `ready`. */
  names(): string;
  /** Resolves when the server has ended the response. */
  readonly ended: Promise<void>;
  close(): void;
}

export async function subscribe(
  { port, test }: Pick<RestFixture, 'port' | 'test'>,
  subject: string,
  body: object,
  claims: TokenClaims & { readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<EventClient> {
  const headers = {
    authorization: `Bearer ${await test.token(subject, claims)}`,
    'content-type': 'application/json',
    ...claims.headers,
  };
  const options = { port, host: '127.0.0.1', path: '/osl/subscribe', method: 'POST', headers, agent: false };
  return new Promise((resolve, reject) => {
    const sent = request(options, (incoming) => {
      const events: ReceivedEvent[] = [];
      let text = '';
      const ended = new Promise<void>((end) => incoming.on('close', () => end()));
      incoming.on('error', () => undefined); // `close` destroys the socket
      const status = incoming.statusCode ?? 0;
      incoming.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        if (status !== 200) return;
        const blocks = text.split('\n\n');
        text = blocks.pop() ?? '';
        events.push(...blocks.filter((block) => !block.startsWith(':')).map(eventIn));
      });
      const client = { status, events, ended, close: () => sent.destroy(), names: () => namesOf(events) };
      if (status === 200) resolve({ ...client, problem: null });
      else void ended.then(() => resolve({ ...client, problem: JSON.parse(text) }), reject);
    });
    finish(sent, JSON.stringify(body), reject);
  });
}

function finish(sent: ClientRequest, body: string, reject: (error: Error) => void): void {
  sent.on('error', reject);
  sent.end(body);
}

function eventIn(block: string): ReceivedEvent {
  const lines = block.split('\n').map((line) => line.split(/: (.*)/s));
  const field = (name: string): string | null => lines.find(([key]) => key === name)?.[1] ?? null;
  return {
    event: field('event') ?? '',
    id: field('id'),
    data: JSON.parse(field('data') ?? 'null'),
    at: performance.now(),
  };
}

function namesOf(events: readonly ReceivedEvent[]): string {
  return events
    .slice(1)
    .map(({ event, data }) => (event === 'changed' ? event : `${event} ${String(data['code'])}`))
    .join(', ');
}
