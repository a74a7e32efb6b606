import { examplesOf } from 'osl-console/screens/ask/examples-of';
import { applied, fixOf } from 'osl-console/screens/ask/fix';
import { graphOfSchema } from 'osl-console/screens/map/graph/graph-of-schema';
import { questionFor } from 'osl-console/screens/map/words';
import t from 'tap';
import { genericExamples } from '../../../cli/serve/examples.js';
import type { Schema } from '../../../clients/typescript/types.js';
import { startRest } from './fixture.js';

/** A database whose names need quotes: capitals, a blank, words of the grammar, and a quote in a table's. */
const MANIFEST = `
version: 1
tenant: staff
connectors:
  db:
    kind: pglite
    tables:
      HR.Employee:
        columns:
          EmpId: { type: int4 }
          Full Name: { type: text, sensitivity: pii }
          select: { type: text }
          State: { type: text }
          order: { type: int4 }
      'HR."Unit ""A"""': { columns: { group: { type: int4 } } }
entities:
  Employee:
    source: db.HR.Employee
    primary_key: [EmpId]
    entity_key_columns: [EmpId, order]
    columns: [EmpId, Full Name, select, State, order]
    computed: { Twice It: { expression: '"EmpId" * 2' } }
  user: { source: 'db.HR."Unit ""A"""', primary_key: [group], columns: [group] }
relationships:
  Works In: { from: Employee.order, to: user.group, kind: many_to_one }
metrics:
  Head Count: { entity: Employee, expression: count(*) }
  sum: { entity: Employee, expression: sum("EmpId") }
raw_sql:
  allow: [db.HR.Employee, 'db.HR."Unit ""A"""']
`;

const POLICY = `
version: 1
tenant: staff
subjects: { user:all: { ceiling: [all] } }
roles:
  all:
    grants:
      - { on: Employee, columns: '*' }
      - { on: user, columns: '*' }
masks: { pii: redact }
limits: { query: 1000 }
`;

const SCRIPT = `
create schema "HR";
create table "HR"."Employee" ("EmpId" int primary key, "Full Name" text, "select" text, "State" text, "order" int);
insert into "HR"."Employee" values (1, 'Ada', 'a', 'on', 7), (2, 'Bo', 'b', 'off', 7);
create table "HR"."Unit ""A""" ("group" int primary key);
insert into "HR"."Unit ""A""" values (7);
`;

const rest = await startRest({ manifest: MANIFEST, policy: POLICY, script: SCRIPT, schema: 'HR' });
t.teardown(() => rest.close());

/** The status, and what is wrong, if anything is. */
async function answerTo(body: Readonly<Record<string, unknown>>): Promise<string> {
  const reply = await rest.ask('user:all', body);
  const { code = '', detail = '' } = reply.json();
  return `${reply.status} ${code} ${detail}`.trim();
}

t.test('every question that is offered is answered, whatever the names', async (t) => {
  const authorization = `Bearer ${await rest.test.token('user:all')}`;
  const schema = (await rest.send('/osl/schema?governed=true', { headers: { authorization } })).json();
  t.match(schema, { entities: [{}, {}] });
  const shown = schema as unknown as Schema; // as the document of the routes has it
  const inConsole = examplesOf(shown).map(({ text }) => text);
  const objects = [...graphOfSchema(shown).objects.values()];
  const offered = [
    ...inConsole,
    ...objects.flatMap((object) => questionFor(object) ?? []),
    ...[...shown.entities, ...shown.metrics, ...shown.relationships, ...shown.forms].flatMap(
      (one) => one.examples,
    ),
    ...genericExamples(rest.test.service.model()).map(({ osql }) => osql),
  ];
  t.ok(
    inConsole.some((text) => /"Full Name".*"Employee"/.test(text)),
    'one with a masked column',
  );
  t.ok(
    inConsole.some((text) => /measure\("Head Count"\) as "Head Count"/.test(text)),
    'one of a metric',
  );
  t.ok(offered.length > 12, `${offered.length} questions`);
  for (const osql of offered) t.equal(await answerTo({ osql }), '200', osql);
});

/** A question with a name that is not quite right, what is offered for it, and whether that is an answer. */
const SLIPS: readonly (readonly [text: string, hint: string])[] = [
  ['select 1 from employee', '`"Employee"`'],
  ['select 1 from Employee', '`"Employee"`'],
  ['select 1 from osl.entities.employee', '`"Employee"`'],
  ['select 1 from HR.Employee', '`"Employee"`'],
  ['select 1 from "usr"', '`"user"`'],
  ['select EmpId from "Employee"', '`"EmpId"`'],
  ['select e.EmpId from "Employee" e', '`"EmpId"`'],
  ['select "FullName" from "Employee"', '`"Full Name"`'],
  ['select "selct" from "Employee"', '`"select"`'],
  ['select twice_it from "Employee"', '`"Twice It"`'],
  ['select Employee."EmpId" from "Employee"', '`"Employee"`'],
  ['select employee.* from "Employee"', '`"Employee"`'],
  ['select "x""q" from (select 1 as "x""y") s', '`"x""y"`'],
  ['select measure(head_count) from "Employee"', '`"Head Count"`'],
  ['select measure(sun) from "Employee"', '`sum`'],
  ["select 1 from traverse(anchor => 'employee', target => 'user', keys => (1))", '`Employee`'],
  [
    "select 1 from traverse(anchor => 'Employee', target => 'user', keys => (1), via => 'works_in')",
    '`Works In`',
  ],
];

const RAW_SLIPS: typeof SLIPS = [
  ['select 1 from HR.Employee', '`"HR"."Employee"`'],
  ['select 1 from public."Employee"', '`"HR"."Employee"`'],
  ['select 1 from "HR"."Unit A"', '`"HR"."Unit ""A"""`'],
  ['select EmpId from "HR"."Employee"', '`"EmpId"`'],
];

t.test(
  'a name that a message offers is written as it must be, and putting it there is the cure',
  async (t) => {
    for (const [form, slips] of [
      ['osql', SLIPS],
      ['sql', RAW_SLIPS],
    ] as const) {
      for (const [text, offered] of slips) {
        const { status, ...problem } = (await rest.ask('user:all', { [form]: text })).json();
        t.match(
          { status, hint: problem['hint'] },
          { status: /40[03]/, hint: `perhaps you meant ${offered}` },
          text,
        );
        const fix = fixOf(text, problem as unknown as Parameters<typeof fixOf>[1]); // a problem as REST writes it
        const mended = fix === null ? text : applied(text, fix);
        t.equal(await answerTo({ [form]: mended }), '200', mended);
      }
    }
  },
);

t.test('names in other hints, too', async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    [
      'select 1 from "Employee" a join "Employee" b on a."State" = b."State"',
      'sealed keys here: a."EmpId", a."order", b."EmpId", b."order"',
    ],
    [
      'select max("Head Count") from "Employee"',
      'the metric says itself how it is aggregated: MEASURE("Head Count")',
    ],
  ];
  for (const [osql, hint] of cases) {
    const reply = (await rest.ask('user:all', { osql })).json();
    t.match(String(reply['hint']).slice(0, hint.length), hint, osql);
  }
});
