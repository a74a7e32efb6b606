import tap, { test } from 'tap';
import { psqlScript, startBoth } from './support.js';

const both = await startBoth();
tap.teardown(() => both?.close());
const skip = both === null ? 'no native Postgres to compare with' : false;

const ODD = `values (1, E'a\\tb\\nc\\\\d', null), (2, '', 'x,"y"'), (3, E'\\\\.', E'\\r\\x0b\\f\\b'), (4, 'é😀|;', 'N')`;

/** What psql prints of each is the same from Postgres itself and from the gateway, byte for byte. */
const STATEMENTS: readonly string[] = [
  'copy (select id, label from product order by id) to stdout',
  `copy (${ODD}) to stdout`,
  `copy (${ODD}) to stdout with (delimiter '|', null 'NULL')`,
  `copy (${ODD}) to stdout (format csv)`,
  `copy (${ODD}) to stdout (format csv, header, delimiter ';', quote '''', escape '\\')`,
  `copy (${ODD}) to stdout (format csv, force_quote *)`,
  `copy (${ODD}) to stdout (format csv, null 'x', force_quote (column2))`,
  `copy (${ODD}) to stdout (format binary)`,
  `copy (select E'\\\\.' as a) to stdout csv`,
  `copy (select '' as a) to stdout csv header`,
  'copy (select * from sample order by id) to stdout',
  'copy (select * from sample order by id) to stdout (format csv, header true)',
  'copy (select id, real8, exact, moment, span, bytes, doc, numbers from sample order by id) to stdout (format binary)',
  'copy (select id from product where false) to stdout',
  'copy (select id from product where false) to stdout (format binary)',
  'copy (select count(*), sum(amount) from "order" group by region order by 1) to stdout with csv',
  `copy (select * from (values ('(')) v(")")) to stdout`,
  'COPY /* (select 2) */ (select 1) TO STDOUT;',
  'copy (select 1/0) to stdout',
  'copy (select no_such from product) to stdout',
  'copy (select 1) to stdout (format xml)',
  "copy (select 1) to stdout (delimiter 'ab')",
  "copy (select 1) to stdout (quote '!')",
  "copy (select 1) to stdout (delimiter ',', delimiter ';')",
  "copy (select 1) to stdout (format binary, null 'x')",
  'copy (select 1) to stdout (format csv, force_quote (nothing))',
  'copy (select 1) to stdout (nonsense)',
  "copy (select 1) to stdout (null E'\\n')",
  "copy (select 1) to stdout (format csv, delimiter '\"')",
];

for (const statement of STATEMENTS) {
  test(statement, { skip }, async (t) => {
    if (both === null) return;
    const script = `${statement.replace(/;$/, '')};\nselect 'after';\n`;
    const [ours, theirs] = await Promise.all([
      psqlScript(await both.gateway('user:ada'), script),
      psqlScript(both.direct, script),
    ]);
    t.equal(ours, theirs);
  });
}

test('COPY is governed like any question', { skip }, async (t) => {
  if (both === null) return;
  const env = await both.gateway('user:eu');
  const printed = await psqlScript(env, 'copy (select id, email from customer order by id) to stdout csv;');
  t.match(printed, /\n1,\[redacted\]\n2,\[redacted\]\n.*NOTICE/s);
  t.match(await psqlScript(env, 'copy customer (id, region) to stdout;'), /1\teu\n2\teu\n/);
  t.match(
    await psqlScript(env, 'copy osl.entities.customer to stdout csv header;'),
    /id,name,email,region\n/,
  );
  t.match(await psqlScript(env, 'copy customer (tax_no) to stdout;'), /ERROR: {2}42703/);
  t.match(
    await psqlScript(env, 'copy shop.customers to stdout;'),
    /1\tAda\t\[redacted\]\teu\n2\tBo\t\[redacted\]\teu\n/,
  );
  t.match(await psqlScript(env, 'copy shop.nothing to stdout;'), /ERROR: {2}42501/);
});

test('COPY writes nothing and reads no file', { skip }, async (t) => {
  if (both === null) return;
  const env = await both.gateway('user:ada');
  t.match(await psqlScript(env, "copy customer to '/tmp/x';"), /ERROR: {2}42501/);
  t.match(await psqlScript(env, "copy (select 1) to program 'cat';"), /ERROR: {2}42501/);
  t.match(await psqlScript(env, 'copy customer from stdin;\n1\n\\.\n'), /ERROR: {2}25006/);
});
