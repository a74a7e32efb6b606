import { failoverDrill } from './failover.js';
import { rollingDrill } from './rolling.js';
import type { DrillReport } from './table.js';

/**
 * Drills: `npm run drill -- rolling [MINUTES]` and `failover [ROUNDS]`; without a name, `rolling`. They need Debian
 * packages and minutes, so CI does not run them.
 */
const DRILLS: ReadonlyMap<string, (extent?: number) => Promise<DrillReport>> = new Map([
  ['failover', failoverDrill],
  ['rolling', rollingDrill],
]);

async function main([name = 'rolling', extent]: readonly string[]): Promise<number> {
  const drill = DRILLS.get(name);
  if (drill === undefined) {
    process.stderr.write('usage: npm run drill -- [rolling [MINUTES] | failover [ROUNDS]]\n');
    return 2;
  }
  const { text, passed } = await drill(extent === undefined ? undefined : Number(extent));
  process.stdout.write(`${text}\n`);
  return passed ? 0 : 1;
}

// Whatever was started is ended by handlers of `exit`.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));
process.exit(await main(process.argv.slice(2)));
