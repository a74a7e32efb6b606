import { sql, sqlText } from '../../src/base/sql.js';

/** Comment that marks the demo's schema; a schema `supply` without it belongs to someone else and is never touched. */
export const SCHEMA_COMMENT = 'OSL Gateway demo: made from package-lock.json, dropped when that changes';

export const CREATE_TABLES = sql`
create schema supply;
comment on schema supply is ${sqlText(SCHEMA_COMMENT)};
create table supply.package (
  path text not null,
  name text not null,
  version text not null,
  license text not null,
  license_class text not null check (license_class in ('permissive', 'other', 'unknown', 'copyleft')),
  dev bool not null,
  optional bool not null,
  install_bytes int8 not null,
  file_count int4 not null,
  has_types bool not null,
  engines_node text,
  homepage text,
  repository text,
  dependents int4 not null
);
create table supply.person (id text not null, name text not null, email text, url text);
create table supply.dependency (
  from_path text not null,
  to_path text not null,
  kind text not null check (kind in ('prod', 'dev', 'peer', 'optional')),
  range text not null
);
create table supply.credit (
  person_id text not null,
  package_path text not null,
  role text not null check (role in ('author', 'maintainer', 'contributor'))
);
create table supply.document (
  id text not null,
  package_path text not null,
  kind text not null check (kind in ('readme', 'changelog')),
  file text not null,
  body text not null
);
create table supply.loaded (lock_sha256 text not null, at timestamptz not null default now());
`;

/** Runs after the rows are loaded. */
export const CREATE_KEYS = sql`
alter table supply.package add primary key (path);
alter table supply.person add primary key (id);
alter table supply.dependency add primary key (from_path, to_path, kind),
  add foreign key (from_path) references supply.package,
  add foreign key (to_path) references supply.package;
alter table supply.credit add primary key (person_id, package_path, role),
  add foreign key (person_id) references supply.person,
  add foreign key (package_path) references supply.package;
alter table supply.document add primary key (id),
  add foreign key (package_path) references supply.package;
create index on supply.package (name);
create index on supply.package (license_class);
create index on supply.dependency (to_path);
create index on supply.credit (package_path);
create index on supply.document (package_path);
create view supply.readme as select id, package_path, file, body from supply.document where kind = 'readme';
create view supply.changelog as select id, package_path, file, body from supply.document where kind = 'changelog';
analyze supply.package, supply.person, supply.dependency, supply.credit, supply.document;
`;

/** Columns of a table, and its rows in the format of COPY. */
export interface TableLoad {
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
}

/** The tables to load, in an order that satisfies the foreign keys. */
export function tableLoads(chain: SupplyChain): readonly TableLoad[] {
  return [
    load<PackageRow>('package', PACKAGE_COLUMNS, chain.packages),
    load<PersonRow>('person', ['id', 'name', 'email', 'url'], chain.people),
    load<DependencyRow>('dependency', ['from_path', 'to_path', 'kind', 'range'], chain.dependencies),
    load<CreditRow>('credit', ['person_id', 'package_path', 'role'], chain.credits),
    load<DocumentRow>('document', ['id', 'package_path', 'kind', 'file', 'body'], chain.documents),
  ];
}

const PACKAGE_COLUMNS: readonly (keyof PackageRow)[] = [
  ...(['path', 'name', 'version', 'license', 'license_class', 'dev', 'optional', 'install_bytes'] as const),
  ...(['file_count', 'has_types', 'engines_node', 'homepage', 'repository', 'dependents'] as const),
];

type DemoValue = string | number | boolean | null;

function load<R extends object>(
  table: string,
  columns: readonly (keyof R & string)[],
  rows: readonly R[],
): TableLoad {
  const cells = rows.map((row) =>
    columns.map((c): string | null => {
      const cell = row[c] as DemoValue; // every member has this type
      return cell === null ? null : `${cell}`;
    }),
  );
  return { table, columns, rows: cells };
}

/** Rows of the tables in schema `supply`: one interface per table, one member per column. */
export interface SupplyChain {
  /** Fingerprint of the lock file and the installed packages; equal fingerprints mean equal rows. */
  readonly fingerprint: string;
  readonly packages: readonly PackageRow[];
  readonly people: readonly PersonRow[];
  readonly dependencies: readonly DependencyRow[];
  readonly credits: readonly CreditRow[];
  readonly documents: readonly DocumentRow[];
}

export interface PackageRow {
  /** Key in the lock file, such as `node_modules/ajv`; always uses `/`. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  /** Normalized SPDX expression, or `UNKNOWN`. */
  readonly license: string;
  readonly license_class: LicenseClass;
  readonly dev: boolean;
  readonly optional: boolean;
  /** Size in bytes, without symbolic links and directories named node_modules. */
  readonly install_bytes: number;
  readonly file_count: number;
  readonly has_types: boolean;
  readonly engines_node: string | null;
  readonly homepage: string | null;
  readonly repository: string | null;
  readonly dependents: number;
}

export type LicenseClass = 'permissive' | 'other' | 'unknown' | 'copyleft';

export interface PersonRow {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly url: string | null;
}

export interface DependencyRow {
  readonly from_path: string;
  readonly to_path: string;
  readonly kind: DependencyKind;
  readonly range: string;
}

export type DependencyKind = 'prod' | 'dev' | 'peer' | 'optional';

export interface CreditRow {
  readonly person_id: string;
  readonly package_path: string;
  readonly role: CreditRole;
}

export type CreditRole = 'author' | 'maintainer' | 'contributor';

export interface DocumentRow {
  /** Path of the package and name of the file, such as `node_modules/ajv#README.md`. */
  readonly id: string;
  readonly package_path: string;
  readonly kind: 'readme' | 'changelog';
  readonly file: string;
  readonly body: string;
}

/** The demo cannot be read or loaded; the message is one line for the operator. */
export class DemoProblem extends Error {
  override readonly name = 'DemoProblem';
}

export type OnProgress = (done: number, total: number) => void;
