import { attacks } from './attack.js';

/** Statements that are kept: a plan or a cursor that forgets for whom it was made. */
export const CURSORS = attacks(
  'cursors',
  {
    source: 'CVE-2016-2193 and CVE-2024-10976 (PostgreSQL): plans reused under another role',
    defence: 'what is kept is bound to its caller and to the versions of its rules',
  },
  [
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
    ['prepare p(int) as select 100 / (id - $1) from customer order by id', 'execute p(1007)'],
    [
      'begin',
      'declare c cursor for select id from purchase order by id',
      'fetch 1000 from c',
      'select name, is_scrollable from pg_cursors',
      'commit',
    ],
    ['prepare p as select count(*) from customer', 'execute p', 'discard plans', 'execute p'],
    [
      'set plan_cache_mode = force_generic_plan',
      'prepare p(text) as select id from customer where region = $1 order by id limit 3',
      "execute p('south')",
    ],
    { ask: 'select id from customer where id > $1::int order by id limit 3', values: ['1000'] },
    { ask: 'select count(*) from purchase where item like $1', values: ['%lpha%'] },
  ],
);
