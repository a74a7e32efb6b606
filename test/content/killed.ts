import { indexFacet, lexicalEmbedder } from '../../src/content/index.js';
import { openEngine } from '../../src/engine/index.js';
import { createShop, derivingManifest, facetOf } from './fixture.js';

/** Indexes the shop into the data directory that the argument names, and kills itself after two batches. */
const engine = await openEngine({ kind: 'pglite', dataDir: process.argv[2] ?? null });
await createShop(engine.system);
const options = { embedder: lexicalEmbedder, versions: ['masked'], batch: 2 };
let batches = 0;
await indexFacet(engine.system, derivingManifest, facetOf(derivingManifest), options, () => {
  if (++batches === 2) process.kill(process.pid, 'SIGKILL');
});
