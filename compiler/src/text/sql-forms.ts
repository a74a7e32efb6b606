import { InternalError } from '../errors/errors.js';
import { applyGrammar } from './parse.js';

/**
 * The SQL features that not every Postgres-compatible database supports, by their common names. All other SQL that is
 * emitted works on all of these databases.
 */
export type SqlForm =
  | 'GROUPING SETS'
  | 'FETCH … WITH TIES'
  | 'TABLESAMPLE'
  | 'WITH RECURSIVE'
  | 'LATERAL'
  | 'DISTINCT ON'
  | 'FILTER'
  | 'WITHIN GROUP'
  | 'a sorted DISTINCT aggregate'
  | 'a variadic call'
  | 'a window'
  | 'WITH ORDINALITY'
  | 'ROWS FROM'
  | 'COLLATE'
  | 'MATERIALIZED'
  | 'FULL JOIN'
  | 'a subquery'
  | 'an array slice'
  | 'SQL/JSON'
  | 'XML';

export interface StatementForms {
  readonly forms: ReadonlySet<SqlForm>;
  readonly operators: ReadonlySet<string>;
  readonly nodes: ReadonlySet<string>;
}

const BARE: ReadonlyMap<string, string> = new Map([
  ['larg', 'SelectStmt'],
  ['rarg', 'SelectStmt'],
  ['withClause', 'WithClause'],
  ['over', 'WindowDef'],
  ['typeName', 'TypeName'],
]);

type NodeFields = Readonly<Record<string, unknown>>;

/** Detects the SQL forms in an emitted statement by parsing its text. @throws InternalError if it does not parse */
export function formsOf(sql: string): StatementForms {
  const grammar = applyGrammar(sql);
  if (grammar.kind !== 'statements') throw new InternalError('an emitted statement is out of grammar');
  const found = { forms: new Set<SqlForm>(), operators: new Set<string>(), nodes: new Set<string>() };
  // Uses an explicit stack because emitted queries may be nested more deeply than the call stack allows.
  const open: unknown[] = [...grammar.statements];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (Array.isArray(next)) open.push(...next);
    else if (isFields(next)) {
      for (const [key, value] of Object.entries(next)) {
        if (/^[A-Z]/.test(key) && isFields(value)) note(key, value, found);
        // The parser omits the type name for fields that can only hold one node type.
        const kind = BARE.get(key);
        if (kind !== undefined && isFields(value)) note(kind, value, found);
        if (value !== null && typeof value === 'object') open.push(value);
      }
    }
  }
  return found;
}

function isFields(value: unknown): value is NodeFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function note(
  kind: string,
  node: NodeFields,
  found: { forms: Set<SqlForm>; operators: Set<string>; nodes: Set<string> },
): void {
  found.nodes.add(kind);
  for (const form of formsIn(kind, node)) found.forms.add(form);
  if (kind === 'A_Expr' && Array.isArray(node['name'])) found.operators.add(symbolOf(node['name']));
}

function symbolOf(name: readonly unknown[]): string {
  const last = name.at(-1);
  const text = isFields(last) && isFields(last['String']) ? last['String']['sval'] : null;
  return typeof text === 'string' ? text : '?';
}

function formsIn(kind: string, node: NodeFields): readonly SqlForm[] {
  switch (kind) {
    case 'GroupingSet':
    case 'GroupingFunc':
      return ['GROUPING SETS'];
    case 'RangeTableSample':
      return ['TABLESAMPLE'];
    case 'WithClause':
      return node['recursive'] === true ? ['WITH RECURSIVE'] : [];
    case 'CommonTableExpr':
      return node['ctematerialized'] === 'CTEMaterializeDefault' ? [] : ['MATERIALIZED'];
    case 'RangeSubselect':
      return node['lateral'] === true ? ['LATERAL'] : [];
    case 'RangeFunction':
      return rangeForms(node);
    case 'JoinExpr':
      return node['jointype'] === 'JOIN_FULL' ? ['FULL JOIN'] : [];
    case 'SelectStmt':
      return selectForms(node);
    case 'FuncCall':
      return callForms(node);
    case 'SubLink':
      return ['a subquery'];
    case 'CollateClause':
      return ['COLLATE'];
    case 'A_Indices':
      return node['is_slice'] === true ? ['an array slice'] : [];
    case 'XmlExpr':
    case 'XmlSerialize':
    case 'RangeTableFunc':
      return ['XML'];
    default:
      return kind.startsWith('Json') ? ['SQL/JSON'] : [];
  }
}

/** Returns the forms whose condition is true. */
function present(forms: readonly (readonly [SqlForm, boolean])[]): readonly SqlForm[] {
  return forms.flatMap(([form, is]) => (is ? [form] : []));
}

function rangeForms(node: NodeFields): readonly SqlForm[] {
  const functions = Array.isArray(node['functions']) ? node['functions'].length : 0;
  return present([
    ['LATERAL', node['lateral'] === true],
    ['WITH ORDINALITY', node['ordinality'] === true],
    ['ROWS FROM', node['is_rowsfrom'] === true || functions > 1],
  ]);
}

function selectForms(node: NodeFields): readonly SqlForm[] {
  const distinct = node['distinctClause'];
  // The grammar represents a plain DISTINCT as a list with one empty node.
  const on = Array.isArray(distinct) && distinct.some((e) => isFields(e) && Object.keys(e).length > 0);
  return present([
    ['DISTINCT ON', on],
    ['FETCH … WITH TIES', node['limitOption'] === 'LIMIT_OPTION_WITH_TIES'],
  ]);
}

function callForms(node: NodeFields): readonly SqlForm[] {
  const sorted = Array.isArray(node['agg_order']) && node['agg_order'].length > 0;
  return present([
    ['FILTER', 'agg_filter' in node],
    ['a window', 'over' in node],
    ['WITHIN GROUP', node['agg_within_group'] === true],
    ['a variadic call', node['func_variadic'] === true],
    ['a sorted DISTINCT aggregate', sorted && node['agg_distinct'] === true],
  ]);
}
