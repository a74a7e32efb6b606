import { parseWindow } from 'osl-compiler';
import { CODES } from '../../src/model/manifest/index.js';
import type { MetricBody } from '../draft.js';
import { shown } from '../names.js';
import { type ListItem, Part } from '../part.js';
import { NoFit } from '../sql/expression.js';

/** A measure or a metric as another is made of it. */
export interface DbtMetricInput {
  readonly name: string;
  /** What it is called in an expression. */
  readonly alias: string;
  readonly filters: readonly string[];
  /** Of which other period its figure is; null for that of the row itself. */
  readonly offset: MetricOffset | null;
  readonly part: Part;
}

type MetricOffset = Pick<MetricBody, 'offset_window' | 'offset_to_grain'>;

/** The input under `key`: a name, or a mapping. @throws NoFit */
export function inputAt(part: Part, key: string): DbtMetricInput {
  if (part.isText(key)) {
    const name = part.text(key) ?? '';
    return { name, alias: name, filters: [], offset: null, part };
  }
  const input = part.child(key);
  if (input === null) throw new NoFit(`it has no \`${key}\``);
  return inputOf(input);
}

/** The inputs in the list under `key`: names and mappings. @throws NoFit */
export function inputsAt(part: Part, key: string): readonly DbtMetricInput[] {
  return part.items(key).flatMap((item) => listed(item, part, key));
}

function listed(item: ListItem, part: Part, key: string): readonly DbtMetricInput[] {
  if (item instanceof Part) return [inputOf(item)];
  if (typeof item === 'string') return [{ name: item, alias: item, filters: [], offset: null, part }];
  part.problem(key, CODES.wrongType, `\`${shown(key)}\` lists names and mappings, not \`${item}\``);
  return [];
}

/** @throws NoFit for one whose gaps are filled */
function inputOf(input: Part): DbtMetricInput {
  const name = input.needText('name');
  const alias = input.text('alias') ?? name;
  const filters = filtersAt(input);
  if (input.has('fill_nulls_with'))
    throw new NoFit('`fill_nulls_with` has no counterpart in a metric: use coalesce in one derived of it');
  if (input.flag('join_to_timespine') === true)
    input.note('join_to_timespine', 'approximated', 'only running totals have a row for every period');
  return { name, alias, filters, offset: offsetOf(input), part: input };
}

/** @throws NoFit for an offset that is no window */
function offsetOf(input: Part): MetricOffset | null {
  const window = windowAt(input, 'offset_window');
  if (window !== null) return { offset_window: window };
  const grain = input.text('offset_to_grain')?.toLowerCase() ?? null;
  // What is no grain, the schema of the manifest refuses, and that is reported.
  return grain === null ? null : { offset_to_grain: grain as NonNullable<MetricOffset['offset_to_grain']> };
}

/** `7 days`, or as the compiled manifest has it: `{count, granularity}`. @throws NoFit */
export function windowAt(part: Part, key: string): string | null {
  if (!part.has(key)) return null;
  const parts = part.isText(key) ? null : part.child(key);
  const text =
    parts === null ? (part.text(key) ?? '') : `${parts.number('count')} ${parts.needText('granularity')}s`;
  const plain = text.trim().toLowerCase();
  if (parseWindow(plain) === null) throw new NoFit(`\`${shown(text)}\` is no window`);
  return plain;
}

/** A filter as one text, a list of texts, or as the compiled manifest has it. */
export function filtersAt(part: Part): readonly string[] {
  if (!part.has('filter')) return [];
  if (part.isText('filter') || part.isList('filter')) return part.texts('filter');
  const filter = part.child('filter');
  return (filter?.parts('where_filters') ?? []).map((f) => f.needText('where_sql_template'));
}
