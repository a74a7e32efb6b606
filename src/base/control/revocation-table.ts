import { sql } from '../sql.js';

const SQL = sql`
-- Tokens that were revoked before their end. Times are ms since the epoch, by the clock of the gateway that revoked.
create table osl_control.revocation (
  tenant text not null,
  number bigint not null check (number > 0),
  id uuid not null,
  kind text not null check (kind in ('token', 'subject')),
  name text not null,
  at_ms bigint not null,
  until_ms bigint not null,
  gateway text not null,
  login text not null default session_user,
  at timestamptz not null default now(),
  primary key (tenant, number),
  unique (tenant, id)
);
create trigger append_only before update or delete or truncate on osl_control.revocation
  for each statement execute function osl_control.refuse_change();
create trigger tell after insert on osl_control.revocation
  for each statement execute function osl_control.tell();
`;

/** The step of the schema that makes the table. */
export const REVOCATIONS = Object.freeze({
  number: 4,
  name: 'revoked tokens',
  script: SQL,
  tables: {
    revocation: {
      gateway: sql`select, insert (tenant, number, id, kind, name, at_ms, until_ms, gateway)`,
      author: null,
    },
  },
});
