import { attacks, from, SOURCE } from './attack.js';

/** A statement, many times. */
const often = (text: string): readonly string[] => Array.from({ length: 16 }, () => text);

/** Statements that are kept: a plan or a cursor that forgets for whom it was made. */
export const CURSORS = attacks('cursors', [
  ...from(SOURCE.cursorRules, [
    ['begin', 'declare c cursor for select id from customer order by id', 'fetch all from c', 'commit'],
    [
      'begin',
      'declare c scroll cursor for select id from customer order by id desc',
      'fetch 3 from c',
      'commit',
    ],
    [
      'begin',
      'declare c scroll cursor for select id from customer order by id',
      'fetch last from c',
      'commit',
    ],
    [
      'begin',
      'declare c scroll cursor for select id from customer order by id',
      'fetch absolute 61 from c',
      'commit',
    ],
    ['begin', 'declare c scroll cursor for select id from customer order by id', 'move all in c', 'commit'],
    [
      'begin',
      'declare c scroll cursor for select id from customer order by id',
      'fetch absolute -1 from c',
      'commit',
    ],
    [
      'begin',
      'declare c cursor with hold for select id from customer order by id desc',
      'commit',
      'fetch 3 from c',
    ],
    [
      'begin',
      'declare c binary cursor for select id from customer order by id desc',
      'fetch 3 from c',
      'commit',
    ],
    [
      'begin',
      'declare c cursor for select 1 / credit from customer order by id',
      'fetch all from c',
      'commit',
    ],
  ]),
  ...from(SOURCE.reusedPlans, [
    ['prepare p as select id from customer order by id desc limit 3', 'execute p'],
    ['prepare p(int) as select id from customer where id > $1 order by id limit 3', 'execute p(1000)'],
    ['prepare p(text) as select id from customer where name = $1', "execute p('Needle 1007')"],
    ['prepare p(text) as select count(*) from customer where region = $1', "execute p('south')"],
    [
      'prepare p(int) as select count(*) from customer where id > $1',
      ...Array.from({ length: 6 }, () => 'execute p(1000)'),
    ],
    ['prepare p as select code::int from customer order by id desc limit 1', 'execute p'],
    [
      'prepare p as select * from customer',
      'select statement, parameter_types from pg_prepared_statements order by 1',
    ],
    ['prepare p as select ssn from customer', 'execute p'],
    ['prepare p as table customer', 'execute p', 'deallocate p', 'execute p'],
  ]),
  ...from(SOURCE.errorOrder, [
    ['prepare p(int) as select 100 / (id - $1) from customer order by id', 'execute p(1007)'],
  ]),
  ...from(SOURCE.cursorRules, [
    [
      'begin',
      'declare c cursor for select id from purchase order by id',
      'fetch 1000 from c',
      'select name, is_scrollable from pg_cursors',
      'commit',
    ],
  ]),
  ...from(SOURCE.reusedPlans, [
    ['prepare p as select count(*) from customer', 'execute p', 'discard plans', 'execute p'],
    [
      'set plan_cache_mode = force_generic_plan',
      'prepare p(text) as select id from customer where region = $1 order by id limit 3',
      "execute p('south')",
    ],
  ]),
  ...from(SOURCE.subqueries, [
    { ask: 'select id from customer where id > $1::int order by id limit 3', values: ['1000'] },
    { ask: 'select count(*) from purchase where item like $1', values: ['%lpha%'] },
  ]),
  ...from(SOURCE.reusedPlans, [
    { before: ['select count(*) from customer'], ask: ['select count(*) from customer'] },
    {
      before: ['select id from customer order by id desc limit 3'],
      ask: ['select id from customer order by id desc limit 3'],
    },
    {
      before: ['select * from customer order by id limit 1'],
      ask: ['select * from customer order by id limit 1'],
    },
    {
      before: ['select email from customer order by id limit 3'],
      ask: ['select email from customer order by id limit 3'],
    },
    {
      before: ['select ssn from customer order by id limit 3'],
      ask: ['select ssn from customer order by id limit 3'],
    },
    {
      before: ["select id from customer where name = 'Needle 1007' or id = 7 order by id"],
      ask: ["select id from customer where name = 'Needle 1007' or id = 7 order by id"],
    },
    {
      before: ["select id from customer where region = 'south' order by id limit 3"],
      ask: ["select id from customer where region = 'south' order by id limit 3"],
    },
    {
      before: ['select region, count(*) from customer group by region order by region'],
      ask: ['select region, count(*) from customer group by region order by region'],
    },
    {
      before: [
        'select p.id, c.name from purchase p left join customer c on c.id = p.customer_id order by p.id desc limit 10',
      ],
      ask: [
        'select p.id, c.name from purchase p left join customer c on c.id = p.customer_id order by p.id desc limit 10',
      ],
    },
    {
      before: ['select 1 / credit from customer order by id'],
      ask: ['select 1 / credit from customer order by id'],
    },
    { before: ['select count(*) from staff'], ask: ['select count(*) from staff'] },
    {
      before: ['copy (select id from customer order by id desc limit 3) to stdout'],
      ask: ['copy (select id from customer order by id desc limit 3) to stdout'],
    },
    {
      before: ['explain select * from customer where id > 1000'],
      ask: ['explain select * from customer where id > 1000'],
    },
    {
      before: [
        "select attname from pg_attribute where attrelid = 'customer'::regclass and attnum > 0 order by attname",
      ],
      ask: [
        "select attname from pg_attribute where attrelid = 'customer'::regclass and attnum > 0 order by attname",
      ],
    },
    {
      before: [
        'select count(*) from purchase',
        'select count(*) from purchase',
        'select count(*) from purchase',
      ],
      ask: [
        'select count(*) from purchase',
        'select count(*) from purchase',
        'select count(*) from purchase',
      ],
    },
    {
      before: [
        'prepare p(int) as select id from customer where id > $1 order by id desc limit 3',
        'execute p(7)',
        'execute p(7)',
        'execute p(7)',
      ],
      ask: [
        'prepare p(int) as select id from customer where id > $1 order by id desc limit 3',
        'execute p(7)',
        'execute p(7)',
        'execute p(7)',
      ],
    },
  ]),
  ...from(SOURCE.pooledSettings, [
    {
      first: ['select 1'],
      before: ['prepare p as select id from customer order by id desc limit 3', 'execute p'],
      ask: ['execute p'],
    },
    {
      first: ['select 1'],
      before: [
        'begin',
        'declare c cursor with hold for select id from customer order by id desc limit 3',
        'commit',
      ],
      ask: ['fetch all from c', 'select count(*) from customer'],
    },
    {
      first: ['select 1'],
      before: ['create temp table t as select * from customer'],
      ask: ['select count(*) from t'],
    },
    { first: ['select 1'], before: ["set app.region = 'south'"], ask: ['select count(*) from customer'] },
    {
      first: ['select 1'],
      before: ['set search_path = public', 'begin', 'select count(*) from customer'],
      ask: ['select count(*) from customer'],
    },
  ]),
  ...from(SOURCE.reusedPlans, [
    {
      language: 'graphql',
      before: ['{ allCustomers { totalCount } }'],
      ask: '{ allCustomers { totalCount } }',
    },
    {
      language: 'mcp',
      before: ['{"name": "semantic_schema", "arguments": {"names": ["customer"]}}'],
      ask: '{"name": "semantic_schema", "arguments": {"names": ["customer"]}}',
    },
  ]),
  ...from(SOURCE.graphqlIds, [
    { language: 'graphql', ask: '{ allCustomers(last: 2) { edges { cursor node { id } } } }' },
    {
      language: 'graphql',
      ask: '{ allCustomers(first: 2, after: "WyJwcmltYXJ5X2tleV9hc2MiLFsxMDA2XV0=") { nodes { id } } }',
    },
    { language: 'graphql', ask: '{ allCustomers(offset: 60, first: 3) { nodes { id } } }' },
  ]),
  ...from(SOURCE.reusedPlans, [
    // So often that a gateway keeps the statement for short ways.
    { before: often('select count(*) from purchase'), ask: 'select count(*) from purchase' },
    {
      before: often("select id from customer where region = 'south' order by id limit 3"),
      ask: "select id from customer where region = 'west' order by id limit 3",
    },
  ]),
]);
