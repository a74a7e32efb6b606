import { pathToFileURL } from 'node:url';
import { median } from '../report.js';
import type { Order, PeerStatement, Reply } from './peer-messages.js';

/** Exports of each adapter in `bench/peers/`. */
interface Adapter {
  readonly id: string;
  readonly name: string;
  /** Compiles the query with literals that depend on `variant`; returns the SQL. */
  compile(variant: number): Promise<string> | string;
  readonly forms: readonly {
    readonly question: 'fan-out' | 'left join';
    readonly form: string;
    statement(): Promise<PeerStatement>;
  }[];
}

/** Runs one peer in a separate process, so that its heap and garbage collection do not affect ours. */
async function serve(file: string): Promise<void> {
  const { peer }: { readonly peer: Adapter } = await import(pathToFileURL(file).href);
  process.on('message', (order: Order) => {
    answer(peer, order).then(
      (value) => process.send?.({ number: order.number, value } satisfies Reply),
      (error: unknown) => {
        const text = error instanceof Error ? error.message : String(error);
        process.send?.({ number: order.number, error: text } satisfies Reply);
      },
    );
  });
  const forms = peer.forms.map(({ question, form }) => ({ question, form }));
  process.send?.({ number: 0, value: { id: peer.id, name: peer.name, forms } } satisfies Reply);
}

async function answer(peer: Adapter, order: Order): Promise<unknown> {
  switch (order.kind) {
    case 'time':
      return timed(peer, order.from, order.size);
    case 'form':
      return peer.forms[order.index]?.statement();
    default: {
      const unknown: never = order;
      return unknown;
    }
  }
}

async function timed(peer: Adapter, from: number, size: number): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < size; i++) {
    const start = process.hrtime.bigint();
    await peer.compile(from + i);
    times.push(Number(process.hrtime.bigint() - start) / 1_000);
  }
  return median(times);
}

await serve(process.argv[2] ?? '');
