import type { Node, SelectStmt } from '@pgsql/types';
import { type Relation as Entity, QueryError } from 'osl-compiler';
import { and, Encoder, expressionKey, FALSE, type Formula, or, TRUE } from '../../../policy/proof/index.js';
import { type Manifest, tableName } from '../../../src/model/manifest/index.js';
import type { PgRelation, Policy, Role } from '../catalog/catalog.js';
import { DEFAULT_SEARCH_PATH, qualified, searchPathOf } from '../catalog/catalog.js';
import { type CheckedDatabase, governs } from '../database.js';
import { expressionNode } from '../nodes.js';
import type { CallerValueNames } from './caller-values.js';
import { RowSets } from './caller-values.js';
import { ConditionEncoder } from './conditions.js';
import {
  type From,
  type Home,
  NO_ARGUMENTS,
  NotUnderstood,
  type PlacedExpression,
  type QueryRights,
  type RangeTable,
} from './scope.js';
import { AlwaysFails, subqueryHasRow } from './subqueries.js';

/** The rows of a table that a role sees in the database, as a formula. */
export interface VisibleInDatabase {
  readonly encoder: Encoder;
  readonly row: Formula;
  /** Assumptions, in words, under which queries do not fail, such as `the setting app.tenant is set`. */
  readonly assumed: readonly string[];
}

/**
 * Translates row security to formulas with the semantics of Postgres: a row must meet one of the permissive policies
 * that apply to the role, and all restrictive ones. Independent of `osl rls import`.
 */
export class RowSecurityEncoder {
  readonly sets = new RowSets();
  readonly #database: CheckedDatabase;
  readonly #names: CallerValueNames;
  readonly #entities: ReadonlyMap<string, Entity>;
  readonly #assumed = new Set<string>();
  readonly #conditions: ConditionEncoder;

  constructor(database: CheckedDatabase, manifest: Manifest, names: CallerValueNames) {
    this.#database = database;
    this.#names = names;
    this.#entities = new Map([...manifest.catalog.relations.values()].map((e) => [tableName(e), e]));
    this.#conditions = new ConditionEncoder({
      database,
      names: this.#names,
      enums: this.#enums(),
      assumed: this.#assumed,
      hasRow: (subquery, home) =>
        subqueryHasRow(subquery, home, {
          sets: this.sets,
          from: (select, rights) => this.#from(select, rights),
          conditions: () => this.#conditions,
          visible: (inner, rights) => this.#visible(inner, rights),
          mayRead: (role, relation) => database.access.columns(role, 'SELECT', relation).length > 0,
        }),
    });
  }

  entityOf({ schema, name }: PgRelation): Entity | null {
    return this.#entities.get(`${schema}.${name}`) ?? null;
  }

  /** The rows that a role sees; `encoder` has the variables of the row. */
  rowsOf(role: Role, relation: PgRelation, entity: Entity): VisibleInDatabase {
    const encoder = new Encoder(entity, 'caller', null, expressionKey);
    this.#assumed.clear();
    const rights: QueryRights = {
      role: role.id,
      searchPath: [],
      sessionPath: searchPathOf(role) ?? DEFAULT_SEARCH_PATH,
      depth: 0,
      open: new Set(),
    };
    const row = this.#orNothing(() =>
      this.#database.access.columns(role.id, 'SELECT', relation).length === 0
        ? FALSE
        : this.#visible({ range: { alias: relation.name, relation, entity }, encoder }, rights),
    );
    return { encoder, row, assumed: [...this.#assumed] };
  }

  /** Returns false if a policy fails for every row, since it then hides the whole table. */
  #orNothing(row: () => Formula): Formula {
    try {
      return row();
    } catch (error) {
      if (error instanceof AlwaysFails) return FALSE;
      throw error;
    }
  }

  #visible({ range, encoder }: Home, rights: QueryRights): Formula {
    const { relation } = range;
    if (relation.kind !== 'table' && relation.kind !== 'partitioned table')
      return encoder.unknownTruth(`rows of ${relation.id}`, `the rows of a ${relation.kind}`).isTrue;
    if (relation.rowSecurity === 'off') return TRUE;
    const role = this.#database.catalog.roles.get(rights.role);
    if (role === undefined) return encoder.unknownTruth('role', 'an unknown role').isTrue;
    if (this.#database.access.exemption(role.id, relation) !== null) return TRUE;
    if (rights.open.has(relation.id)) {
      if (rights.depth === 0) throw new AlwaysFails(`policies of ${qualified(relation)} that read it`);
      return encoder.unknownTruth(`circle ${relation.id}`, `a policy on ${qualified(relation)} that reads it`)
        .isTrue;
    }
    // A policy refers to its table by name, not by the alias in the query.
    const home: Home = { range: { ...range, alias: relation.name }, encoder };
    const inside = { ...rights, searchPath: [], open: new Set([...rights.open, relation.id]) };
    const policies = relation.policies.filter(
      (policy) => governs(policy, 'SELECT') && this.#database.isFor(policy, role),
    );
    // A policy without USING neither shows nor hides rows.
    const conditions = (permissive: boolean): readonly Formula[] =>
      policies
        .filter((policy) => policy.permissive === permissive && policy.using !== null)
        .map((policy) => this.#holds(policy, home, inside));
    return and(or(...conditions(true)), ...conditions(false));
  }

  #holds({ name, using }: Policy, home: Home, rights: QueryRights): Formula {
    const node = conditionIn(using ?? '');
    if (node === null) return home.encoder.unknownTruth(`policy ${name}`, `the policy ${name}`).isTrue;
    const place: PlacedExpression = {
      node,
      rights,
      scope: { ranges: [home.range], arguments: NO_ARGUMENTS, outer: null },
    };
    return this.#conditions.truth(place, home).isTrue;
  }

  #from({ fromClause = [] }: SelectStmt, { searchPath }: QueryRights): From {
    const ranges: RangeTable[] = [];
    const conditions: Node[] = [];
    const add = (node: Node): void => {
      if ('RangeVar' in node) {
        const { schemaname = null, relname = '', alias, inh } = node.RangeVar;
        if (inh !== true) throw new NotUnderstood(`ONLY ${relname}`);
        if (alias?.colnames !== undefined) throw new NotUnderstood('renamed columns in FROM');
        const relation = this.#table(schemaname, relname, searchPath);
        ranges.push({ alias: alias?.aliasname ?? relname, relation, entity: this.entityOf(relation) });
        return;
      }
      if (!('JoinExpr' in node)) throw new NotUnderstood('a subquery or a function in FROM');
      const { jointype, larg, rarg, quals, usingClause, isNatural } = node.JoinExpr;
      if (jointype !== 'JOIN_INNER' || isNatural === true || usingClause !== undefined || !larg || !rarg)
        throw new NotUnderstood('a join other than an inner join with ON');
      add(larg);
      add(rarg);
      if (quals !== undefined) conditions.push(quals);
    };
    for (const node of fromClause) add(node);
    return { ranges, conditions };
  }

  #table(schema: string | null, name: string, searchPath: readonly string[]): PgRelation {
    for (const one of schema === null ? searchPath : [schema]) {
      const relation = this.#database.relationNamed({ schema: one, name });
      if (relation !== null) return relation;
    }
    throw new NotUnderstood(`the table ${name}`);
  }

  /** Enum types of columns whose labels the model declares. */
  #enums(): ReadonlySet<string> {
    const found = new Set<string>();
    for (const relation of this.#database.catalog.relations.values())
      for (const { physical, labels } of this.entityOf(relation)?.columns ?? []) {
        const type = relation.columns.find(({ name }) => name === physical)?.type;
        if (labels !== undefined && type !== undefined) found.add(type);
      }
    return found;
  }
}

function conditionIn(text: string): Node | null {
  try {
    return expressionNode(text);
  } catch (error) {
    if (error instanceof QueryError || error instanceof RangeError) return null;
    throw error;
  }
}
