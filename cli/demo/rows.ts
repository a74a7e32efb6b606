/** Rows of the tables in schema `supply`: an interface per table, a member per column. */
export interface SupplyChain {
  /** Of the lock file and the installed packages; equal fingerprints mean equal rows. */
  readonly fingerprint: string;
  readonly packages: readonly PackageRow[];
  readonly people: readonly PersonRow[];
  readonly dependencies: readonly DependencyRow[];
  readonly credits: readonly CreditRow[];
  readonly documents: readonly DocumentRow[];
}

export interface PackageRow {
  /** Key in the lock file, such as `node_modules/ajv`; always with `/`. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  /** Normalized SPDX expression, or `UNKNOWN`. */
  readonly license: string;
  readonly license_class: LicenseClass;
  readonly dev: boolean;
  readonly optional: boolean;
  /** Without directories named node_modules and symbolic links. */
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
  /** `path#file`. */
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
