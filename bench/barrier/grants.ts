import { type Access, bindPredicate, type Catalog } from 'osl-compiler';
import type { Client } from 'pg';
import { type Findings, median, paired } from '../report.js';
import { inTurn } from '../support/rounds.js';
import { CATALOG } from './data.js';
import type { Question } from './questions.js';
import { microseconds, type Prepared, preparedFor } from './statements.js';

const COUNT: Question = {
  id: 'barrier.grants',
  predicate: 'a count of all rows',
  text: () => 'select count(*) from transfer',
};

const NUMBERS = [1, 10, 100, 1_000] as const;

/** Row filter of grant `i` of `n`, over `rows` transfers. */
const FORMS = {
  values: (i: number) => `memo = 'memo ${7 * i + 1}'`,
  ranges: (i: number, n: number, rows: number) => {
    const from = Math.floor((i * rows) / n);
    return `id >= ${from} and id < ${from + 10}`;
  },
  others: (i: number) => `memo = 'memo ${7 * i + 1}' and amount >= 0`,
} as const;

type Form = keyof typeof FORMS;
const ALL_FORMS = Object.keys(FORMS) as Form[]; // Object.keys loses the key type

/** Cost of a query by the number of its caller's grants on one table, compared with the same query without policy. */
export async function grantsBench(
  client: Client,
  plan: { readonly rows: number; readonly rounds: number },
): Promise<Findings> {
  const of = (name: string, filters: readonly string[] | null): Prepared =>
    preparedFor(COUNT, { rows: plan.rows, asks: 1 }, { name, catalog: CATALOG, access: accessOf(filters) });
  const open = of('open', null);
  const findings = [];
  for (const n of NUMBERS) {
    const forms = ALL_FORMS.map((form) => {
      const filters = Array.from({ length: n }, (_, i) => FORMS[form](i, n, plan.rows));
      return { form, statement: of(`${form}.${n}`, filters) };
    });
    const times = await inTurn([open, ...forms.map((f) => f.statement)], plan.rounds, (statement) =>
      microseconds(client, statement),
    );
    const [without = [], ...ours] = times;
    findings.push({
      measures: forms.map(({ form }, i) =>
        paired(
          `${COUNT.id}.${form}.${n}.vs_no_policy`,
          'µs',
          'less',
          ours[i] ?? [],
          without,
          'the same without policy',
        ),
      ),
      row: [n.toLocaleString('en-US'), ...[...ours, without].map((t) => (median(t) / 1_000).toFixed(1))],
    });
  }
  const table = {
    name: 'barrier: by the number of grants',
    about:
      'A count over one table by a caller with so many grants on it, medians in ms. Values: each grant equates one ' +
      'column with a value, and all become one list. Ranges: each keeps the key within bounds, disjoint. Others: each ' +
      'has a second condition, so that they stay one beside the other.',
    head: ['grants', 'values of one column', 'ranges of one column', 'others', 'without policy'],
    rows: findings.map((f) => f.row),
  };
  return { measures: findings.flatMap((f) => f.measures), tables: [table] };
}

/** Access to every column of `transfer`, with one grant for each of `filters`; null: every row. */
function accessOf(filters: readonly string[] | null): Access {
  const transfer = relationOf(CATALOG);
  const grants = (filters ?? [null]).map((rows, i) => ({
    id: `g${i}`,
    columns: new Set(transfer.columns.map((c) => c.name)),
    unmask: new Set<string>(),
    filter: rows === null ? null : bindPredicate(rows, transfer),
  }));
  const rights = { grants, masks: new Map(), denied: new Set<string>() };
  return {
    signature: 's',
    policyVersion: 'bench',
    chainLength: 1,
    relations: new Map([['transfer', rights]]),
  };
}

function relationOf({ relations }: Catalog) {
  const transfer = relations.get('transfer');
  if (transfer === undefined) throw new Error('no transfers');
  return transfer;
}
