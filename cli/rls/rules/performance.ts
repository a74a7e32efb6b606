import { identifier } from 'osl-compiler/sql-text';
import type { Index, IndexKey, PgRelation } from '../catalog/catalog.js';
import { partOf, policyObject, qualified } from '../catalog/catalog.js';
import { type AnalysedPolicy, type CheckedDatabase, governs, listed } from '../database.js';
import type { Call, ColumnComparison } from '../expression.js';
import { policiesWith, type RlsRule, violation } from '../finding.js';

/** Rules about conditions that run for each row or keep the database from using an index. */
export const PERFORMANCE: readonly RlsRule[] = [
  {
    code: 'RLS016',
    severity: 'note',
    title: 'function that is called for each row',
    consequence:
      'A scan of the table calls the function once for each row instead of once for the statement.',
    mend: 'write (select function(…)), which runs once',
    check: (db) =>
      policiesWith(db, 'calls ', (analysed) => {
        const calls = analysed.parsed.flatMap((e) => e.calls.filter((c) => c.perRow && !c.perRowArguments));
        return calls.filter((call) => isStable(db, analysed, call)).map(callName);
      }),
  },
  {
    code: 'RLS017',
    severity: 'note',
    title: 'no index for the column of a policy',
    consequence: 'Each query reads the whole table, unless another condition of it has an index.',
    mend: 'create an index that begins with the column',
    check: (db) =>
      db.policies.filter(isReading).flatMap((analysed) => {
        const { table } = analysed;
        const compared = comparisonsOf(db, analysed).filter(
          ({ operator, cast }) => operator === '=' && cast === null,
        );
        if (isSmall(table) || compared.length === 0 || compared.some((c) => isIndexed(table, c))) return [];
        const [{ column } = { column: '' }] = compared;
        const sql = [`CREATE INDEX CONCURRENTLY ON ${qualified(table)} (${identifier(column)});`];
        return [violation(policyObject(table, analysed.policy), `column ${identifier(column)}`, sql)];
      }),
  },
  {
    code: 'RLS018',
    severity: 'note',
    title: 'subquery that depends on the row',
    consequence: 'The condition is evaluated for each row, and no index of the table is used for it.',
    mend: 'compare a column of the row: column = ANY (ARRAY(SELECT …)), with a subquery that does not name the row',
    check: (db) =>
      db.policies
        .filter(({ parsed }) => parsed.some(({ subqueries }) => subqueries.some((s) => s.correlated)))
        .map(({ table, policy }) => violation(policyObject(table, policy))),
  },
  {
    code: 'RLS062',
    severity: 'note',
    title: 'column IN (SELECT …)',
    consequence:
      'The subquery runs once, but no index on the column is used: each query reads the whole table.',
    mend: 'write column = ANY (ARRAY(SELECT …))',
    check: (db) =>
      policiesWith(db, 'column ', (analysed) => {
        if (isSmall(analysed.table) || !isReading(analysed)) return [];
        const compared = comparisonsOf(db, analysed).filter(({ operator }) => operator === 'IN');
        return compared.map(({ column }) => identifier(column));
      }),
  },
  {
    code: 'RLS035',
    severity: 'note',
    title: 'condition that casts the column',
    consequence: 'An index on the column is not used, because its values have another type.',
    mend: 'cast the other side of the comparison to the type of the column',
    check: (db) =>
      policiesWith(db, '', (analysed) =>
        comparisonsOf(db, analysed)
          .filter((c) => c.cast !== null && !hasExpression(analysed.table, c))
          .map(({ column, cast }) => `${identifier(column)}::${cast}`),
      ),
  },
  {
    code: 'RLS061',
    severity: 'note',
    title: 'comparison of text with current_user',
    consequence:
      'An index on the column is not used, because current_user has the collation "C", also as text, and the index another.',
    mend: 'write current_user::text COLLATE "default"',
    check: (db) =>
      policiesWith(db, 'column ', (analysed) =>
        comparisonsOf(db, analysed)
          .filter((c) => c.toRoleName && hasOtherCollation(analysed.table, c))
          .map(({ column }) => identifier(column)),
      ),
  },
  {
    code: 'RLS036',
    severity: 'note',
    title: 'OR that keeps an index from being used',
    consequence: 'Each query reads the whole table, because one side of the OR has no index.',
    mend: 'write the sides as policies for different roles, or give each an index',
    check: (db) =>
      db.policies.filter(isReading).flatMap(({ table, policy, parsed }) => {
        if (isSmall(table)) return [];
        const lost = parsed
          .flatMap(({ conjuncts }) => conjuncts)
          .filter(({ alternatives }) => {
            const indexed = alternatives.filter(
              ({ comparison }) =>
                comparison !== null && isIndexed(table, withoutBinaryCast(db, table, comparison)),
            );
            return indexed.length > 0 && indexed.length < alternatives.length;
          });
        return lost.length === 0 ? [] : [violation(policyObject(table, policy))];
      }),
  },
  {
    code: 'RLS045',
    severity: 'note',
    title: 'index whose search is not leakproof, on a protected table',
    consequence:
      'A search that the index is for reads the whole table for roles that row security applies to.',
    mend: 'let a SECURITY DEFINER function search and apply the policy itself, or accept the scan of few rows',
    check: (db) =>
      db.protectedTables.flatMap((table) => {
        const compared = db.policiesOf(table).flatMap((analysed) => comparisonsOf(db, analysed));
        const columns = new Set(compared.map(({ column }) => column));
        return table.indexes
          .filter((index) => isLeaky(index) && !index.keys.some((k) => columns.has(k.column ?? '')))
          .map((index) =>
            violation(
              partOf('index', table, index.name),
              `${index.method}, ${listed(index.keys.map((key) => key.operatorClass))}`,
            ),
          );
      }),
  },
];

/** Tables with fewer rows are read as a whole even if they have an index. */
const SMALL_ROWS = 1_000;

function isSmall({ estimatedRows }: PgRelation): boolean {
  return estimatedRows !== null && estimatedRows < SMALL_ROWS;
}

function isReading({ policy }: AnalysedPolicy): boolean {
  return policy.permissive && governs(policy, 'SELECT');
}

/** Comparisons that every row visible through a policy must meet, without casts that keep an index usable. */
function comparisonsOf(db: CheckedDatabase, { table, using }: AnalysedPolicy): readonly ColumnComparison[] {
  if (using?.kind !== 'parsed') return [];
  return using.conjuncts.flatMap(({ alternatives }) => {
    const [only] = alternatives;
    return alternatives.length === 1 && only !== undefined && only.comparison !== null
      ? [withoutBinaryCast(db, table, only.comparison)]
      : [];
  });
}

/** Operators that search no index. */
const UNINDEXED: ReadonlySet<string> = new Set(['IN', '<>']);

/** True if an index of the table can be used for the comparison. */
function isIndexed(table: PgRelation, { column, cast, operator }: ColumnComparison): boolean {
  if (cast !== null || UNINDEXED.has(operator)) return false;
  return table.indexes.some((index) => {
    const [first] = index.keys;
    // A test that a boolean column is true can use a full or a partial index.
    return first?.column === column && (!index.partial || operator === 'IS TRUE');
  });
}

/** Leaves out a cast that changes no byte of the column, such as varchar to text: an index is used despite it. */
function withoutBinaryCast(
  { catalog }: CheckedDatabase,
  { columns }: PgRelation,
  comparison: ColumnComparison,
): ColumnComparison {
  const { column, cast } = comparison;
  const type = columns.find(({ name }) => name === column)?.type;
  const isBinary = type === undefined || type === cast || catalog.binaryCasts.has(`${type}>${cast}`);
  return isBinary ? { ...comparison, cast: null } : comparison;
}

/** True if the collation of a column differs from that of role names, which is "C". */
function hasOtherCollation({ columns }: PgRelation, { column }: ColumnComparison): boolean {
  const collation = columns.find(({ name }) => name === column)?.collation ?? null;
  return collation !== null && collation !== 'C';
}

/** True if the first key of an index is the cast column. */
function hasExpression(table: PgRelation, { column, cast }: ColumnComparison): boolean {
  const wanted = `${identifier(column)}::${cast}`;
  return table.indexes.some(({ keys: [first] }) => first?.text.replace(/[()]/g, '') === wanted);
}

const PATTERN_CLASSES: ReadonlySet<string> = new Set([
  'text_pattern_ops',
  'varchar_pattern_ops',
  'bpchar_pattern_ops',
]);

function isLeaky({ keys }: Index): boolean {
  return keys.every(isLeakyKey);
}

/** True if only leaky conditions use the key, such as LIKE, which pattern classes serve by a support function. */
function isLeakyKey({ operatorClass, hasLeakproofOperator }: IndexKey): boolean {
  return !hasLeakproofOperator || PATTERN_CLASSES.has(operatorClass);
}

/** Functions that only return a value held by the session. */
const CHEAP: ReadonlySet<string> = new Set(['now', 'transaction_timestamp', 'statement_timestamp']);

/** True for a STABLE function, except cheap ones: it could run once per statement instead of once per row. */
function isStable(db: CheckedDatabase, analysed: AnalysedPolicy, { schema, name }: Call): boolean {
  if (schema === null) return db.catalog.systemFunctions.get(name) === 'stable' && !CHEAP.has(name);
  return db
    .functionsOf(analysed)
    .some((f) => f.schema === schema && f.name === name && f.volatility === 'stable');
}

function callName({ schema, name }: Call): string {
  return `${schema === null ? '' : `${identifier(schema)}.`}${identifier(name)}()`;
}
