import type { EndpointKind } from '../endpoint.js';
import { CLERK_COLUMNS, CLERK_ROWS, run } from '../world.js';
import { directSessions, withRole } from './postgres.js';

const ROLE = 'leakbench_rls_clerk';

const SETUP = Object.entries(CLERK_COLUMNS)
  .map(
    ([table, columns]) => `
alter table ${table} enable row level security;
create policy clerk on ${table} for select to ${ROLE} using (${CLERK_ROWS[table]});
grant select (${columns.join(', ')}) on ${table} to ${ROLE};`,
  )
  .join('');

/** Postgres itself: row-security policies, and privileges on columns. */
export const ROW_SECURITY: EndpointKind = {
  name: 'row security',
  data: 'everything',
  start: async ({ owner }) => {
    for (const url of Object.values(owner)) await run(url, withRole(ROLE, SETUP));
    const open = await directSessions(owner.a, ROLE);
    return {
      what: 'Postgres with a row-security policy on each table, and privileges on columns',
      open: (world, login) => open(owner[world], login),
      close: async () => undefined,
    };
  },
};
