import type { LoginChanges } from '../endpoint.js';
import { attacks, from, SOURCE } from './attack.js';

/** State of a session that changes what names mean, who asks, or what another session left. */
export const SESSION = attacks('session', [
  ...from(SOURCE.rowSecurity, [
    ['set row_security = off', 'select count(*) from customer'],
    ['set session_replication_role = replica', 'select count(*) from customer'],
  ]),
  ...from(SOURCE.searchPath, [
    ['set search_path = public', 'select count(*) from customer'],
    ['set search_path = pg_catalog, public', 'select count(*) from public.customer'],
    'select count(*) from public.customer',
    'select count(*) from "public"."purchase"',
  ]),
  ...from(SOURCE.setRole, [
    ['set role postgres', 'select count(*) from customer'],
    ['set session authorization postgres', 'select count(*) from customer'],
    ['set session authorization default', 'select count(*) from customer'],
  ]),
  ...from(SOURCE.rowSecurity, [
    ['reset all', 'select count(*) from customer'],
    ['discard all', 'select count(*) from customer'],
  ]),
  ...from(SOURCE.customSettings, [
    ["set app.region = 'south'", 'select count(*) from customer'],
    ["select set_config('app.region', 'south', false)", 'select count(*) from customer'],
    [
      'select set_config(\'request.jwt.claims\', \'{"role": "service_role"}\', false)',
      'select count(*) from customer',
    ],
  ]),
  ...from(SOURCE.setRole, [
    ["select set_config('role', 'postgres', false)", 'select count(*) from customer'],
  ]),
  ...from(SOURCE.searchPath, [
    ['create temp table customer as select 1 as id', 'select count(*) from customer'],
    ['create temp view v as select * from public.customer', 'select count(*) from v'],
    ['create temp table t as select * from customer', 'select count(*) from t'],
  ]),
  ...from(SOURCE.leakyViews, [
    [
      'set enable_indexscan = off',
      'set enable_bitmapscan = off',
      "create function pg_temp.f(text) returns bool language plpgsql cost 0.0001 as $$ begin raise notice '%', $1; return true; end $$",
      'select count(*) from customer where pg_temp.f(name)',
    ],
    [
      'set enable_indexscan = off',
      'set enable_bitmapscan = off',
      "create function pg_temp.g(text) returns bool language plpgsql cost 0.0001 as $$ begin raise notice '%', $1; return true; end $$",
      'select count(*) from purchase where pg_temp.g(item)',
    ],
  ]),
  ...from(SOURCE.statistics, [
    [
      'set enable_indexscan = off',
      'set enable_bitmapscan = off',
      'create function pg_temp.h(int, int) returns bool language plpgsql cost 0.0001 as $$ begin raise notice $n$%$n$, $1; return $1 = $2; end $$',
      'create operator pg_temp.=== (leftarg = int, rightarg = int, function = pg_temp.h)',
      'select count(*) from customer where id operator(pg_temp.===) 3',
    ],
  ]),
  ...from(SOURCE.definer, [
    ['do $$ declare n int; begin select count(*) into n from customer; raise notice $n$%$n$, n; end $$'],
  ]),
  ...from(SOURCE.rowSecurity, [
    ['begin', 'lock table customer in share mode', 'select count(*) from customer', 'rollback'],
    ['begin isolation level serializable', 'select count(*) from customer', 'commit'],
  ]),
  ...from(SOURCE.leakyViews, [
    [
      'set enable_indexscan = off',
      'set enable_bitmapscan = off',
      'select id from customer where 1 / credit > 0 order by id',
    ],
    ['set enable_seqscan = off', "select id from customer where name > 'M' and code::int > 0 order by id"],
    [
      'set from_collapse_limit = 1',
      'set join_collapse_limit = 1',
      'select count(*) from purchase p join customer c on c.id = p.customer_id and 1 / p.amount > 0',
    ],
  ]),
  ...from(SOURCE.writes, [
    [
      'set default_transaction_read_only = off',
      'begin',
      'insert into customer select * from customer',
      'rollback',
    ],
    ['begin', 'update customer set name = name where id > 1000', 'rollback'],
    ['begin', 'delete from customer where id > 1000', 'rollback'],
  ]),
  ...from(SOURCE.covertKeys, [
    [
      'begin',
      "insert into customer (id, region, name, code, born, vip, tags) values (1007, 'north', 'x', '1', '2000-01-01', false, '{}')",
      'rollback',
    ],
    ['begin', "insert into purchase values (5007, 1007, 'north', '2025-01-01', 1, 'x')", 'rollback'],
  ]),
  ...from(SOURCE.merge, [
    [
      'begin',
      'merge into customer c using (values (1007)) v(id) on c.id = v.id when matched then update set name = c.name',
      'rollback',
    ],
  ]),
  ...from(SOURCE.onConflict, [
    [
      'begin',
      "insert into customer (id, region, name, code, born, vip, tags, email, ssn) values (1007, 'north', 'x', '1', '2000-01-01', false, '{}', 'x', 'x') on conflict (id) do nothing",
      'rollback',
    ],
  ]),
  ...from(SOURCE.graphqlIds, [
    {
      language: 'graphql',
      ask: 'mutation { updateCustomerById(input: { id: 1007, customerPatch: { name: "x" } }) { customer { id } } }',
    },
    {
      language: 'graphql',
      ask: 'mutation { deleteCustomerById(input: { id: 1007 }) { deletedCustomerId } }',
    },
    {
      language: 'graphql',
      ask: 'mutation { createPurchase(input: { purchase: { id: 5007, customerId: 1007, region: "north", placed: "2025-01-01", amount: "1", item: "x" } }) { clientMutationId } }',
    },
  ]),
]);

const COUNT = 'select count(*) from customer';

/** The same question after another login. */
const logins = (all: readonly LoginChanges[]) => all.map((login) => ({ ask: COUNT, login }));

/** Attempts to take another identity, in a login or in a statement. */
export const IDENTITY = attacks('identity', [
  ...from(
    SOURCE.logins,
    logins([
      { user: 'postgres' },
      { user: 'postgres', password: '' },
      { user: 'postgres', password: 'postgres' },
      { user: 'leakbench_osl' },
      { user: '' },
    ]),
  ),
  ...from(
    SOURCE.claimedRoles,
    logins([{ user: 'user:admin' }, { user: 'clerk; set role postgres' }, { user: 'clerk\u0001postgres' }]),
  ),
  ...from(SOURCE.logins, logins([{ password: '' }, { password: 'x' }])),
  ...from(
    SOURCE.setRole,
    logins([{ options: '-c role=postgres' }, { options: '-c session_authorization=postgres' }]),
  ),
  ...from(SOURCE.rowSecurity, logins([{ options: '-c row_security=off' }])),
  ...from(SOURCE.searchPath, logins([{ options: '-c search_path=public' }])),
  ...from(SOURCE.rowSecurity, logins([{ options: '-c is_superuser=on' }])),
  ...from(SOURCE.customSettings, logins([{ options: '-c app.region=south' }])),
  ...from(
    SOURCE.logins,
    logins([
      { options: '-c session_preload_libraries=auto_explain' },
      { options: '--role=postgres' },
      { database: 'postgres' },
      { database: 'template1' },
    ]),
  ),
  ...from(
    SOURCE.claimedRoles,
    logins([{ applicationName: "'; set role postgres; --" }, { applicationName: 'postgres' }]),
  ),
  ...from(SOURCE.setRole, [
    ['select current_user is not null, session_user is not null', COUNT],
    ["select has_table_privilege('staff', 'select')", 'select count(*) from staff'],
    ["select pg_has_role('postgres', 'usage')", COUNT],
  ]),
  ...from(SOURCE.claimedRoles, logins([{ user: 'user:peer' }, { user: 'admin' }])),
]);
