import type { Client } from 'pg';
import { connected } from '../support/client.js';
import type { Gateway } from '../support/gateway.js';

/** Times of a point question in milliseconds, by itself and beside an operator over many passages. */
export interface Neighbour {
  readonly alone: readonly number[];
  readonly beside: readonly number[];
}

const PASSAGES = 1_000;

/** How long one caller waits for a row of a table while another has OUTLIER work over a thousand passages. */
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
    const alone = await points(asking, POINTS);
    let running = true;
    const work = (async (): Promise<void> => {
      while (running) await working.query(outlier, [text]);
    })();
    const beside = await points(asking, POINTS).finally(() => {
      running = false;
    });
    await work;
    return { alone, beside };
  } finally {
    await Promise.all([asking.end(), working.end()]);
  }
}

const POINTS = 400;
const WARM_UP = 100;

async function points(client: Client, count: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await client.query('select id from osl.entities.entity where id = $1', [i % 200]);
    times.push(performance.now() - start);
  }
  return times;
}
