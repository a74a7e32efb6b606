import type { NativePostgres } from '../../test/support/native-postgres.js';
import { type Measure, measure, median } from '../report.js';
import { connected } from '../support/client.js';
import type { Gateway } from '../support/gateway.js';
import { withClient } from '../support/postgres.js';
import { SCHEMA } from './data.js';
import { subjectOf } from './policies.js';

/** Values of one column in almost all rows, in a thousandth, and in a hundred thousandth of them. */
const LANES = ['bulk', 'rare', 'sole'] as const;

const textFor = (lane: string): string =>
  `select count(*), sum(l_quantity), max(o_orderdate) from lineitem, orders where l_orderkey = o_orderkey and l_lane = '${lane}'`;

/**
 * One query with literals of very different frequency in mixed order: a plan that suits one of them is wrong for
 * others.
 */
export async function skewMeasure(
  gateway: Gateway,
  postgres: NativePostgres,
  asks: number,
): Promise<Measure> {
  return withClient(postgres.url, async (direct) => {
    await direct.query(`set search_path = ${SCHEMA}`);
    const ours = await connected(gateway, subjectOf('none'), 'none');
    const times = LANES.map(() => ({ ours: [] as number[], direct: [] as number[] }));
    for (let ask = 0; ask < asks * LANES.length; ask++) {
      const i = (ask * 7 + Math.floor(ask / LANES.length)) % LANES.length;
      const text = textFor(LANES[i] ?? 'sole');
      for (const [client, into] of [
        [ours, times[i]?.ours],
        [direct, times[i]?.direct],
      ] as const) {
        const started = performance.now();
        await client.query(text);
        into?.push(performance.now() - started);
      }
    }
    await ours.end();
    const ratios = times.map((t) => median(t.direct) / median(t.ours));
    const worst = ratios.indexOf(Math.min(...ratios));
    const at = times[worst];
    return measure(
      'tpch.skew.vs_direct',
      'ms',
      at?.ours ?? [],
      `direct, the value "${LANES[worst]}", the worst of three: ${median(at?.direct ?? []).toFixed(2)}`,
      ratios[worst] ?? null,
    );
  });
}
