import type { EndpointKind } from '../endpoint.js';
import { CLERK_COLUMNS, rowsOf } from '../world.js';
import { onServer, openPostgres } from './postgres.js';

interface ViewOptions {
  readonly name: string;
  readonly what: string;
  /** Of each view, such as `with (security_barrier)`. */
  readonly option?: string;
  /** Columns of customers besides those that the clerk may see. */
  readonly masked?: readonly string[];
  /** The region of the rows, as an expression; the clerk's by default. */
  readonly region?: string;
  /** The startup parameter `options`, besides the search path. */
  readonly settings?: string;
}

/** Views in a schema that is all that the clerk may read. */
function views({ name, what, option = '', masked = [], region, settings = '' }: ViewOptions): EndpointKind {
  const schema = name.replace(/\W/g, '_');
  const role = `leakbench_${schema}_clerk`;
  const objects = Object.entries(CLERK_COLUMNS).map(([table, columns]) => {
    const all = table === 'customer' ? [...columns, ...masked] : columns;
    return `create view ${schema}.${table} ${option} as select ${all.join(', ')} from public.${table} where ${rowsOf(table, region)};`;
  });
  const script = `create schema ${schema};
${objects.join('\n')}
grant usage on schema ${schema} to ${role};
grant select on all tables in schema ${schema} to ${role};`;
  return onServer({
    name,
    data: 'everything',
    what,
    role,
    script,
    options: `-c search_path=${schema} ${settings}`.trim(),
  });
}

export const PLAIN_VIEWS = views({
  name: 'plain views',
  what: 'Postgres with views that filter, and lack the hidden columns',
});
export const BARRIER_VIEWS = views({
  name: 'barrier views',
  what: 'Postgres with the same views, and security_barrier',
  option: 'with (security_barrier)',
});

/** As tutorials show it: one application user, whose region is a setting of the session, and masks in place of columns. */
export const MASKING_VIEWS = views({
  name: 'masking views',
  what: 'Postgres with views that mask columns, and filter by a setting of the session',
  masked: [
    "regexp_replace(email, '^[^@]+', '***') as email",
    "case when pg_has_role(current_user, 'pg_read_all_data', 'member') then ssn else '***' end as ssn",
    "case when pg_has_role(current_user, 'pg_read_all_data', 'member') then notes end as notes",
  ],
  region: "current_setting('app.region', true)",
  settings: '-c app.region=north',
});

const POLICY_ROLE = 'leakbench_rls_clerk';

/** Postgres itself: row-security policies, and privileges on columns. */
export const ROW_SECURITY = onServer({
  name: 'row security',
  data: 'everything',
  what: 'Postgres with a row-security policy on each table, and privileges on columns',
  role: POLICY_ROLE,
  script: Object.entries(CLERK_COLUMNS)
    .map(
      ([table, columns]) => `
alter table ${table} enable row level security;
create policy clerk on ${table} for select to ${POLICY_ROLE} using (${rowsOf(table)});
grant select (${columns.join(', ')}) on ${table} to ${POLICY_ROLE};`,
    )
    .join(''),
});

const COPY_ROLE = 'leakbench_copies_clerk';

/** Databases with visible data only. A leak that is found here is a fault of the bench. */
export const COPIES = onServer({
  name: 'copies',
  data: 'visible',
  what: 'Postgres without what the clerk may not see',
  role: COPY_ROLE,
  script: `grant select on ${Object.keys(CLERK_COLUMNS).join(', ')} to ${COPY_ROLE};`,
});

/** The tables themselves, read by their owner: every attack that works at all leaks here. */
export const UNPROTECTED: EndpointKind = {
  name: 'unprotected',
  data: 'everything',
  start: async ({ owner }) => ({
    what: 'Postgres, and the clerk is its owner',
    open: (world, login) => openPostgres(owner[world], login),
    close: async () => undefined,
  }),
};
