import { test } from 'tap';
import { StandbyUse } from '../../src/ask/data/query-answer.js';
import { lastRecordEnd, logPosition, PrimaryHistory } from '../../src/engine/postgres/standby/position.js';
import type { QueryServer } from '../../src/engine/servers.js';
import { SessionReads, StepReads } from '../../src/engine/standby-reads.js';

/** The age of a standby's data, by its position in the log. */

const SEGMENT = 16n * 1024n * 1024n;
const HERE = { system: '7', timeline: 1 };

test('positions are read as Postgres writes them', (t) => {
  t.equal(logPosition('16/B374D848'), 0x16_b374d848n);
  t.equal(logPosition('0/0'), 0n);
  for (const text of ['', '16', '16/', '16/B374D848 ', '116/B374D8481', 'g/0', '0/-1'])
    t.throws(() => logPosition(text), /no position/, text);
  t.end();
});

test('the end of the last record is before the header of a page that has none yet', (t) => {
  const ends: readonly (readonly [inserted: bigint, end: bigint])[] = [
    [3n * SEGMENT + 40n, 3n * SEGMENT],
    [3n * SEGMENT + 8_192n + 24n, 3n * SEGMENT + 8_192n],
    // A record that continues on a page ends behind its header.
    [3n * SEGMENT + 8_192n + 40n, 3n * SEGMENT + 8_192n + 40n],
    [3n * SEGMENT + 32n, 3n * SEGMENT + 32n],
    [3n * SEGMENT + 5_000n, 3n * SEGMENT + 5_000n],
  ];
  for (const [inserted, end] of ends) t.equal(lastRecordEnd(inserted, SEGMENT), end, `${inserted}`);
  t.end();
});

test('a standby is as old as the newest position of the primary that it has replayed', (t) => {
  const history = new PrimaryHistory(1_000);
  t.equal(history.asOf(100n), null, 'nothing is known');
  history.add(10, 100n, HERE);
  history.add(20, 100n, HERE);
  history.add(30, 150n, HERE);
  t.equal(history.asOf(99n), null, 'older than what is known');
  t.equal(history.asOf(100n), 20);
  t.equal(history.asOf(149n), 20);
  t.equal(history.asOf(150n), 30);
  t.equal(history.asOf(900n), 30);
  history.add(1_015, 160n, HERE);
  t.equal(history.asOf(120n), 20, 'kept for a second');
  history.add(1_025, 160n, HERE);
  t.equal(history.asOf(120n), null);
  t.end();
});

test('positions of another history say nothing', (t) => {
  const histories: readonly (readonly [name: string, position: bigint, origin: typeof HERE])[] = [
    ['a primary that was restored', 50n, HERE],
    ['a promoted standby', 200n, { system: '7', timeline: 2 }],
    ['another system', 200n, { system: '8', timeline: 1 }],
  ];
  for (const [name, position, origin] of histories) {
    const history = new PrimaryHistory(1_000);
    history.add(10, 100n, HERE);
    history.add(20, position, origin);
    t.equal(history.asOf(position), 20, name);
    t.equal(history.asOf(position - 1n), null, 'the positions before it are forgotten');
    t.equal(history.matches(HERE), origin === HERE);
  }
  t.end();
});

/** Only which server it is matters here. */
function serverNamed(standby: string | null): QueryServer {
  return { standby } as QueryServer;
}
const [A, B, PRIMARY] = [serverNamed('A'), serverNamed('B'), serverNamed(null)];

test('a session needs of another standby what it may have seen on one', (t) => {
  const reads = new SessionReads();
  t.equal(reads.notBeforeOn(A), Number.NEGATIVE_INFINITY);
  reads.onChosen(A, 100);
  const began = performance.now();
  reads.onEnded(A);
  t.equal(reads.notBeforeOn(A), 100, 'the same one does not go back');
  t.ok(reads.notBeforeOn(B) >= began, 'it may have shown all that was committed until the answer ended');
  reads.onEnded(PRIMARY);
  t.equal(
    reads.notBeforeOn(A),
    100,
    'the primary answers where no standby may, and that is no reason to stay there',
  );
  reads.requireCommitted(200);
  reads.requireCommitted(150);
  t.equal(reads.notBeforeOn(A), 200);
  t.end();
});

test('the steps of a request stay on one standby, or after it on the primary', (t) => {
  const session = new SessionReads();
  const steps = new StepReads(session);
  steps.requireCommitted(50);
  t.equal(steps.notBeforeOn(A), 50);
  steps.onChosen(A, 60);
  t.equal(steps.notBeforeOn(A), 60);
  t.equal(steps.notBeforeOn(B), Number.POSITIVE_INFINITY);
  steps.onEnded(A);
  steps.onEnded(PRIMARY);
  for (const standby of [A, B])
    t.equal(steps.notBeforeOn(standby), Number.POSITIVE_INFINITY, 'after a step on the primary');
  t.equal(session.notBeforeOn(A), 60, 'the session goes on with what the request has read');
  t.ok(session.notBeforeOn(B) > 60);
  t.end();
});

test('what a request must see holds for a single statement too', (t) => {
  for (const hasSteps of [false, true]) {
    const use = new StandbyUse(new SessionReads(), hasSteps);
    use.requireCommitted(50);
    t.equal(use.statement().standby?.notBeforeOn(A), 50);
  }
  const ofPrimary = new StandbyUse(null, false);
  ofPrimary.requireCommitted(50);
  t.equal(ofPrimary.statement().standby, null);
  t.end();
});
