import type { Node } from '@pgsql/types';
import { bindPredicate, type Relation as ModelRelation, QueryError } from 'osl-compiler';
import type { GrantDocument } from '../../../policy/document.js';
import { nameFrom } from '../../../src/model/manifest/index.js';
import {
  type PgRelation,
  type Policy,
  policyObject,
  qualified,
  type Role,
  relationObject,
} from '../catalog/catalog.js';
import type { CheckedDatabase } from '../database.js';
import { partsOf } from '../nodes.js';
import { FailsInDatabase, type FromTable, type ImportedTable, Untranslatable } from './scope.js';
import { conditionOf, type ReadRights, type Translations } from './translations.js';
import type { TableView } from './view-plan.js';

/** The result of importing one policy, table or view for one role. */
export interface ImportNote {
  readonly kind:
    | 'imported'
    | 'refused'
    | 'no row security'
    | 'exempt'
    | 'nothing visible'
    /** A view that became an entity over its table. */
    | 'view'
    /** Columns that are masked or left out. */
    | 'changed';
  /** Object in the database, such as `members on app.document`. */
  readonly object: string;
  readonly role: string;
  /** Reason of a refusal or details of a change; null if there is nothing to add. */
  readonly detail: string | null;
}

/** Explains why a table has no entity. */
export function whyNoEntity({ kind, parents }: PgRelation): string {
  if (kind === 'table' && parents.length > 0)
    return 'a partition or a child: its rows are read through its parent, under the policies of that';
  if (kind === 'foreign table')
    return 'a foreign table: whose rows another server shows depends on the login of each role there';
  return 'it did not become an entity';
}

/** Explains why a role sees all rows of a table or view. */
function whyAllRows({ kind }: PgRelation): string {
  switch (kind) {
    case 'view':
      return 'everybody who may read the view sees the same rows, as in the database';
    case 'materialized view':
      return 'everybody who may read it sees the same rows, as of its last refresh';
    case 'table':
    case 'partitioned table':
    case 'foreign table':
    case 'sequence':
      return 'the role sees all rows, as in the database';
  }
}

/** Names of the database policies from which each grant was made. */
export class GrantOrigins {
  readonly #names = new Map<string, Set<string>>();

  /** @param filter row filter of the grant; null: all rows */
  add(role: string, entity: string, filter: string | null, policy: string): void {
    const key = keyOf(role, entity, filter);
    this.#names.set(key, (this.#names.get(key) ?? new Set()).add(policy));
  }

  /** The database policies behind a grant, such as `team, own`; null without row security. */
  of(role: string, { on, rows }: GrantDocument): string | null {
    const names = this.#names.get(keyOf(role, on, rows ?? null));
    return names === undefined ? null : [...names].join(', ');
  }
}

const keyOf = (role: string, entity: string, filter: string | null): string =>
  JSON.stringify([role, entity, filter]);

/** The role that reads a table, and the view through which it reads, if any; for the notes. */
export interface Subject {
  readonly role: Role;
  readonly view: PgRelation | null;
}

/**
 * Makes the row filters of grants on a table from its policies and from the conditions of views over it. Notes record
 * the policies that were imported and the parts that were refused.
 */
export class PolicyFilters {
  readonly origins = new GrantOrigins();
  readonly #database: CheckedDatabase;
  readonly #translations: Translations;
  /** Entities of the model, by name. */
  readonly #models: ReadonlyMap<string, ModelRelation>;
  readonly #notes: ImportNote[];

  constructor(
    database: CheckedDatabase,
    translations: Translations,
    models: ReadonlyMap<string, ModelRelation>,
    notes: ImportNote[],
  ) {
    this.#database = database;
    this.#translations = translations;
    this.#models = models;
    this.#notes = notes;
  }

  /** Filters for the rows that the table's policies let a role see; a null filter: all rows. @throws FailsInDatabase */
  ofPolicies(reading: ReadRights, table: ImportedTable, subject: Subject): readonly (string | null)[] {
    const { relation } = table;
    const { role, view } = subject;
    const note = (kind: ImportNote['kind'], detail: string | null): void =>
      void this.#notes.push({ kind, object: relationObject(relation).identity, role: role.name, detail });
    if (relation.rowSecurity === 'off') {
      if (view === null) note('no row security', whyAllRows(relation));
      return [null];
    }
    const exemption = this.#database.access.exemption(reading.reader, relation);
    if (exemption !== null) {
      if (view === null)
        note('exempt', `row security does not apply to this role (${exemption}), so it sees all rows`);
      return [null];
    }
    const reader = this.#database.catalog.roles.get(reading.reader);
    const policies = reader === undefined ? [] : this.#translations.policiesFor(reader, relation);
    const restrictive = policies.filter((policy) => !policy.permissive);
    const found = this.#limits(reading, table, restrictive, subject);
    if (found === null) return [];
    const filters = policies
      .filter(({ permissive }) => permissive)
      .flatMap((policy) => this.#filtersOf(reading, table, policy, found, subject));
    if (policies.every(({ permissive }) => !permissive))
      note(
        'nothing visible',
        `no permissive policy for SELECT applies to the ${view === null ? 'role' : 'owner of the view'}`,
      );
    return filters.includes(null) ? [null] : [...new Set(filters)];
  }

  /** The alternatives of a view's condition as filters; those without an equivalent become notes. */
  ofViewCondition(
    role: Role,
    { view, query }: TableView,
    table: ImportedTable,
    reading: ReadRights,
    node: Node,
  ): readonly (string | null)[] {
    const range: FromTable = { alias: query.alias, table };
    return alternativesOf(node).flatMap((alternative): (string | null)[] => {
      const text = this.#attempt(role, relationObject(view).identity, () => {
        const filter = this.#translations.viewFilter(reading, range, alternative);
        this.#requireBound(filter, table);
        return filter;
      });
      return text === null || text === 'false' ? [] : [text === 'true' ? null : text];
    });
  }

  /** The filters of all restrictive policies; null, with a note, if one of the policies has no equivalent. */
  #limits(
    reading: ReadRights,
    table: ImportedTable,
    policies: readonly Policy[],
    subject: Subject,
  ): readonly string[] | null {
    const { role } = subject;
    const limits: string[] = [];
    for (const policy of policies) {
      const text = this.#attempt(role, policyIn(subject, table, policy), () =>
        this.#translations.policyFilter(reading, table, conditionOf(policy)),
      );
      if (text === null) {
        this.#notes.push({
          kind: 'nothing visible',
          object: relationObject(table.relation).identity,
          role: role.name,
          detail: 'a restrictive policy could not be imported, and without it the role would see too much',
        });
        return null;
      }
      limits.push(text);
    }
    return limits;
  }

  #filtersOf(
    reading: ReadRights,
    table: ImportedTable,
    policy: Policy,
    limits: readonly string[],
    subject: Subject,
  ): readonly (string | null)[] {
    const { role } = subject;
    const object = policyIn(subject, table, policy);
    const alternatives = this.#attempt(role, object, () => alternativesOf(conditionOf(policy)));
    return (alternatives ?? []).flatMap((alternative) => {
      const text = this.#attempt(role, object, () => {
        const parts = [this.#translations.policyFilter(reading, table, alternative), ...limits].filter(
          (part) => part !== 'true',
        );
        const filter = parts.length === 0 ? null : parts.join(' and ');
        if (filter !== null) this.#requireBound(filter, table);
        return filter ?? '';
      });
      if (text === null) return [];
      this.#notes.push({ kind: 'imported', object, role: role.name, detail: null });
      const filter = text === '' ? null : text;
      this.origins.add(nameFrom(role.name), table.entity, filter, policy.name);
      return [filter];
    });
  }

  /** Returns the translation; null, with a note, if there is no equivalent. @throws FailsInDatabase, with a note */
  #attempt<T>(role: Role, object: string, translate: () => T): T | null {
    try {
      return translate();
    } catch (error) {
      if (!(error instanceof Untranslatable)) throw error;
      this.#notes.push({ kind: 'refused', object, role: role.name, detail: error.message });
      if (error instanceof FailsInDatabase) throw error;
      return null;
    }
  }

  /** @throws Untranslatable if the filter does not compile in a policy file */
  #requireBound(filter: string, table: ImportedTable): void {
    const model = this.#models.get(table.entity);
    if (model === undefined) return;
    try {
      bindPredicate(filter, model);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      throw new Untranslatable(error.message);
    }
  }
}

/** The text that identifies a policy in an import note, with the view through which the role reads, if any. */
function policyIn({ view }: Subject, table: ImportedTable, policy: Policy): string {
  const { identity } = policyObject(table.relation, policy);
  return view === null ? identity : `${identity}, in the view ${qualified(view)}`;
}

/** Maximum number of alternatives of one condition; with more, the condition stays one filter. */
const MOST = 16;

/**
 * The alternatives of a condition, at least one of which must hold. Each becomes a separate grant: a filter accepts no
 * row if any attribute in it is missing, so a subject that lacks one still has the other alternatives.
 */
function alternativesOf(node: Node): readonly Node[] {
  const found = expanded(node);
  return found.length > MOST ? [node] : found;
}

function expanded(node: Node): readonly Node[] {
  const either = partsOf(node, 'OR_EXPR');
  if (either.length > 1) return either.flatMap(expanded);
  const all = partsOf(node, 'AND_EXPR');
  if (all.length === 1) return [node];
  let found: readonly Node[] = [TRUE];
  for (const part of all) {
    const parts = expanded(part);
    if (found.length * parts.length > MOST) return [node];
    found = found.flatMap((one) => parts.map((other) => both(one, other)));
  }
  return found;
}

const TRUE: Node = { A_Const: { boolval: { boolval: true } } };

function both(one: Node, other: Node): Node {
  if (one === TRUE) return other;
  return {
    BoolExpr: { boolop: 'AND_EXPR', args: [...partsOf(one, 'AND_EXPR'), ...partsOf(other, 'AND_EXPR')] },
  };
}
