import { readFileSync, writeFileSync } from 'node:fs';
import { parseCases, writeCase } from './cases.js';
import { SHOP_SQL } from './catalog.js';
import { openEngine } from './engine.js';
import { CASES, caseFiles, RETRIEVED } from './files.js';
import { describeOutcome, outcomeOf } from './outcome.js';
import { RetrievedCases } from './retrieved.js';
import { openRetrieved } from './retrieved-world.js';

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
const forms = await openRetrieved();
const cases = new RetrievedCases(forms);
const retrieved: string[] = [];
for (const golden of parseCases(readFileSync(RETRIEVED, 'utf8')))
  retrieved.push(writeCase(golden, await cases.told(golden)));
writeFileSync(RETRIEVED, `${retrieved.join('\n\n')}\n`);
count += retrieved.length;
await forms.close();
console.log(`${count} golden cases rewritten`);
