import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { untilToldToStop } from '../../../cli/serve/run.js';

t.test(
  'the first Ctrl-C stops, a second forces; one that npm passes on as well is not a second',
  async (t) => {
    let forced = 0;
    let reloaded = 0;
    const told = untilToldToStop({
      reload: () => {
        reloaded += 1;
      },
      force: () => {
        forced += 1;
      },
    });
    process.emit('SIGHUP');
    t.equal(reloaded, 1);
    process.emit('SIGINT');
    process.emit('SIGINT');
    await told;
    t.equal(forced, 0);
    await sleep(300);
    process.emit('SIGINT');
    t.equal(forced, 1);
  },
);
