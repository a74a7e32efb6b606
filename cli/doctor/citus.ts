import type { Expr } from 'osl-compiler';
import type { Survey } from '../../src/engine/index.js';
import { type CitusLayout, distributionColumns, readCitus } from '../../src/model/discovery/index.js';
import { type Connector, tableName } from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import { counted } from '../output.js';
import { citusText } from '../proposal/index.js';
import { type DoctorFinding, ok, warn } from './finding.js';

const HINT =
  "add a comparison of the distribution column to `rows`, such as `tenant_id = attribute('tenant')`, or distribute the table by the column of the filter";

/** Findings about a Citus cluster: its tables, and row filters that do not select shards. */
export async function citusFindings(
  about: string,
  { system, report }: Survey,
  connector: Connector,
  { manifest, snapshot }: Model,
): Promise<readonly DoctorFinding[]> {
  if (report.kind !== 'citus') return [];
  const layout = await readCitus(system);
  const used = new Map([...layout].filter(([table]) => connector.tables.has(table)));
  const findings = [ok(about, citusText(used))];
  if (snapshot === null || distributionColumns(used).length === 0) return findings;
  const unfit = new Map<string, string[]>();
  for (const [role, { grants }] of snapshot.roles) {
    for (const relation of manifest.catalog.relations.values()) {
      const table = used.get(tableName(relation));
      if (relation.connector !== connector.name || table?.kind !== 'distributed') continue;
      const filters = (grants.get(relation.name) ?? []).flatMap(({ filter }) => filter ?? []);
      if (filters.every((filter) => selectsValues(filter, table.column))) continue;
      const names = unfit.get(relation.name) ?? [];
      unfit.set(relation.name, [...names, role]);
    }
  }
  return [
    ...findings,
    ...[...unfit].map(([relation, roles]) => warn(about, filterText(relation, roles, used, manifest), HINT)),
  ];
}

function filterText(
  relation: string,
  roles: readonly string[],
  layout: CitusLayout,
  { catalog }: Model['manifest'],
): string {
  const found = catalog.relations.get(relation);
  const table = found === undefined ? undefined : layout.get(tableName(found));
  const column = table?.kind === 'distributed' ? table.column : '';
  const who = `${counted(roles.length, 'role', 'roles')} (${roles.slice(0, 3).join(', ')})`;
  return `\`${relation}\` is distributed by ${column}, but the row filter of ${who} does not compare it: each query reads every shard`;
}

function isConstant(expression: Expr | null): boolean {
  return expression?.kind === 'literal' || (expression?.kind === 'cast' && isConstant(expression.arg));
}

/** True if every row that passes `filter` has one of listed values in `column`, so that Citus can choose its shards. */
function selectsValues(filter: Expr, column: string): boolean {
  const isColumn = (expression: Expr | null): boolean =>
    expression?.kind === 'base' && expression.column === column;
  switch (filter.kind) {
    case 'and':
      return filter.args.some((arg) => selectsValues(arg, column));
    case 'or':
      return filter.args.every((arg) => selectsValues(arg, column));
    case 'attribute_match':
      return isColumn(filter.arg);
    case 'operation':
      if (filter.definition.name !== '=') return false;
      return (
        (isColumn(filter.left) && isConstant(filter.right)) ||
        (isConstant(filter.left) && isColumn(filter.right))
      );
    case 'quantified':
      return (
        filter.definition.name === '=' &&
        filter.quantifier === 'any' &&
        isColumn(filter.arg) &&
        isConstant(filter.array)
      );
    default:
      // Other comparisons leave the value open.
      return false;
  }
}
