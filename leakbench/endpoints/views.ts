import type { EndpointKind } from '../endpoint.js';
import { CLERK_COLUMNS, CLERK_ROWS, run } from '../world.js';
import { directSessions, withRole } from './postgres.js';

/** Views in a schema of their own, which is all that the clerk may read. */
function views(name: string, what: string, option: string): EndpointKind {
  const schema = name.replace(/\W/g, '_');
  const role = `leakbench_${schema}_clerk`;
  const objects = Object.entries(CLERK_COLUMNS).map(
    ([table, columns]) =>
      `create view ${schema}.${table} ${option} as select ${columns.join(', ')} from public.${table} where ${CLERK_ROWS[table]};`,
  );
  const setup = `create schema ${schema};
${objects.join('\n')}
grant usage on schema ${schema} to ${role};
grant select on all tables in schema ${schema} to ${role};`;
  return {
    name,
    data: 'everything',
    start: async ({ owner }) => {
      for (const url of Object.values(owner)) await run(url, withRole(role, setup));
      const options = `-c search_path=${schema}`;
      const open = await directSessions(owner.a, role);
      return {
        what,
        open: (world, login) =>
          open(owner[world], { ...login, options: [options, login?.options ?? ''].join(' ').trim() }),
        close: async () => undefined,
      };
    },
  };
}

export const PLAIN_VIEWS = views(
  'plain views',
  'Postgres with views that filter, and lack the hidden columns',
  '',
);
export const BARRIER_VIEWS = views(
  'barrier views',
  'Postgres with the same views, and security_barrier',
  'with (security_barrier)',
);
