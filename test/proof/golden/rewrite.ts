import { readFileSync, writeFileSync } from 'node:fs';
import { parseCases, writeCase } from './cases.js';
import { SHOP_SQL } from './catalog.js';
import { openEngine } from './engine.js';
import { CASES, caseFiles } from './files.js';
import { describeOutcome, outcomeOf } from './outcome.js';

/** Rewrites what stands below the rule of every golden case; the reviewer reads the diff. */
const engine = await openEngine(['shop']);
await engine.setUp(SHOP_SQL);
let count = 0;
for (const file of caseFiles()) {
  const url = new URL(file, CASES);
  const written: string[] = [];
  for (const golden of parseCases(readFileSync(url, 'utf8'))) {
    written.push(writeCase(golden, describeOutcome(golden, await outcomeOf(golden, engine))));
    count++;
  }
  writeFileSync(url, `${written.join('\n\n')}\n`);
}
await engine.close();
console.log(`${count} golden cases rewritten`);
