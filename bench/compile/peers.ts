import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Measure, median, paired } from '../report.js';
import type { Order, PeerStatement, Reply } from './peer-messages.js';

/** One way to express one of the two queries of `correctness.ts`. */
export interface Form {
  readonly question: 'fan-out' | 'left join';
  /** Description for the table. */
  readonly form: string;
  /** Rejects if the query cannot be expressed in this form. */
  statement(): Promise<PeerStatement>;
}

/** Another engine, running in a separate process. */
export interface Peer {
  readonly id: string;
  readonly name: string;
  /** Median time in µs of `size` compilations of variants, starting at `from`. */
  time(from: number, size: number): Promise<number>;
  readonly forms: readonly Form[];
  stop(): void;
}

const ADAPTERS = ['malloy.mjs', 'drizzle-cube.mjs', 'cube.mjs'];

/** Runs `work` with the installed peers. Peers that are not installed are omitted, never estimated. */
export async function withPeers<T>(work: (peers: readonly Peer[]) => Promise<T>): Promise<T> {
  const peers: Peer[] = [];
  try {
    for (const file of ADAPTERS) {
      const peer = await start(file);
      if (peer !== null) peers.push(peer);
    }
    return await work(peers);
  } finally {
    for (const peer of peers) peer.stop();
  }
}

/** Times in µs of `n` of our compilations. */
type Ours = (n: number) => readonly number[];

/** Compares each peer with us in alternating rounds, after both are warm. */
export async function runPeers(
  peers: readonly Peer[],
  rounds: number,
  size: number,
  ours: { readonly known: Ours; readonly cold: Ours },
): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  for (const peer of peers) {
    await peer.time(0, 2 * size);
    const known: number[] = [];
    const cold: number[] = [];
    const them: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      known.push(median(ours.known(10 * size)));
      cold.push(median(ours.cold(size)));
      them.push(await peer.time(1_000 + round * size, size));
    }
    const coldId = peer.id.replace('compile.', 'compile.cold_');
    measures.push(paired(peer.id, 'µs', 'less', known, them, peer.name));
    measures.push(paired(coldId, 'µs', 'less', cold, them, peer.name));
  }
  return measures;
}

async function start(file: string): Promise<Peer | null> {
  const dir = join(process.cwd(), 'bench', 'peers');
  if (!existsSync(join(dir, 'node_modules'))) {
    process.stderr.write(
      `${file}: not run, since bench/peers is not installed (npm ci --prefix bench/peers)\n`,
    );
    return null;
  }
  try {
    return await begun(join(dir, file));
  } catch (error) {
    process.stderr.write(`${file}: not run: ${error instanceof Error ? error.message : String(error)}\n`);
    return null;
  }
}

/** First message of an adapter once it is ready. */
interface Introduction {
  readonly id: string;
  readonly name: string;
  readonly forms: readonly Pick<Form, 'question' | 'form'>[];
}

async function begun(file: string): Promise<Peer> {
  const child = fork(fileURLToPath(new URL('./peer-process.js', import.meta.url)), [file]);
  const line = new Line(child);
  const introduced = await line.first<Introduction>();
  return {
    ...introduced,
    time: (from, size) => line.ask<number>({ kind: 'time', from, size }),
    forms: introduced.forms.map((form, index) => ({
      ...form,
      statement: () => line.ask<PeerStatement>({ kind: 'form', index }),
    })),
    stop: () => void child.kill(),
  };
}

type Unnumbered<T> = T extends unknown ? Omit<T, 'number'> : never;

/** Sends messages to a peer's process and receives its replies, one at a time. */
class Line {
  readonly #child: ChildProcess;
  #number = 0;

  constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** The introduction, which the peer sends unprompted. */
  first<T>(): Promise<T> {
    return this.#reply(0);
  }

  ask<T>(order: Unnumbered<Order>): Promise<T> {
    const number = ++this.#number;
    const reply = this.#reply<T>(number);
    this.#child.send({ ...order, number });
    return reply;
  }

  #reply<T>(number: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error('its process ended'));
      const onMessage = (reply: Reply): void => {
        if (reply.number !== number) return;
        this.#child.off('message', onMessage).off('exit', onExit);
        if (reply.error !== undefined) reject(new Error(reply.error));
        else resolve(reply.value as T); // both ends are our own code
      };
      this.#child.on('message', onMessage).once('exit', onExit);
    });
  }
}
