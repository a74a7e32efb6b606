import { Worker } from 'node:worker_threads';
import type { Client } from 'pg';
import { connected } from '../support/client.js';
import type { Gateway } from '../support/gateway.js';

/** Times of a point query in ms, alone and with a competing load. */
export interface Neighbour {
  readonly alone: readonly number[];
  /** Times while an operator runs over many passages. */
  readonly beside: readonly number[];
  /** Times while another process keeps one thread busy: the floor on a machine with few processors. */
  readonly besideSpin: readonly number[];
}

const PASSAGES = 1_000;

/** Time that one caller waits for a row of a table while another runs OUTLIER over a thousand passages. */
export async function neighbour(
  gateway: Gateway,
  text: string,
  who: readonly [string, string],
): Promise<Neighbour> {
  const [asking, working] = [await connected(gateway, ...who), await connected(gateway, ...who)];
  try {
    const outlier = `select cite, outlier(text, k => 5) as o from RETRIEVE(facet => 'note', query => $1, top_k => ${PASSAGES})`;
    const { rowCount } = await working.query(outlier, [text]);
    if (rowCount !== PASSAGES) throw new Error(`${rowCount} passages hold a word of the query`);
    await points(asking, WARM_UP);
    const alone: number[] = [];
    const beside: number[] = [];
    const besideSpin: number[] = [];
    // In rounds, so that other activity on the machine affects all three equally.
    for (let round = 0; round < ROUNDS; round++) {
      alone.push(...(await points(asking, POINTS)));
      beside.push(
        ...(await pointsWhile(asking, async (goesOn) => {
          while (goesOn()) await working.query(outlier, [text]);
        })),
      );
      besideSpin.push(...(await pointsBesideSpin(asking)));
    }
    return { alone, beside, besideSpin };
  } finally {
    await Promise.all([asking.end(), working.end()]);
  }
}

const ROUNDS = 5;
const POINTS = 200;
const WARM_UP = 200;

async function pointsWhile(
  client: Client,
  work: (goesOn: () => boolean) => Promise<void>,
): Promise<readonly number[]> {
  let running = true;
  const working = work(() => running);
  const times = await points(client, POINTS).finally(() => {
    running = false;
  });
  await working;
  return times;
}

async function pointsBesideSpin(client: Client): Promise<readonly number[]> {
  const spinning = new Worker('for (;;);', { eval: true });
  try {
    await new Promise((online) => spinning.once('online', online));
    return await points(client, POINTS);
  } finally {
    await spinning.terminate();
  }
}

async function points(client: Client, count: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await client.query('select id from osl.entities.entity where id = $1', [i % 200]);
    times.push(performance.now() - start);
  }
  return times;
}
