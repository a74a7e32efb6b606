import {
  type AdoptionCandidate,
  type CitusLayout,
  distributionColumns,
} from '../../src/model/discovery/index.js';
import { usage } from '../exit.js';
import { visible } from '../output.js';
import {
  alongViews,
  chooseTables,
  columnId,
  parseTablePatterns,
  type RowRule,
  spread,
  suggestTreatments,
  type TableSelection,
  type Treatment,
  type Treatments,
  tableOf,
  tenantRank,
  type ViewFlows,
} from '../proposal/index.js';
import type { InitFlags, Prompt } from './prompt.js';

const MOST_SHOWN = 12;

/** `a, b, c` or `a, b and 40 more`. */
function shortList(items: readonly string[], most = MOST_SHOWN): string {
  const shown = items.slice(0, most).map(visible).join(', ');
  return items.length > most ? `${shown} and ${items.length - most} more` : shown;
}

export async function askTables(
  found: readonly AdoptionCandidate[],
  flags: InitFlags,
  prompt: Prompt,
): Promise<TableSelection> {
  const readable = found.filter((c) => c.columns.some((column) => column.readable));
  prompt.say(`\n${readable.length} tables and views may be read: ${shortList(readable.map(tableOf))}`);
  const question = 'Which? Names between commas, * for any letters, -name leaves one out, table=name renames';
  for (;;) {
    const text = flags.tables ?? (await prompt.ask(question, 'all'));
    const wanted = text === 'all' ? [] : parseTablePatterns(text);
    const chosen = wanted === null ? null : chooseTables(found, wanted);
    const fault = chosen === null ? `\`${text}\` is not a list of tables` : faultOf(chosen);
    if (chosen !== null && fault === null) return chosen;
    if (flags.tables !== undefined || prompt.assumes) throw usage(fault ?? 'no tables');
    prompt.say(`  ${fault}`);
  }
}

function faultOf({ candidates, unmatched, leftOut }: TableSelection): string | null {
  if (unmatched.length > 0) return `no table is called ${shortList(unmatched.map((u) => `\`${u}\``))}`;
  if (candidates.length > 0) return null;
  const [first] = leftOut;
  return first === undefined ? 'there are no tables' : `nothing is left: ${first.table}: ${first.reason}`;
}

export async function askTreatments(
  candidates: readonly AdoptionCandidate[],
  flows: ViewFlows,
  flags: InitFlags,
  prompt: Prompt,
): Promise<Treatments> {
  const byName = suggestTreatments(candidates);
  const suggested = alongViews(byName, flows, candidates);
  const given = [...listOf(flags.mask), ...listOf(flags.clear).map((c) => `-${c}`)];
  if (flags.mask !== undefined || flags.clear !== undefined || prompt.assumes) {
    const edited = edit(byName, given, flows, candidates);
    if (typeof edited === 'string') throw usage(edited);
    return edited;
  }
  const of = (treatment: Treatment): readonly string[] =>
    [...suggested].filter(([, t]) => t === treatment).map(([id]) => id);
  const [masked, out] = [of('masked'), of('left out')];
  const these =
    masked.length === 1 ? 'this column looks personal' : `these ${masked.length} columns look personal`;
  prompt.say(`\nBy their names (no row is read for this) ${these}, and will be masked:`);
  prompt.say(`  ${masked.length === 0 ? 'none' : shortList(masked, 60)}`);
  if (out.length > 0) prompt.say(`Credentials, left out altogether: ${shortList(out, 60)}`);
  for (;;) {
    const text = await prompt.ask(
      'More to mask as table.column, or -table.column to show one in the clear',
      'none',
    );
    const edited = text === 'none' ? suggested : edit(byName, listOf(text), flows, candidates);
    if (typeof edited !== 'string') return edited;
    prompt.say(`  ${edited}`);
  }
}

function listOf(text: string | undefined): readonly string[] {
  return (text ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

/** Applies the edits: `a.b` masks a column, `-a.b` clears it. Returns the treatments, or the error in an edit. */
function edit(
  suggested: Treatments,
  edits: readonly string[],
  flows: ViewFlows,
  candidates: readonly AdoptionCandidate[],
): Treatments | string {
  const all = candidates.flatMap((c) => c.columns.map((column) => columnId(c, column.name)));
  const masked = new Map(suggested);
  const cleared: string[] = [];
  for (const word of edits) {
    const name = word.replace(/^-/, '');
    const ids = all.filter((id) => id === name || (name.includes('.') && id.endsWith(`.${name}`)));
    if (ids.length === 0) return `no column is called \`${visible(name)}\`: write table.column`;
    if (ids.length > 1) return `\`${visible(name)}\` could be ${shortList(ids)}`;
    for (const id of ids) {
      if (word.startsWith('-')) cleared.push(id);
      else masked.set(id, 'masked');
    }
  }
  const named = new Map(spread(masked, candidates));
  for (const id of cleared) named.delete(id);
  const out = new Map(alongViews(named, flows, candidates));
  for (const id of cleared) out.delete(id);
  return out;
}

interface SharedColumn {
  readonly column: string;
  readonly tables: number;
}

/**
 * The most likely tenant column: on Citus the distribution column, if all distributed tables share it; otherwise a
 * column that is in at least two tables and has a typical name; null if there is none.
 */
export function tenantColumn(
  candidates: readonly AdoptionCandidate[],
  citus: CitusLayout | null,
): SharedColumn | null {
  const [distributed, ...others] = citus === null ? [] : distributionColumns(citus);
  if (distributed !== undefined && others.length === 0) {
    const { column } = distributed;
    const tables = candidates.filter(({ columns }) => columns.some(({ name }) => name === column)).length;
    if (tables > 0) return { column, tables };
  }
  const counts = new Map<string, number>();
  for (const { columns } of candidates) {
    for (const { name } of columns)
      if (tenantRank(name) !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const [best] = [...counts]
    .filter(([, tables]) => tables >= 2)
    .sort(([a, m], [b, n]) => (tenantRank(a) ?? 0) - (tenantRank(b) ?? 0) || n - m);
  return best === undefined ? null : { column: best[0], tables: best[1] };
}

/** Asks whether BI tools will connect, since they join on columns that are not keys. */
export async function askBi(flags: InitFlags, prompt: Prompt): Promise<boolean> {
  if (flags.bi !== undefined) return flags.bi;
  prompt.say('\nTableau, Power BI, Superset and others join to their own subqueries on any column.');
  return prompt.confirm('Will BI tools connect? Otherwise questions join on declared keys alone', false);
}

export async function askRowFilter(
  candidates: readonly AdoptionCandidate[],
  subject: string,
  citus: CitusLayout | null,
  flags: InitFlags,
  prompt: Prompt,
): Promise<RowRule | null> {
  const [column = '', value = ''] = await rowRule(candidates, subject, citus, flags, prompt);
  if (column === '') return null;
  const refers = referredBy(column, candidates);
  const has = (c: AdoptionCandidate): boolean => c.columns.some(({ name }) => name === column);
  const without = candidates.filter((c) => !has(c) && tableOf(c) !== refers?.table);
  if (!candidates.some(has)) throw usage(`no table has a column \`${column}\``);
  if (without.length === 0 || flags.others !== undefined)
    return { column, value, refers, others: flags.others ?? 'hidden' };
  const lack = without.length === 1 ? '1 table has' : `${without.length} tables have`;
  prompt.say(`${lack} no ${visible(column)}: ${shortList(without.map((c) => c.name))}`);
  const whole = await prompt.confirm('Show them whole? Otherwise they are hidden', false);
  return { column, value, refers, others: whole ? 'whole' : 'hidden' };
}

/** Returns the target of the single-column foreign keys on `column`; null unless they refer to one table. */
function referredBy(column: string, candidates: readonly AdoptionCandidate[]): RowRule['refers'] {
  const links = candidates.flatMap((c) => c.foreign_keys).filter((f) => f.columns.join() === column);
  const targets = new Map(links.map(({ references }) => [tableOf(references), references.columns[0] ?? '']));
  const [only] = targets;
  return only === undefined || targets.size > 1 ? null : { table: only[0], column: only[1] };
}

async function rowRule(
  candidates: readonly AdoptionCandidate[],
  subject: string,
  citus: CitusLayout | null,
  flags: InitFlags,
  prompt: Prompt,
): Promise<readonly string[]> {
  if (flags.rows !== undefined) {
    const [, column, value] = /^([^=]+)=(.+)$/su.exec(flags.rows) ?? [];
    if (column === undefined || value === undefined)
      throw usage('--rows takes column=value, such as org_id=42');
    return [column, value];
  }
  const shared = tenantColumn(candidates, citus);
  if (shared === null || prompt.assumes) return [];
  prompt.say(
    `\n${shared.tables} of ${candidates.length} tables have a column ${visible(shared.column)}. Does it say whose a row is?`,
  );
  const value = await prompt.ask(`Then show ${subject} only rows of the ${visible(shared.column)}`, 'all');
  return value === 'all' ? [] : [shared.column, value];
}
