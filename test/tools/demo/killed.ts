import { loadDemo } from '../../../cli/demo/load.js';
import { readSupplyChain } from '../../../cli/demo/read.js';
import { openEngine } from '../../../src/engine/index.js';

/** Loads the demo into the data directory that the argument names, and kills itself after half of the rows. */
const engine = await openEngine({ kind: 'pglite', dataDir: process.argv[2] ?? null });
const chain = await readSupplyChain('.');
await loadDemo(engine.system, chain, (done, total) => {
  if (done > total / 2) process.kill(process.pid, 'SIGKILL');
});
