import t from 'tap';
import { ProcessHistory } from '../../src/ask/operating/history/history.js';
import { historyView } from '../../src/ask/operating/history/view.js';
import { RequestObserver, type SlowStatement, StageTimes } from '../../src/ask/request/meters.js';

/** Figures over time of one process and of two, and the slowest statements of each minute. */

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };
/** The start of a step of five minutes. */
const START = Date.UTC(2026, 0, 31, 9, 0, 0);

function process() {
  const observing = new RequestObserver(SILENT, 0);
  const state = { durable: 0, records: 0, running: 0, sessions: 0 };
  const history = new ProcessHistory({
    observing,
    engines: new Map([
      [
        'db',
        {
          pools: () =>
            (['questions', 'system'] as const).map((purpose) => ({
              purpose,
              standby: null,
              size: 10,
              open: 5,
              running: state.running,
              waiting: 1,
              reach: 'open' as const,
            })),
        },
      ],
    ]),
    audit: {
      stats: () => ({ ...NO_AUDIT, records: state.records, durable: state.durable }),
    },
    wireSessions: () => state.sessions,
  });
  const ask = (us: number, outcome: 'ok' | 'error' | 'cancelled' = 'ok'): void => {
    const meter = observing.meters.meterFor({
      surface: 'rest',
      form: 'structured',
      decision: 'allow',
      connector: 'db',
    });
    const times = new StageTimes();
    times.set('total', us);
    meter.add(times);
    meter.count(outcome);
  };
  const refuse = (): void =>
    observing.meters
      .meterFor({ surface: 'wire', form: 'other', decision: 'deny', connector: null })
      .count('none');
  return { observing, state, history, ask, refuse };
}

const NO_AUDIT = {
  anchored: 0,
  groups: 0,
  gaps: 0,
  failure: null,
  writer: 'w',
  epoch: 1,
  sync: 'disk',
  segment: 1,
} as const;

const STATEMENT = {
  request_id: 'r',
  surface: 'rest',
  action: 'query',
  form: 'structured',
  objects: [],
  outcome: 'refused',
  code: 'E2101',
  rows: 0,
  shape: 'select ?',
  fingerprint: 'f',
} as const;

t.test('counts and percentiles are of the step; the step that runs is not told yet', (t) => {
  const { history, ask, refuse, state } = process();
  for (let i = 0; i < 98; i += 1) ask(900);
  ask(40_000, 'error');
  ask(9_000_000, 'cancelled');
  refuse();
  state.running = 4;
  history.sample(START + 1_000);
  state.running = 2;
  history.sample(START + 2_000);
  history.sample(START + 10_000);
  ask(200);
  history.sample(START + 11_000);
  const at = (now: number) => historyView([history.read('hour')], 'hour', 'all', now);
  t.ok(
    at(START + 9_999).lines[0]?.questions.every((count) => count === null),
    'nothing is over',
  );
  const view = at(START + 25_000);
  const [line] = view.lines;
  t.match(view, { every_seconds: 10, from: new Date(START - 280_000).toISOString() });
  t.strictSame(line?.questions.slice(-3), [null, 100, 1], 'before the start is a gap');
  t.strictSame(line?.refused.slice(-2), [1, 0]);
  t.strictSame(line?.failed.slice(-2), [1, 0]);
  t.strictSame(line?.cancelled.slice(-2), [1, 0]);
  t.ok((line?.p50_ms.at(-2) ?? 0) > 0.5 && (line?.p50_ms.at(-2) ?? 0) <= 1);
  t.equal(line?.p99_ms.at(-2), 50, 'the bound of the bucket of the 99th');
  t.equal(line?.p99_ms.at(-1), 0.249, 'of this step alone');
  t.strictSame(view.pools[0]?.running.slice(-2), [4, 2], 'the highest sample, without the system’s sessions');
  t.strictSame(view.pools[0]?.size.slice(-2), [10, 10]);
  t.ok((view.memory_bytes.at(-1) ?? 0) > 10_000_000);
  t.end();
});

t.test('several processes are added up; one that was not sampled leaves no gap', (t) => {
  const [one, two] = [process(), process()];
  one.ask(900);
  two.ask(900);
  two.refuse();
  one.state.records = 7;
  two.state.records = 5;
  two.state.durable = 4;
  one.history.sample(START);
  two.history.sample(START);
  two.history.sample(START + 10_000);
  two.ask(900);
  two.history.sample(START + 11_000);
  const rings = [one.history.read('hour'), two.history.read('hour')];
  const view = historyView(rings, 'hour', 'surface', START + 30_000);
  t.strictSame(
    view.lines.map(({ name, questions, refused }) => [name, questions.slice(-3), refused.slice(-3)]),
    [
      ['rest', [2, 1, null], [0, 0, null]],
      ['wire', [0, 0, null], [1, 0, null]],
    ],
    'a step without any sample is a gap',
  );
  t.strictSame(view.audit_waiting.slice(-3), [8, 1, null]);
  const byConnector = historyView(rings, 'hour', 'connector', START + 30_000);
  t.strictSame(
    byConnector.lines.map(({ name }) => name),
    [null, 'db'],
  );
  t.end();
});

t.test('what ends between two samples is in one step and in the minute of that step', (t) => {
  const { history, observing, ask } = process();
  history.sample(START + 59_900);
  ask(900);
  observing.slowest.add(STATEMENT, 900, START + 60_100);
  history.sample(START + 60_900);
  const view = historyView([history.read('hour')], 'hour', 'all', START + 80_000);
  t.strictSame(view.lines[0]?.questions.slice(-3), [1, 0, null], 'the step before the minute');
  t.equal(observing.slowest.between(START, START + 60_000).length, 1, 'the minute before');
  t.end();
});

t.test('a ring is used again without what it had, and the day has longer steps', (t) => {
  const { history, ask } = process();
  ask(900);
  history.sample(START);
  const later = START + 3_600_000;
  history.sample(later);
  const hour = historyView([history.read('hour')], 'hour', 'all', later + 10_000);
  t.equal(hour.lines[0]?.questions.at(-1), 0, 'an hour later the place is another step');
  t.equal(hour.lines[0]?.questions.filter((count) => count !== null).length, 1);
  const day = historyView([history.read('day')], 'day', 'all', later + 300_000);
  t.equal(day.every_seconds, 300);
  t.equal(day.lines[0]?.questions.at(-13), 1);
  t.equal(day.lines[0]?.questions.length, 30, 'not more than 30 before it began');
  history.sample(START + 90_000_000);
  const full = historyView([history.read('day')], 'day', 'all', START + 90_300_000);
  t.equal(full.lines[0]?.questions.length, 288);
  t.end();
});

t.test('connectors beyond the bound share a line, so that memory is bounded', (t) => {
  const { history, observing } = process();
  for (let i = 0; i < 40; i += 1) {
    const labels = { surface: 'rest', form: 'structured', decision: 'allow', connector: `c${i}` } as const;
    const times = new StageTimes();
    times.set('total', 900);
    observing.meters.meterFor(labels).add(times);
  }
  history.sample(START);
  const view = historyView([history.read('hour')], 'hour', 'connector', START + 10_000);
  const total = view.lines.reduce((sum, { questions }) => sum + (questions.at(-1) ?? 0), 0);
  t.equal(total, 40, 'none is lost');
  t.equal(view.lines.length, 25);
  t.equal(view.lines.find(({ name }) => name === 'other connectors')?.questions.at(-1), 16);
  t.end();
});

t.test('the five slowest of a minute are kept, and of an old minute one', (t) => {
  const { observing } = process();
  const { slowest } = observing;
  const add = (us: number, now: number): void => slowest.add({ ...STATEMENT, request_id: `r${us}` }, us, now);
  t.notOk(observing.needsReport(1e12), 'nothing is kept before sampling begins');
  add(1, START);
  t.strictSame(slowest.between(START, START + 60_000), []);
  slowest.startMinute(START);
  for (const us of [3_000, 9_000, 1_000, 5_000, 7_000]) add(us, START + 100);
  t.notOk(observing.needsReport(999), 'faster than the fifth');
  t.ok(observing.needsReport(1_000));
  for (const us of [500, 6_000]) add(us, START + 200);
  const took = (from: number, until: number) =>
    slowest.between(from, until).map(({ duration_ms }: SlowStatement) => duration_ms);
  t.strictSame(took(START, START + 60_000), [9, 7, 6, 5, 3]);
  t.match(slowest.between(START, START + 1)[0], {
    request_id: 'r9000',
    outcome: 'refused',
    shape: 'select ?',
    at: new Date(START + 100).toISOString(),
  });
  slowest.startMinute(START + 60_000);
  t.ok(observing.needsReport(1), 'each minute begins anew');
  add(100, START + 61_000);
  t.strictSame(took(START, START + 120_000), [9, 7, 6, 5, 3, 0.1]);
  t.strictSame(took(START + 60_000, START + 120_000), [0.1]);
  slowest.startMinute(START + 3_600_000);
  t.strictSame(took(START, START + 120_000), [9, 0.1], 'an hour later');
  slowest.startMinute(START + 86_400_000);
  t.strictSame(took(START, START + 120_000), [0.1], 'a day later');
  t.end();
});
