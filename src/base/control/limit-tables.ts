import { sql } from '../sql.js';

/** A crash empties the tables, as the end of a window would: so they cost no log of the database. */
const SQL = sql`
-- What is used of limits, under hashes of what is counted.
create unlogged table osl_control.limit_count (
  key text primary key,
  ends_at timestamptz not null,
  used bigint not null,
  granted bigint not null
);
create index limit_count_ends_at on osl_control.limit_count (ends_at);

-- Which processes count there.
create unlogged table osl_control.limit_peer (
  id text primary key,
  seen_at timestamptz not null
);
`;

/** The step that makes the tables in which gateways count limits together. */
export const LIMITS = Object.freeze({
  number: 3,
  name: 'counts of limits',
  script: SQL,
  tables: {
    limit_count: { gateway: sql`select, insert, update, delete`, author: null },
    limit_peer: { gateway: sql`select, insert, update, delete`, author: null },
  },
});
