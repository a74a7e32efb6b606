import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { watchFile } from '../../src/service/follow-control.js';
import { temporary } from '../tools/cli/support.js';

t.test(
  'a watched file that was written while the process started is taken up, an older one is not',
  async (t) => {
    const file = join(temporary(), 'policy.yaml');
    writeFileSync(file, 'one');
    let changes = 0;
    const older: string[] = [];
    const ends = [
      watchFile(file, () => {
        changes += 1;
      }),
      watchFile(process.execPath, () => older.push('changed')),
    ];
    while (changes < 1) await sleep(20);
    writeFileSync(file, 'two');
    while (changes < 2) await sleep(20);
    await sleep(600);
    for (const end of ends) end();
    t.equal(changes, 2, 'each state once');
    t.strictSame(older, []);
  },
);
