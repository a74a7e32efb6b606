import { CLERK_COLUMNS, rowsOf } from '../world.js';
import { onServer } from './postgres.js';

const ROLE = 'leakbench_rls_clerk';

/** Postgres itself: row-security policies, and privileges on columns. */
export const ROW_SECURITY = onServer({
  name: 'row security',
  data: 'everything',
  what: 'Postgres with a row-security policy on each table, and privileges on columns',
  role: ROLE,
  script: Object.entries(CLERK_COLUMNS)
    .map(
      ([table, columns]) => `
alter table ${table} enable row level security;
create policy clerk on ${table} for select to ${ROLE} using (${rowsOf(table)});
grant select (${columns.join(', ')}) on ${table} to ${ROLE};`,
    )
    .join(''),
});
