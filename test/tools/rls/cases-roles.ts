import { type Case, ROWS, type Shown } from './support.js';

const COUNTRY = 'create table app.country (name text);';

const DATABASE_OFF = `
  do $$ begin execute format('alter database %I set row_security = off', current_database()); end $$;`;

/** A file of the server for the next statement, which may not read `data_directory` itself. */
const FILE_OF_SERVER: Shown = [
  null,
  `select set_config('rls.file', current_setting('data_directory') || '/PG_VERSION', true)`,
];
const COPY_FILE = `do $$ begin create temporary table line (text text) on commit drop;
  execute format('copy line from %L', current_setting('rls.file'));
  if (select count(*) from line) <> 1 then raise 'no line'; end if; end $$`;

export const ROLES_CASES: readonly Case[] = [
  {
    code: 'RLS004',
    faulty: 'alter role rls_owner login',
    finds: ['RLS004 app.doc'],
    sound: 'alter role rls_owner login; alter table app.doc force row level security;',
    shown: [ROWS, ['rls_owner', 'select * from app.doc', 2]],
    soundShown: [ROWS, ['rls_owner', 'select * from app.doc', 0]],
  },
  {
    code: 'RLS004',
    faulty: 'create role rls_web login; grant rls_owner to rls_web;',
    finds: ['RLS004 app.doc'],
    sound: 'create role rls_web login noinherit; grant rls_owner to rls_web;',
    shown: [ROWS, ['rls_web', 'select * from app.doc', 2]],
    soundShown: [ROWS, ['rls_web', 'select * from app.doc', '42501']],
  },
  {
    code: 'RLS005',
    faulty: 'create role rls_admin login bypassrls; grant rls_app to rls_admin;',
    finds: ['RLS005 rls_admin'],
    sound: 'create role rls_admin login; grant rls_app to rls_admin;',
    shown: [ROWS, ['rls_admin', 'select * from app.doc', 2]],
    soundShown: [ROWS, ['rls_admin', 'select * from app.doc', 0]],
  },
  {
    code: 'RLS005',
    faulty:
      'create role rls_service bypassrls; create role rls_web login noinherit; grant rls_service to rls_web;',
    finds: ['RLS005 rls_web'],
    sound: 'create role rls_service bypassrls; create role rls_web login noinherit;',
  },
  {
    code: 'RLS006',
    faulty: 'create role rls_root superuser; create policy root on app.doc to rls_root using (false);',
    finds: ['RLS006 root on app.doc'],
    sound: 'create policy root on app.doc to rls_other using (false);',
    shown: [ROWS, ['rls_root', 'select * from app.doc', 2]],
  },
  {
    code: 'RLS029',
    faulty: 'create role rls_web login; grant pg_read_server_files to rls_web;',
    finds: ['RLS029 rls_web'],
    sound: 'create role rls_web login;',
    shown: [FILE_OF_SERVER, ['rls_web', COPY_FILE]],
    soundShown: [FILE_OF_SERVER, ['rls_web', COPY_FILE, '42501']],
  },
  {
    code: 'RLS039',
    faulty: 'alter role rls_app login; alter role rls_app set row_security = fals',
    finds: ['RLS039 rls_app'],
    sound: 'alter role rls_app set row_security = off', // it cannot log in
    // SET ROLE does not apply the settings of a role, a login does.
    shown: [
      ROWS,
      [null, `select set_config('row_security', 'off', true)`],
      ['rls_app', 'select * from app.doc', '42501'],
    ],
  },
  {
    code: 'RLS039',
    // What is set for a role takes the place of what is set for the database.
    faulty: `${DATABASE_OFF} alter role rls_app login; alter role rls_other login; alter role rls_app set row_security = on;`,
    finds: ['RLS039 rls_other'],
    sound: `${DATABASE_OFF} alter role rls_app login; alter role rls_app set row_security = on;`,
  },
  {
    code: 'RLS051',
    faulty: 'create role rls_web login replication',
    finds: ['RLS051 rls_web'],
    sound: 'create role rls_web replication',
  },
  {
    code: 'RLS052',
    faulty: `create role rls_web login; grant pg_read_all_data to rls_web; ${COUNTRY}`,
    finds: ['RLS001 app.country', 'RLS052 rls_web'],
    sound: `create role rls_web login; ${COUNTRY}`,
    shown: [
      [null, `revoke all on app.country from rls_web; insert into app.country values ('x');`],
      ['rls_web', 'select * from app.country', 1],
    ],
    soundShown: [['rls_web', 'select * from app.country', '42501']],
  },
  {
    code: 'RLS054',
    faulty: 'create role rls_web login createrole',
    finds: ['RLS054 rls_web'],
    sound: 'create role rls_web login',
    shown: [
      ROWS,
      [
        'rls_web',
        `do $$ begin grant rls_owner to rls_web; set local role rls_owner;
         if (select count(*) from app.doc) <> 2 then raise 'no rows'; end if; end $$`,
      ],
    ],
    soundShown: [['rls_web', 'grant rls_owner to rls_web', '42501']],
  },
];
