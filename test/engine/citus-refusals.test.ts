import t from 'tap';
import { refusalOf } from '../../src/engine/postgres/server-kind.js';
import { executionError } from '../../src/engine/upstream-error.js';

const ROLLUP = 'could not run distributed query with GROUPING SETS, CUBE, or ROLLUP';

t.test('what Citus refuses is explained in our own words', async (t) => {
  const refusal = refusalOf('citus', { sqlstate: '0A000', message: ROLLUP });
  t.match(refusal, { code: 'E0531', sqlstate: '0A000', http: 400, message: /ROLLUP/, hint: /tenant/ });
  t.match(refusalOf('citus', { sqlstate: '0A000', message: 'unsupported aggregate function mode' }), {
    code: 'E0531',
    message: /an aggregate/,
  });
  t.match(
    refusalOf('citus', {
      sqlstate: 'XX000',
      message: 'the query contains a join that requires repartitioning',
    }),
    { code: 'E0531', message: /other columns than the distribution column/ },
  );
  t.notMatch(
    refusalOf('citus', { sqlstate: '0A000', message: 'unsupported aggregate function secret' })?.message,
    'secret',
  );
});

t.test('no other text is passed on', async (t) => {
  for (const [sqlstate, message] of [
    ['0A000', `${ROLLUP} of 'Ann'`],
    ['0A000', 'unsupported aggregate function f: Ann'],
    ['0A000', ''],
    ['XX000', ROLLUP],
    ['P0001', ROLLUP],
    ['0A000', 'argument of TABLESAMPLE must be type real, not type text'],
    ['42601', 'a column definition list is required for functions returning "Ann"'],
  ] as const)
    t.equal(refusalOf('citus', { sqlstate, message }), null, `${sqlstate} ${message}`);
  for (const kind of ['postgres', 'cockroachdb', 'yugabytedb', 'aurora'] as const)
    t.equal(refusalOf(kind, { sqlstate: '0A000', message: ROLLUP }), null, kind);
});

t.test('a refusal comes before the meaning of its SQLSTATE', async (t) => {
  const source = { backstopSeconds: 300, refusalOf: refusalOf.bind(null, 'citus') };
  const told = (sqlstate: string, message: string) =>
    executionError({ sqlstate, message, parameter: null, position: null }, source, { sources: [] });
  t.match(told('42601', 'a column definition list is required for functions returning "record"'), {
    code: 'E0531',
    sqlstate: '0A000',
    message: /of which no column is read/,
  });
  t.match(told('0A000', 'something else'), { code: 'E0510', sqlstate: '0A000' });
});
