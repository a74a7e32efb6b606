/**
 * What a statement does in the database of a case. A number: so many rows are returned or changed. A code: it fails with
 * this SQLSTATE. A pattern: the result as text, such as a plan.
 */
type Outcome = number | string | RegExp;

/** A statement as a role (null: a superuser, whose changes stay) and its outcome. */
export type Shown = readonly [role: string | null, sql: string, outcome?: Outcome];

export interface Case {
  readonly code: string;
  /** After `BASE`. */
  readonly faulty: string;
  /** Role that reads the catalog; a superuser if absent. */
  readonly readAs?: string;
  /** All findings, each as `code identity`. */
  readonly finds: readonly string[];
  /** The same without the fault. */
  readonly sound: string;
  /** Findings of other rules in the sound variant. */
  readonly soundFinds?: readonly string[];
  /** The consequence, run with the fault. */
  readonly shown?: readonly Shown[];
  /** The consequence is gone, run without the fault. */
  readonly soundShown?: readonly Shown[];
}

/** Two roles, and one table without a fault, of which each role sees the rows with its name. */
export const BASE = `
  create role rls_owner; create role rls_app; create role rls_other;
  create schema app authorization rls_owner;
  grant usage on schema app to rls_app, rls_other;
  set local role rls_owner;
  create table app.doc (id uuid primary key default gen_random_uuid(), owner_name text not null, body text);
  create index doc_owner on app.doc (owner_name);
  alter table app.doc enable row level security;
  create policy own on app.doc to rls_app, rls_other using (owner_name = (select current_user::text collate "default"));
  grant select, insert, update, delete on app.doc to rls_app, rls_other;
  reset role;`;

/** One row of each role. */
export const ROWS: Shown = [
  null,
  `insert into app.doc (owner_name, body) values ('rls_app', 'a'), ('rls_other', 'b')`,
];
export const MANY: Shown = [
  null,
  `insert into app.doc (owner_name, body) select 'o' || i, 'b' || i from generate_series(1, 5000) i`,
];
export const LATER_ROLE: Shown = [
  null,
  `do 'begin create role rls_later; grant usage on schema app to rls_later; grant select on app.doc to rls_later; end'`,
];
export const WITHOUT_INDEX: Shown = [
  null,
  `select set_config('enable_indexscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`,
];
export const ANALYSE: Shown = [null, 'analyze app.doc'];
export const PLAN = 'explain (costs off) select * from app.doc';

export const replaceOwn = (condition: string, rest = ''): string =>
  `drop policy own on app.doc; create policy own on app.doc ${rest} to rls_app using (${condition});`;

export const MEMBER = `
  set local role rls_owner;
  create table app.member (user_name text not null, owner_name text not null);
  grant select on app.member to rls_app, rls_other;
  reset role;`;

/** Rows of the names that the caller is a member of. */
export const IS_MEMBER =
  'owner_name = any (array(select m.owner_name from app.member m where m.user_name = current_user))';
