import { readFileSync } from 'node:fs';
import t from 'tap';
import { parseCases, writeCase } from './cases.js';
import { RETRIEVED } from './files.js';
import { RetrievedCases } from './retrieved.js';
import { openRetrieved } from './retrieved-world.js';

/** What each option of RETRIEVE sends to a store, for whom, and what comes of it. */
t.setTimeout(180_000);

const forms = await openRetrieved();
t.teardown(() => forms.close());

t.test('each case is as its file has it', async (t) => {
  const text = readFileSync(RETRIEVED, 'utf8');
  const cases = new RetrievedCases(forms);
  const written: string[] = [];
  for (const golden of parseCases(text)) written.push(writeCase(golden, await cases.told(golden)));
  t.equal(`${written.join('\n\n')}\n`, text, 'as written; `npm run golden` rewrites it');
});
