import { ready } from 'osl-compiler';
import t from 'tap';
import { analyseCondition } from '../../../cli/rls/expression.js';
import { clientOf, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';

t.setTimeout(60_000);
await ready();
const postgres = await startNativePostgres();

/** Comparisons of literals, and whether their value is certain without the types of Postgres. */
const COMPARISONS: readonly (readonly [condition: string, isCertain: boolean])[] = [
  ['1 = 1', true],
  ['1 = 0', true],
  [`'a' = 'a'`, true],
  [`'a' = 'b'`, true],
  ['true = false', true],
  [`'01'::int = 1`, true], // printed as 1 = 1
  ['1.50 = 1.50', true],
  ['3000000000 = 3000000000', true],
  [`date '2020-01-01' = '2020-1-1'`, true], // printed alike
  ['1 = 1.0', false],
  ['not 1 = 1.0', false],
  ['1.0 = 1.00', false],
  ['-1 = -1', true],
  ['-1 = 1', false],
  [`'a'::char(3) = 'a '`, false],
  [`'abc'::char(2) = 'abc'::char(3)`, false],
  [`'1.0'::float8 = '1'`, true], // printed alike
  [`'{"a": 1, "b": 2}'::jsonb = '{"b": 2, "a": 1}'`, true], // printed alike
  [`interval '1 day' = '24:00:00'`, false],
];

t.test(
  'the value of a comparison of literals is that of Postgres',
  { skip: postgres === null && NO_NATIVE },
  async (t) => {
    if (postgres === null) return;
    const client = await clientOf(t, postgres);
    await client.query('create table doc (id int)');
    for (const [condition, isCertain] of COMPARISONS) {
      await client.query(`create policy p on doc using (${condition})`);
      const { rows } = await client.query<{ printed: string; value: boolean }>(
        `select pg_get_expr(polqual, polrelid) as printed, (${condition}) as value from pg_policy`,
      );
      await client.query('drop policy p on doc');
      const [{ printed, value } = { printed: '', value: null }] = rows;
      const expression = analyseCondition(printed);
      t.match(expression, { kind: 'parsed', constant: isCertain ? value : null }, `${condition}: ${printed}`);
    }
    // Not as Postgres prints it.
    t.match(analyseCondition(`'01'::int = 1`), { kind: 'parsed', constant: null });
  },
);
