import { onBothEngines } from './both-engines.js';
import { startRest } from './fixture.js';

/** The entity \`sample\` of the shop, as JSON. */
const SAMPLES = [
  {
    id: 1,
    flag: true,
    small: -7,
    big: '9007199254740993',
    real4: 1.5,
    real8: 0.1,
    exact: '12345678901234567890.10',
    words: 'a "b" \\ \n\t\u0001 é 😀',
    token: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
    day: '2026-01-31',
    clock: '23:59:01.5',
    local: '2026-01-31T23:59:01.5',
    moment: '2026-01-31T23:59:01.25Z',
    span: '1 year 2 days 03:04:05',
    bytes: '3q2+7wA=',
    doc: { a: [1, null, Number.POSITIVE_INFINITY], b: 'é' },
    numbers: [1, null, 3],
    texts: ['a,b', 'c"d\\', null, 'NULL', ''],
    moments: ['2026-01-01T00:00:00Z', 'infinity'],
    docs: [{ x: 'y' }, null],
  },
  {
    id: 2,
    flag: false,
    small: 0,
    big: '-1',
    real4: 'NaN',
    real8: '-Infinity',
    exact: 'NaN',
    words: '',
    token: null,
    day: 'infinity',
    clock: null,
    local: '-infinity',
    moment: 'infinity',
    span: '-1 mons',
    bytes: '',
    doc: null,
    numbers: [],
    texts: [
      ['a', 'b'],
      ['c', 'd'],
    ],
    moments: null,
    docs: null,
  },
  {
    id: 3,
    flag: null,
    small: null,
    big: null,
    real4: 'Infinity',
    real8: 1e300,
    exact: '-0.5',
    words: null,
    token: null,
    day: '0044-03-15 BC',
    clock: null,
    local: '12026-01-01 00:00:00',
    moment: '0044-03-15 00:00:00+00 BC',
    span: null,
    bytes: null,
    doc: 17,
    numbers: [1, 2],
    texts: null,
    moments: null,
    docs: null,
  },
];

onBothEngines('every type has its form in JSON', async (t, options) => {
  const rest = await startRest(options);
  t.teardown(() => rest.close());
  const reply = await rest.ask('user:ann', { osql: 'SELECT * FROM osl.entities.sample ORDER BY id' });
  t.equal(reply.status, 200);
  t.equal(reply.headers['content-type'], 'application/json');
  t.strictSame(reply.json()['rows'], SAMPLES);
  t.match(reply.json(), { row_count: 3, truncated: false, form: 'structured' });
});
