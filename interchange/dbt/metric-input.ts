import { parseWindow } from 'osl-compiler';
import { CODES } from '../../src/model/manifest/index.js';
import type { MetricBody } from '../draft.js';
import { shown } from '../names.js';
import { type ListItem, Part } from '../part.js';
import { NoFit } from '../sql/expression.js';

/** A measure or metric as input of another metric. */
export interface DbtMetricInput {
  readonly name: string;
  /** Name in an expression. */
  readonly alias: string;
  readonly filters: readonly string[];
  /** Offset to another period; null for the row's own period. */
  readonly offset: MetricOffset | null;
  readonly part: Part;
}

type MetricOffset = Pick<MetricBody, 'offset_window' | 'offset_to_grain'>;

/** Input under `key`: a name, or a mapping. @throws NoFit */
export function inputAt(part: Part, key: string): DbtMetricInput {
  if (part.isText(key)) {
    const name = part.text(key) ?? '';
    return { name, alias: name, filters: [], offset: null, part };
  }
  const input = part.child(key);
  if (input === null) throw new NoFit(`it has no \`${key}\``);
  return inputOf(input);
}

/** Inputs in the list under `key`: names and mappings. @throws NoFit */
export function inputsAt(part: Part, key: string): readonly DbtMetricInput[] {
  return part.items(key).flatMap((item) => listed(item, part, key));
}

function listed(item: ListItem, part: Part, key: string): readonly DbtMetricInput[] {
  if (item instanceof Part) return [inputOf(item)];
  if (typeof item === 'string') return [{ name: item, alias: item, filters: [], offset: null, part }];
  part.problem(key, CODES.wrongType, `\`${shown(key)}\` lists names and mappings, not \`${item}\``);
  return [];
}

/** @throws NoFit for `fill_nulls_with` */
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
  // Other values are refused by the manifest's schema, and reported.
  return grain === null ? null : { offset_to_grain: grain as NonNullable<MetricOffset['offset_to_grain']> };
}

/** `7 days`, or `{count, granularity}` as in the compiled manifest. @throws NoFit */
export function windowAt(part: Part, key: string): string | null {
  if (!part.has(key)) return null;
  const parts = part.isText(key) ? null : part.child(key);
  const text =
    parts === null ? (part.text(key) ?? '') : `${parts.number('count')} ${parts.needText('granularity')}s`;
  const plain = text.trim().toLowerCase();
  if (parseWindow(plain) === null) throw new NoFit(`\`${shown(text)}\` is no window`);
  return plain;
}

/** Filters: one text, a list of texts, or the form of the compiled manifest. */
export function filtersAt(part: Part): readonly string[] {
  if (!part.has('filter')) return [];
  if (part.isText('filter') || part.isList('filter')) return part.texts('filter');
  const filter = part.child('filter');
  return (filter?.parts('where_filters') ?? []).map((f) => f.needText('where_sql_template'));
}
