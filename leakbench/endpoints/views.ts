import type { EndpointKind } from '../endpoint.js';
import { CLERK_COLUMNS, CLERK_ROWS } from '../world.js';
import { onServer } from './postgres.js';

/** Views in a schema of their own, which is all that the clerk may read. */
function views(name: string, what: string, option: string): EndpointKind {
  const schema = name.replace(/\W/g, '_');
  const role = `leakbench_${schema}_clerk`;
  const objects = Object.entries(CLERK_COLUMNS).map(
    ([table, columns]) =>
      `create view ${schema}.${table} ${option} as select ${columns.join(', ')} from public.${table} where ${CLERK_ROWS[table]};`,
  );
  const script = `create schema ${schema};
${objects.join('\n')}
grant usage on schema ${schema} to ${role};
grant select on all tables in schema ${schema} to ${role};`;
  return onServer({ name, data: 'everything', what, role, script, options: `-c search_path=${schema}` });
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
