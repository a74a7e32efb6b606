import type { Node } from '@pgsql/types';
import {
  type DatabaseFunction,
  type PgRelation,
  PUBLIC,
  qualified,
  type Role,
  signature,
} from '../catalog/catalog.js';
import { type CheckedDatabase, governs } from '../database.js';
import { calledName, namesOf } from '../nodes.js';
import { eachNode, parsedStatement, relationNames } from '../statement.js';

/**
 * The reason why sessions could get different rows from a view, such as `current_user`; null if everybody who may read
 * the view gets the same rows at the same time. Follows nested views, called functions, and the policies that apply to
 * the owners of the views. Ignores the time zone of a session.
 */
export function sessionDependence(db: CheckedDatabase, view: PgRelation): string | null {
  return ofView(db, view, new Set());
}

function ofView(db: CheckedDatabase, view: PgRelation, seen: ReadonlySet<PgRelation>): string | null {
  const { view: definition } = view;
  if (definition === null || seen.has(view)) return `${qualified(view)}, which is read in a circle`;
  // A security_invoker view uses the rights of the session even inside a view with the rights of its owner.
  if (definition.securityInvoker && readsOf(db, view).some(({ rowSecurity }) => rowSecurity !== 'off'))
    return `${qualified(view)}, which has the rights of the caller`;
  const tree = parsedStatement(definition.definition);
  if (tree === null) return `the query of ${qualified(view)}, which is not in the grammar`;
  if (definition.foreignOperators) return 'an operator of a user or an extension';
  const owner = db.catalog.roles.get(view.owner);
  if (owner === undefined) return `the unknown owner of ${qualified(view)}`;
  const own = definition.calls.map((id) => {
    const called = db.catalog.functions.get(id);
    return called === undefined ? 'an aggregate of a user or an extension' : ofFunction(db, called, 0);
  });
  return firstOf([
    () => own.find((reason) => reason !== null) ?? null,
    () => ofTree(db, tree, 0),
    () => ofRelations(db, tree, owner, new Set([...seen, view])),
  ]);
}

function readsOf({ catalog }: CheckedDatabase, { view }: PgRelation): readonly PgRelation[] {
  return (view?.reads ?? []).flatMap((id) => catalog.relations.get(id) ?? []);
}

/** Relations that a view reads with the rights of the caller, directly or through other views. */
export function readByCaller(db: CheckedDatabase, view: PgRelation): readonly PgRelation[] {
  const seen = new Set([view]);
  const found = new Set<PgRelation>();
  for (const one of seen)
    for (const read of readsOf(db, one)) {
      if (one.view?.securityInvoker === true) found.add(read);
      if (read.kind === 'view') seen.add(read);
    }
  return [...found];
}

function firstOf(checks: readonly (() => string | null)[]): string | null {
  for (const check of checks) {
    const reason = check();
    if (reason !== null) return reason;
  }
  return null;
}

/** The reason why relations of a query could differ between sessions if `reader` reads them; otherwise null. */
function ofRelations(
  db: CheckedDatabase,
  tree: Node,
  reader: Role,
  seen: ReadonlySet<PgRelation>,
): string | null {
  return firstOf(
    relationNames(tree).map(({ schema, name }) => () => {
      const read = schema === null ? null : db.relationNamed({ schema, name });
      if (read === null) return `${name}, a view of the system`;
      switch (read.kind) {
        case 'table':
        case 'partitioned table':
          return seen.has(read) ? null : ofPolicies(db, read, reader, new Set([...seen, read]));
        case 'view':
          return ofView(db, read, seen);
        case 'materialized view':
          return null;
        case 'foreign table':
        case 'sequence':
          return `${qualified(read)}, a ${read.kind}`;
      }
    }),
  );
}

/** The reason why the policies that apply to `reader` could show sessions different rows; otherwise null. */
function ofPolicies(
  db: CheckedDatabase,
  table: PgRelation,
  reader: Role,
  seen: ReadonlySet<PgRelation>,
): string | null {
  if (table.rowSecurity === 'off' || db.access.exemption(reader.id, table) !== null) return null;
  const applying = table.policies.filter((policy) => governs(policy, 'SELECT') && db.isFor(policy, reader));
  return firstOf(
    applying.map((policy) => () => {
      if (policy.using === null) return null;
      const tree = parsedStatement(`select ${policy.using}`);
      const reason =
        tree === null
          ? 'a condition that is not in the grammar'
          : (ofTree(db, tree, 0) ?? ofRelations(db, tree, reader, seen));
      return reason === null ? null : `${reason}, in the policy ${policy.name} on ${qualified(table)}`;
    }),
  );
}

/** Functions of Postgres that are not immutable but depend only on a session's time zone and formats. */
const STABLE: ReadonlySet<string> = new Set(
  `now transaction_timestamp statement_timestamp date_trunc date_part extract timezone to_char to_date to_timestamp age
  date_bin make_timestamptz generate_series concat concat_ws format array_to_string string_to_array quote_literal
  to_json to_jsonb row_to_json array_to_json json_build_object jsonb_build_object json_build_array jsonb_build_array
  json_agg jsonb_agg json_object_agg jsonb_object_agg`.split(/\s+/),
);

const CLOCKS = /^SVFOP_(CURRENT_DATE|CURRENT_TIME|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP)(_N)?$/;

const MOST_CALLS = 8;

/** @param depth number of function bodies around the expression; inside one, names may be unqualified */
function ofTree(db: CheckedDatabase, tree: Node, depth: number): string | null {
  const reasons: string[] = [];
  eachNode(tree, (node) => {
    const reason = ofNode(db, node, depth);
    if (reason !== null) reasons.push(reason);
  });
  return reasons[0] ?? null;
}

function ofNode(db: CheckedDatabase, node: Node, depth: number): string | null {
  if ('SQLValueFunction' in node) {
    const { op = '' } = node.SQLValueFunction;
    return CLOCKS.test(op) ? null : op.slice('SVFOP_'.length).toLowerCase();
  }
  if ('RangeTableSample' in node) return 'TABLESAMPLE';
  if ('LockingClause' in node) return 'FOR UPDATE';
  if ('A_Expr' in node) {
    const names = namesOf(node.A_Expr.name);
    return names.length > 1 && names[0] !== 'pg_catalog' ? `the operator ${names.join('.')}` : null;
  }
  if (!('FuncCall' in node)) return null;
  const { schema, name } = calledName(node.FuncCall);
  if (schema === null && !(depth > 0 && isOfUser(db, name))) return ofSystemFunction(db, name);
  const found = db.functionsNamed({ schema, name });
  if (found.length === 0) return `the function ${name}`;
  return firstOf(found.map((called) => () => ofFunction(db, called, depth)));
}

/** True if there is a user-defined function of this name, which an unqualified call could mean. */
function isOfUser(db: CheckedDatabase, name: string): boolean {
  return [...db.catalog.functions.values()].some((called) => called.name === name);
}

function ofSystemFunction({ catalog }: CheckedDatabase, name: string): string | null {
  const volatility = catalog.systemFunctions.get(name) ?? 'immutable';
  if (volatility === 'immutable' || (volatility === 'stable' && STABLE.has(name))) return null;
  return volatility === 'volatile' ? `the volatile function ${name}` : `the function ${name}`;
}

/**
 * The reason why a function could give sessions different results; otherwise null. Functions in views run with the
 * rights of the session, so they must be executable by PUBLIC and read no table.
 */
function ofFunction(db: CheckedDatabase, called: DatabaseFunction, depth: number): string | null {
  const { language, body, bound, extension, volatility, grants } = called;
  const text = signature(called);
  if (volatility === 'volatile') return `the volatile function ${text}`;
  if (!grants.some(({ grantee, privilege }) => grantee === PUBLIC && privilege === 'EXECUTE'))
    return `the function ${text}, which not everybody may execute`;
  if (language === 'c' && extension !== null)
    return volatility === 'immutable' ? null : `the function ${text}`;
  if (language !== 'sql' || bound || depth > MOST_CALLS) return `the function ${text}`;
  const tree = parsedStatement(body);
  if (tree === null || relationNames(tree).length > 0) return `the function ${text}`;
  const reason = ofTree(db, tree, depth + 1);
  return reason === null ? null : `${reason}, in the function ${text}`;
}
