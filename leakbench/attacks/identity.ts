import { attacks, type Row } from './attack.js';

const COUNT = 'select count(*) from customer';

/** Logins and startup parameters of somebody else. */
const logins: readonly Row[] = [
  { user: 'postgres' },
  { user: 'postgres', password: '' },
  { user: 'postgres', password: 'postgres' },
  { user: 'leakbench_osl' },
  { user: '' },
  { user: 'user:admin' },
  { user: 'clerk; set role postgres' },
  { user: 'clerk\u0001postgres' },
  { password: '' },
  { password: 'x' },
  { options: '-c role=postgres' },
  { options: '-c session_authorization=postgres' },
  { options: '-c row_security=off' },
  { options: '-c search_path=public' },
  { options: '-c is_superuser=on' },
  { options: '-c app.region=south' },
  { options: '-c session_preload_libraries=auto_explain' },
  { options: '--role=postgres' },
  { database: 'postgres' },
  { database: 'template1' },
  { applicationName: "'; set role postgres; --" },
  { applicationName: 'postgres' },
].map((login) => ({ ask: COUNT, login }));

/** Somebody else's identity, in a login or in a statement. */
export const IDENTITY = attacks(
  'identity',
  {
    source:
      'Hasura and PostgREST documentation: roles that a request claims; CVE-2023-2455 (PostgreSQL): policies after a change of the user',
    defence: 'who asks is proved by a credential, and nothing in a session changes it',
  },
  [
    ...logins,
    ['select current_user is not null, session_user is not null', COUNT],
    ["select has_table_privilege('staff', 'select')", 'select count(*) from staff'],
    ["select pg_has_role('postgres', 'usage')", COUNT],
  ],
);
