import { identifier } from 'osl-compiler/sql-text';
import type { DatabaseFunction, Policy, Relation, Role } from './catalog/catalog.js';

/** Names one object as `pg_identify_object` does, such as `tenants on app.doc` for a policy. */
export interface ObjectIdentity {
  readonly kind: ObjectKind;
  readonly identity: string;
  /** Null for an object of the whole database or server. */
  readonly schema: string | null;
}

type ObjectKind =
  | Relation['kind']
  | 'column'
  | 'policy'
  | 'index'
  | 'constraint'
  | 'function'
  | 'role'
  | 'publication'
  | 'default privileges'
  | 'server'
  | 'catalog';

/** Such as `app.doc`, quoted where needed. */
export function qualified({ schema, name }: { readonly schema: string; readonly name: string }): string {
  return `${identifier(schema)}.${identifier(name)}`;
}

export function relationObject(relation: Relation): ObjectIdentity {
  return { kind: relation.kind, identity: qualified(relation), schema: relation.schema };
}

export function columnObject(relation: Relation, column: string): ObjectIdentity {
  return {
    kind: 'column',
    identity: `${qualified(relation)}.${identifier(column)}`,
    schema: relation.schema,
  };
}

export function policyObject(table: Relation, policy: Policy): ObjectIdentity {
  return partOf('policy', table, policy.name);
}

export function partOf(
  kind: 'policy' | 'index' | 'constraint',
  table: Relation,
  name: string,
): ObjectIdentity {
  return { kind, identity: `${identifier(name)} on ${qualified(table)}`, schema: table.schema };
}

export function signature(called: DatabaseFunction): string {
  return `${qualified(called)}(${called.arguments})`;
}

export function functionObject(called: DatabaseFunction): ObjectIdentity {
  return { kind: 'function', identity: signature(called), schema: called.schema };
}

export function roleObject({ name }: Role): ObjectIdentity {
  return { kind: 'role', identity: identifier(name), schema: null };
}

/** Names of roles, quoted where needed. */
export function roleNames(roles: readonly Role[]): readonly string[] {
  return roles.map((role) => identifier(role.name));
}
