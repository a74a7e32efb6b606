import type { Login } from '../endpoint.js';
import { attacks, from } from './attack.js';
import { SOURCE } from './sources.js';

const COUNT = 'select count(*) from customer';

/** The same question after another login. */
const logins = (all: readonly Login[]) => all.map((login) => ({ ask: COUNT, login }));

/** Somebody else's identity, in a login or in a statement. */
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
